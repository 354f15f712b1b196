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

# bats test_tags=full
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

# bats test_tags=full
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

# bats test_tags=full
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

# bats test_tags=full
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

# few_targets: heaptap maps the memory of one process, for rings, for tables, and a page that it reads often
few_targets() { [ "$(grep -c memfd:heaptap-inline "/proc/$TAP/maps")" -le 3 ]; }

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

# calls: what each process of the report has called, and how it ended
calls() { jq -r '.processes[] | [.comm, .totals.allocs, .totals.frees, .totals.unknown_frees, .lost.other, .scan.definite.blocks, (.exit | tostring)] | @tsv' "$report" | sort; }

# Breakpoints for a child are in all processes, so later programs with the same C library are left to BPF, too.
@test "inline_follow: a child that cannot be changed is left to BPF, with its children and later programs (A14, A16)" {
	local source
	for source in bpf inline; do
		# shellcheck disable=SC2016 # the shell that is traced expands this
		traced --backend "$source" -f -- bash -c '
			"$0" >/dev/null
			(ulimit -v 700000; "$1" 3 >/dev/null; (:); x=$("$0"); :)
			"$0" >/dev/null; exit 4' "$T/leak" "$T/fork"
		[ "$status" -eq 4 ] || { echo "status $status"; cat "$err"; return 1; }
		nothing_lost
		calls >"$BATS_TEST_TMPDIR/$source"
	done
	cmp "$BATS_TEST_TMPDIR/bpf" "$BATS_TEST_TMPDIR/inline"
	grep -q 'its memory is limited .*and of later programs with its libraries, are seen by BPF' "$err"
	[ "$(grep -c 'are seen by BPF' "$err")" -eq 1 ]
	jq -e '[.processes[] | select(.comm == "leak") | .notes | map(select(test("breakpoints have seen all"))) | length] == [0, 1, 1]' "$report"
}

# Nothing of the program's file is mapped beside its code, so the code with jumps is no copy: breakpoints would end it.
@test "inline_follow: a child that cannot be changed is not seen where breakpoints would end another program" {
	traced --backend inline -f -- "$T/short-alone" run "(ulimit -v 700000; '$T/leak'; :); '$T/leak' >/dev/null; exit 4"
	[ "$status" -eq 4 ] || { echo "status $status"; cat "$err"; return 1; }
	grep -q 'its memory is limited .*: use --backend bpf' "$err"
	jq -e '[.processes[] | select(.comm == "leak") | .totals.allocs > 0 and .lost.other == 0] == [false, true]' "$report"
}

# A program that is left to its debugger runs on while heaptap looks.
# bats test_tags=full
@test "inline_follow: a debugger and its program: no call is missed in silence (A14)" {
	command -v gdb >/dev/null || skip "gdb is not installed"
	# shellcheck disable=SC2016 # the shell that is traced expands this
	traced --backend inline -f -- bash -c 'gdb -q -batch -ex run "$0" >/dev/null 2>&1; "$0" >/dev/null' "$T/leak"
	jq -e '[.processes[] | select(.comm == "leak") | .totals.allocs == 862 or .lost.allocs > 0] == [true, true]' "$report"
	jq -e '[.processes[] | select(.comm == "leak")][-1] | .totals.allocs == 862 and .lost.allocs == 0' "$report"
	jq -e '[.processes[] | select(.comm == "gdb") | .totals.allocs > 1000 and .lost.other == 0] | all' "$report"
	fails grep 'cannot be unmapped' "$err"
}

# heaptap stands still meanwhile, so nobody can look at the shell, nor at what it becomes.
# bats test_tags=core
@test "inline_follow: a debugger's program that has ended before heaptap looks is no loss in silence (A14)" {
	traced --backend inline -f -- "$T/debugger" "$T/leak"
	[ "$status" -eq 0 ]
	grep -qx 'served 200 requests' "$out"
	jq -e '[.processes[] | select(.comm == "leak") | .lost.allocs] == [1, 1]' "$report"
	traced --backend bpf -f -- "$T/debugger" "$T/leak"
	nothing_lost
	jq -e '[.processes[] | select(.comm == "leak")][-1].totals.allocs == 862' "$report"
}

# ---- attach ----

# shell [LIBRARY]: start a shell that waits for commands, with the oracle's library or that one; its PID is in $TARGET
shell() {
	HEAPTAP_COUNT=$BATS_TEST_TMPDIR/count
	coproc SHELL { LD_PRELOAD=${1-$ORACLE/count.so} HEAPTAP_COUNT=$HEAPTAP_COUNT exec bash --norc --noprofile 3>&-; }
	TARGET=$SHELL_PID
	STARTED+=("$TARGET")
	does 'true'
}

