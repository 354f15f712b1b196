#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# Children of a program that is traced by code inside it: they get code and rings of their own (A14, A16, A17).

load ../lib/common
load ../lib/follow

setup() {
	[ "$(uname -m)" = x86_64 ] || skip "not on this CPU yet"
	[ "${HEAPTAP_BACKEND:-}" != ptrace ] || skip "of another source"
}

teardown() { end_started; }

# bats test_tags=core
@test "inline_follow: a child's leaks are its own, what it got from its parent is known (A16)" {
	counted --backend inline -f -- "$T/fork" 20
	[ "$status" -eq 0 ] || { cat "$err"; return 1; }
	nothing_lost
	same_live
	traced --backend inline -f -- "$T/fork" 20
	jq -e '.processes | length == 21' "$report"
	jq -e '[.processes[1:][] | .totals.frees == 1 and .totals.unknown_frees == 0 and .exit == { code: 0 }] | all' "$report"
	jq -e '[.processes[1:][] | .scan.definite.blocks == 9] | all' "$report"
	jq -e '[.processes[1:][].stacks[] | select(any(.frames[]; .function == "child_allocates")) | .definite.blocks == 7] | length == 20 and all' "$report"
	jq -e '[.processes[].stacks[] | .truncated] | all(. == null)' "$report"
}

# bats test_tags=core
@test "inline_follow: a shell script, all its programs (A14, A16)" {
	cat >"$BATS_TEST_TMPDIR/script" <<-'SH'
		ls / >/dev/null
		x=$(echo one two | wc -w)
		/bin/sh -c 'exec /bin/echo $0 >/dev/null'
		(sort </dev/null | cat)
		[ "$x" = 2 ]
	SH
	counted --backend inline -f -- bash "$BATS_TEST_TMPDIR/script"
	[ "$status" -eq 0 ] || { cat "$err"; return 1; }
	nothing_lost
	[ "$(jq -r '.processes[].comm' "$report" | sort -u | tr '\n' ' ')" = "bash cat echo ls sh sort wc " ]
	jq -e '[.processes[] | select(.comm == "ls") | .scan.reachable.blocks > 0] == [true]' "$report"
	same_live
	same_calls
}

@test "inline_follow: a child in its parent's memory allocates for the parent's books (A16)" {
	local how
	for how in vfork handed clone; do
		traced --backend inline -f -- "$T/sharers" "$how"
		[ "$status" -eq 0 ] || { cat "$err"; return 1; }
		as_told
		jq -e '.processes | length == 1' "$report"
		is '.notes | length' 0
	done
}

@test "inline_follow: libraries that a child loads, in a second process with the same files" {
	# shellcheck disable=SC2016 # the shell that is traced expands this
	traced --backend inline -- "$T/dlopen" "$T"
	jq -cS '.processes[0].functions' "$report" >"$BATS_TEST_TMPDIR/alone"
	# shellcheck disable=SC2016 # the shell that is traced expands this
	traced --backend inline -f -- bash -c '"$0" "$1" && "$0" "$1"; (exec "$0" "$1")' "$T/dlopen" "$T"
	[ "$status" -eq 0 ] || { cat "$err"; return 1; }
	nothing_lost
	jq -cS '.processes[] | select(.comm == "dlopen") | .functions' "$report" >"$BATS_TEST_TMPDIR/children"
	[ "$(wc -l <"$BATS_TEST_TMPDIR/children")" -eq 3 ]
	[ "$(sort -u "$BATS_TEST_TMPDIR/children")" = "$(cat "$BATS_TEST_TMPDIR/alone")" ]
}

@test "inline_follow: children that have ended leave no descriptor of heaptap" {
	mkfifo "$BATS_TEST_TMPDIR/gate"
	# shellcheck disable=SC2016 # the shell that is traced expands this
	start "$HEAPTAP" run -q --backend inline -f --no-scan --max-procs 8 -o "$BATS_TEST_TMPDIR/r.json" -- bash -c '
		for i in 1 2 3 4 5 6 7 8 9 10; do (:); "$1"; done
		echo first >"$0/first"; read -r _ <"$0/gate"
		for ((i = 0; i < 60; i++)); do (:); "$1"; done
		echo second >"$0/second"; read -r _ <"$0/gate"' "$BATS_TEST_TMPDIR" "$T/nothing"
	TAP=$PID
	wait_for test -s "$BATS_TEST_TMPDIR/first"
	wait_for few_targets
	before=$(nr_descriptors)
	echo go >"$BATS_TEST_TMPDIR/gate"
	wait_for test -s "$BATS_TEST_TMPDIR/second"
	wait_for few_targets
	wait_for as_before
	echo go >"$BATS_TEST_TMPDIR/gate"
	ended "$TAP" 0
}