# does COMMANDS: the shell carries them out, until they are done
does() {
	local line
	echo "$1; echo done" >&"${SHELL[1]}"
	until [ "${line:-}" = done ]; do read -r -t 240 line <&"${SHELL[0]}" || return 1; done
}

# bats test_tags=core
@test "inline_follow: attached, the children of a shell (A14, A16)" {
	shell
	attached --backend inline -f "$TARGET"
	does 'for i in 1 2 3; do ls / | sort | tail -1; done; (exit 3)'
	detach
	nothing_lost
	jq -e '[.processes[] | select(.comm == "ls" or .comm == "sort" or .comm == "tail")] | length == 9' "$report"
	jq -e '[.processes[].exit | select(. == { code: 3 })] | length == 1' "$report"
	untouched "$TARGET"
	unmapped "$TARGET"
	# The past of the shell is not known.
	jq '.processes |= map(select(.pid != $p))' --argjson p "$TARGET" "$report" >"$report.children"
	report=$report.children same_calls
	does 'ls / >/dev/null'
}

has_code() { grep -q memfd:heaptap-inline "/proc/$1/maps"; }

# dear_children: by auto, a shell is attached that is idle; $forked and $executed, its children, are busy, and have code.
dear_children() {
	unset HEAPTAP_NO_CODE
	shell ''
	attached -f "$TARGET"
	does "cd '$BATS_TEST_TMPDIR'; '$T/spin' 0 2 >truth & echo \$! >executed
		(while [ ! -e go ]; do x=\$x.; x=\${x: -500}; done; '$T/leak' >/dev/null; (exit 3); touch went; sleep 600) & echo \$! >forked"
	forked=$(cat "$BATS_TEST_TMPDIR/forked")
	executed=$(cat "$BATS_TEST_TMPDIR/executed")
	STARTED+=("$forked" "$executed")
	wait_for has_code "$forked"
	wait_for has_code "$executed"
}

# A program that was executed keeps its breakpoints for two seconds.
@test "inline_follow: attached by auto, a child that is dear gets code, as its children do, an idle parent does not (A14, A16)" {
	dear_children
	fails has_code "$TARGET"
	touch "$BATS_TEST_TMPDIR/go"
	wait_for test -e "$BATS_TEST_TMPDIR/went"
	kill -TERM "$executed"
	wait_for grep -q total "$BATS_TEST_TMPDIR/truth"
	detach
	nothing_lost
	for pid in "$TARGET" "$forked"; do
		untouched "$pid"
		unmapped "$pid"
	done
	[ "$(grep -c 'auto: inline: ' "$err")" -eq 1 ]
	# Each call once, by breakpoints before, and by code later.
	read -r _ _ allocs _ frees <<<"$(grep total "$BATS_TEST_TMPDIR/truth")"
	jq -e --argjson a "$allocs" --argjson f "$frees" '[.processes[] | select(.comm == "spin")][0].functions | .malloc - 1 <= $a and .malloc >= $a and .free >= $f' "$report" ||
		{ echo "$allocs $frees"; jq '.processes[] | select(.comm == "spin").functions' "$report"; return 1; }
	jq -e '[.processes[] | select(.comm == "leak").totals.allocs] == [862]' "$report"
	jq -e '[.processes[].exit | select(. == { code: 3 })] | length == 1' "$report"
}

# bats test_tags=full
@test "inline_follow: attached by auto, heaptap is killed: all go on, and nothing of it stays in them (A3)" {
	dear_children
	kill -KILL "$TAP"
	wait "$TAP" || true
	for pid in "$TARGET" "$forked" "$executed"; do
		untouched "$pid"
		wait_for unmapped "$pid"
	done
	touch "$BATS_TEST_TMPDIR/go"
	wait_for test -e "$BATS_TEST_TMPDIR/went"
}

# two_children: an attached shell has $forked, which waits for the pipe gate, and $executed, with our code
two_children() {
	shell
	mkfifo "$BATS_TEST_TMPDIR/gate"
	attached --backend inline -f "$TARGET"
	does "(echo \$BASHPID >'$BATS_TEST_TMPDIR/forked'; read -r _ <'$BATS_TEST_TMPDIR/gate'; x=\$(echo done); echo \$x >'$BATS_TEST_TMPDIR/done') & '$T/spin' 0 2 >/dev/null & echo \$! >'$BATS_TEST_TMPDIR/executed'"
	wait_for test -s "$BATS_TEST_TMPDIR/forked"
	forked=$(cat "$BATS_TEST_TMPDIR/forked")
	executed=$(cat "$BATS_TEST_TMPDIR/executed")
	STARTED+=("$forked" "$executed")
	wait_for grep -q memfd:heaptap-inline "/proc/$executed/maps"
}

# bats test_tags=full
@test "inline_follow: attached, children that live when the trace ends have none of our code" {
	two_children
	grep -q memfd:heaptap-inline "/proc/$forked/maps"
	detach
	for pid in "$TARGET" "$forked" "$executed"; do
		untouched "$pid"
		unmapped "$pid"
	done
	nothing_lost
	jq -e --argjson f "$forked" --argjson e "$executed" '[.processes[].pid] | index($f) and index($e)' "$report"
	echo go >"$BATS_TEST_TMPDIR/gate"
	wait_for test -s "$BATS_TEST_TMPDIR/done"
}

# bats test_tags=full
@test "inline_follow: attached, heaptap is killed: all go on, and nothing of it stays in them (A3)" {
	two_children
	# No child begins at this moment.
	wait_for has_probes "$executed"
	wait_for none_is_stopped "$executed"
	kill -KILL "$TAP"
	wait "$TAP" || true
	for pid in "$TARGET" "$forked" "$executed"; do
		untouched "$pid"
		wait_for unmapped "$pid"
	done
	does 'ls / >/dev/null'
	echo go >"$BATS_TEST_TMPDIR/gate"
	wait_for test -s "$BATS_TEST_TMPDIR/done"
}

# bats test_tags=full
@test "inline_follow: attached, the target executes another program (A14)" {
	shell
	attached --backend inline -f "$TARGET"
	echo "exec '$T/leak' >'$BATS_TEST_TMPDIR/truth'" >&"${SHELL[1]}"
	ended "$TAP" 0 || { cat "$err"; return 1; }
	nothing_lost
	jq -e '[.processes[] | select(.comm == "leak")] | length == 1 and (.[0] | .exit == { code: 0 })' "$report"
	jq '.processes |= map(select(.comm == "leak"))' "$report" >"$report.leak"
	report=$report.leak same_live
	jq -c '.processes[0].functions | with_entries(select(.value > 0))' "$report.leak" >"$BATS_TEST_TMPDIR/have"
	"$ORACLE/count-read" "$(count_page "$TARGET")" | jq -c .functions >"$BATS_TEST_TMPDIR/want"
	[ "$(jq -cS . "$BATS_TEST_TMPDIR/have")" = "$(jq -cS . "$BATS_TEST_TMPDIR/want")" ]
}

nr_said() { grep -c born "$BATS_TEST_TMPDIR/births.out" || true; }
has_more_births() { [ "$(nr_said)" -gt "$((before + 1))" ]; }

# bats test_tags=full
@test "inline_follow: attached, a server with threads and a timer: all of its children end as they want" {
	start "$T/births" 4
	target=$PID
	wait_for says births ready
	attached --backend inline -f --no-scan "$target"
	before=$(nr_said)
	wait_for has_more_births
	detach
	untouched "$target"
	wait_for unmapped "$target"
	nothing_lost
	jq -e '.processes | length > 20' "$report"
	jq -e '[.processes[] | select(.comm == "births" and .exit == { code: 7 }) | .totals.allocs >= 21] | length > 5 and all' "$report"
	jq -e '[.processes[1:][] | select(.exit) | .exit.code == 7 or .exit.code == 9] | all' "$report"
	kill -TERM "$target"
	ended "$target" 0
}

# bats test_tags=full
@test "inline_follow: attached to a process that is stopped, and several at once" {
	start "$T/spin" 1
	stopped=$PID
	start "$T/spin" 2
	other=$PID
	kill -STOP "$stopped"
	wait_for is_stopped "$stopped"
	attached --backend inline -f "$stopped" "$other"
	sent=$(switches "$other")
	wait_for has_slept "$other" "$((sent + 20))"
	detach
	wait_for is_stopped "$stopped"
	kill -CONT "$stopped"
	wait_for none_is_stopped "$stopped"
	untouched "$stopped"
	untouched "$other"
	jq -e --argjson s "$stopped" '[.processes[] | (.pid == $s) == (.totals.allocs == 0)] == [true, true]' "$report"
}

@test "inline_follow: only run and attach follow, and others say so" {
	start "$T/spin" 1
	run timeout 60 "$HEAPTAP" console --backend inline --follow "$PID" </dev/null
	[ "$status" -eq 3 ]
	[[ $output == *"children are followed by run and attach only"* ]]
	untouched "$PID"
}

# bats test_tags=full
@test "inline_follow: python's multiprocessing, with threads" {
	multiprocessing --backend inline
}