nr_descriptors() { find "/proc/$TAP/fd" -mindepth 1 | wc -l; }

# few_targets: heaptap maps the memory of one process, for rings and for tables
few_targets() { [ "$(grep -c memfd:heaptap-inline "/proc/$TAP/maps")" -le 2 ]; }

as_before() { [ "$(nr_descriptors)" -le "$((before + 2))" ]; }

unmapped() { fails grep -q memfd:heaptap "/proc/$1/maps"; }

@test "inline_follow: heaptap is killed: children go on, and nothing of it stays in them (A3)" {
	mkfifo "$BATS_TEST_TMPDIR/gate"
	# A forked child, and one that has executed a program.
	# shellcheck disable=SC2016 # the shell that is traced expands this
	start "$HEAPTAP" run -q --backend inline -f -o "$BATS_TEST_TMPDIR/r.json" -- bash -c '
		(echo "$BASHPID" >"$0/forked"; read -r _ <"$0/gate"; x=$(echo done); echo "$x" >"$0/done") &
		"$1" 0 2 & echo $! >"$0/executed"
		wait' "$BATS_TEST_TMPDIR" "$T/spin"
	wait_for says heaptap ready
	wait_for test -s "$BATS_TEST_TMPDIR/forked" -a -s "$BATS_TEST_TMPDIR/executed"
	forked=$(cat "$BATS_TEST_TMPDIR/forked")
	executed=$(cat "$BATS_TEST_TMPDIR/executed")
	STARTED+=("$forked" "$executed")
	grep -q memfd:heaptap-inline "/proc/$forked/maps"
	grep -q memfd:heaptap-inline "/proc/$executed/maps"
	kill -KILL "$PID"
	wait "$PID" || true
	untouched "$forked"
	untouched "$executed"
	wait_for unmapped "$forked"
	wait_for unmapped "$executed"
	echo go >"$BATS_TEST_TMPDIR/gate"
	wait_for test -s "$BATS_TEST_TMPDIR/done"
	kill -TERM "$executed"
	wait_for gone "$executed"
}

@test "inline_follow: --no-wait ends with the program, a forked child and a daemon run on without our code" {
	mkfifo "$BATS_TEST_TMPDIR/gate"
	# shellcheck disable=SC2016 # the shell that is traced expands this
	start "$HEAPTAP" run -q --backend inline -f --no-wait -o "$BATS_TEST_TMPDIR/r.json" -- bash -c '
		(echo "$BASHPID" >"$0/forked"; read -r _ <"$0/gate"; x=$(echo done); echo "$x" >"$0/done") >/dev/null 2>&1 &
		while [ ! -s "$0/forked" ]; do sleep 0.05; done
		exit 3' "$BATS_TEST_TMPDIR"
	ended "$PID" 3
	forked=$(cat "$BATS_TEST_TMPDIR/forked")
	STARTED+=("$forked")
	untouched "$forked"
	echo go >"$BATS_TEST_TMPDIR/gate"
	wait_for test -s "$BATS_TEST_TMPDIR/done"
	jq -e --argjson c "$forked" '[.processes[].pid] | index($c) != null' "$BATS_TEST_TMPDIR/r.json"
}

@test "inline_follow: a child that cannot be changed is named, counted as lost, and goes on" {
	[ -x "$T/leak-32" ] || skip "no 32-bit programs here"
	# shellcheck disable=SC2016 # the shell that is traced expands this
	traced --backend inline -f -- bash -c '"$0"; "$1"; exit 4' "$T/leak-32" "$T/leak"
	[ "$status" -eq 4 ] || { echo "status $status"; cat "$err"; return 1; }
	grep -q 'it is a 32-bit program' "$err"
	jq -e '[.processes[] | select(.comm == "leak-32") | .totals.allocs == 0 and .lost.other > 0] == [true]' "$report"
	jq -e '[.processes[] | select(.comm == "leak") | .scan.definite.blocks > 0 and .lost.other == 0] == [true]' "$report"
}

@test "inline_follow: attach does not follow, and says so" {
	start "$T/spin" 1
	run timeout 60 "$HEAPTAP" attach --backend inline --follow -t 100ms "$PID"
	[ "$status" -eq 3 ]
	[[ $output == *"only children of a program that heaptap starts (run) are followed"* ]]
	untouched "$PID"
}

@test "inline_follow: python's multiprocessing, with threads" {
	multiprocessing --backend inline
}
