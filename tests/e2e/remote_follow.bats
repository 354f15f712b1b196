#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# Children over a connection: connect -f and serve -f report what run -f and attach -f report here.

load ../lib/common
load ../lib/remote

# by_process REPORT: without what differs from run to run; processes by their names and sums
by_process() {
	normal "$1" | jq -S 'del(.backend) | .processes |=
		sort_by([.comm, .totals.allocs, .totals.frees, .totals.live_bytes, (.stacks | length)])'
}

# children_as_local BACKEND PROGRAM...: the report of connect -f equals that of run -f
children_as_local() {
	local backend=$1
	shift
	serving -b "$backend" --wait -- "$@"
	watched -f "unix:$SOCKET"
	[ "$status" -eq 0 ] || { cat "$err"; return 1; }
	nothing_lost
	ended "$SERVE" 0
	by_process "$report" >"$BATS_TEST_TMPDIR/remote.json"
	traced -b "$backend" -f -- "$@"
	by_process "$report" >"$BATS_TEST_TMPDIR/local.json"
	diff "$BATS_TEST_TMPDIR/remote.json" "$BATS_TEST_TMPDIR/local.json"
}

# script: a file with a shell script that forks, executes programs and waits
script() {
	cat >"$BATS_TEST_TMPDIR/script" <<-'SH'
		ls / >/dev/null
		x=$(echo one two | wc -w)
		/bin/sh -c 'exec /bin/echo $0 >/dev/null'
		(sort </dev/null | cat)
		[ "$x" = 2 ]
	SH
}

# names_of_programs: those of the processes in the report
names_of_programs() { jq -r '.processes[].comm' "$1" | sort | uniq -c | sort | tr -s '\n ' ' '; }

# bats test_tags=core
@test "remote follow: children, their leaks and stacks as run -f has them (A16)" {
	children_as_local bpf "$T/fork" 3
	jq -e '.processes | length == 4 and (map(.scan.definite.blocks) | sort == [2, 9, 9, 9])' "$BATS_TEST_TMPDIR/remote.json"
}

# bats test_tags=full
@test "remote follow: the same by ptrace (A16)" {
	own_libc
	children_as_local ptrace "$T/fork" 3
	jq -e '.processes | length == 4 and (map(.scan.definite.blocks) | sort == [2, 9, 9, 9])' "$BATS_TEST_TMPDIR/remote.json"
}

# bats test_tags=full
@test "remote follow: a child in its parent's memory allocates for the parent's books (A16)" {
	local how
	for how in vfork handed clone; do
		children_as_local bpf "$T/sharers" "$how"
	done
}

# bats test_tags=full
@test "remote follow: a shell script, all its programs (A14, A16)" {
	local backend
	script
	for backend in bpf ptrace; do
		serving -b "$backend" --wait -- bash "$BATS_TEST_TMPDIR/script"
		watched -f "unix:$SOCKET"
		[ "$status" -eq 0 ] || { cat "$err"; return 1; }
		nothing_lost
		ended "$SERVE" 0
		names_of_programs "$report" >"$BATS_TEST_TMPDIR/remote"
		jq -e '[.processes[] | select(.comm == "ls") | .scan.reachable.blocks > 0] == [true]' "$report"
		jq -e '[.processes[].exit | select(. != null and . != { code: 0 })] == []' "$report"
		traced -b "$backend" -f -- bash "$BATS_TEST_TMPDIR/script"
		names_of_programs "$report" >"$BATS_TEST_TMPDIR/local"
		diff "$BATS_TEST_TMPDIR/remote" "$BATS_TEST_TMPDIR/local"
	done
}

@test "remote follow: serve -f follows for a client that does not ask for it" {
	serving -f --wait -- "$T/fork" 2
	watched "unix:$SOCKET"
	[ "$status" -eq 0 ] || { cat "$err"; return 1; }
	jq -e '.processes | length == 3' "$report"
	ended "$SERVE" 0
}

@test "remote follow: without it children are not traced" {
	serving --wait -- "$T/fork" 2
	watched "unix:$SOCKET"
	[ "$status" -eq 0 ] || { cat "$err"; return 1; }
	jq -e '.processes | length == 1' "$report"
	ended "$SERVE" 0
}

# bats test_tags=full
@test "remote follow: more children than asked for are counted (A17)" {
	serving --wait -- "$T/fork" 50 1
	watched -f --max-procs 5 "unix:$SOCKET"
	[ "$status" -eq 0 ] || { cat "$err"; return 1; }
	jq -e '.processes | length == 6' "$report"
	jq -e '.processes[0].notes[] | test("45 children are not followed")' "$report"
	ended "$SERVE" 0
}

# bats test_tags=full
@test "remote follow: a recording of it has the same report (A16)" {
	serving --wait -- "$T/fork" 3
	watched -f --record "$BATS_TEST_TMPDIR/rec" "unix:$SOCKET"
	[ "$status" -eq 0 ] || { cat "$err"; return 1; }
	ended "$SERVE" 0
	by_process "$report" >"$BATS_TEST_TMPDIR/remote.json"
	"$HEAPTAP" report --sysroot / -o "$BATS_TEST_TMPDIR/replay.json" "$BATS_TEST_TMPDIR/rec"
	by_process "$BATS_TEST_TMPDIR/replay.json" | jq 'del(.processes[].exit)' >"$BATS_TEST_TMPDIR/replay"
	jq 'del(.processes[].exit)' "$BATS_TEST_TMPDIR/remote.json" | diff - "$BATS_TEST_TMPDIR/replay"
}

# bats test_tags=full
@test "remote follow: a daemon is traced until it ends (A16)" {
	local gate=$BATS_TEST_TMPDIR/gate
	mkfifo "$gate"
	# shellcheck disable=SC2016
	serving --wait -- bash -c '
		setsid bash -c "echo \$\$ >\"$0.new\"; mv \"$0.new\" \"$0.pid\"; read -r _ <\"$0\"; exec \"$1\"" "$0" "$1" >/dev/null 2>&1 </dev/null &
		while [ ! -e "$0.pid" ]; do sleep 0.05; done
		exit 3' "$gate" "$T/leak"
	watching -f "unix:$SOCKET"
	wait_for test -e "$gate.pid"
	STARTED+=("$(cat "$gate.pid")")
	echo go >"$gate"
	ended "$TAP" 0 || { cat "$err"; return 1; }
	ended "$SERVE" 0
	jq -e --argjson c "$(cat "$gate.pid")" '.processes[] | select(.pid == $c and (.exe | endswith("/leak"))) | .scan.definite.blocks > 0' "$report"
	jq -e '[.processes[] | select(.exit == { code: 3 })] | length >= 1' "$report"
	nothing_lost
}

# shell: a bash that runs what is written to it; its PID is in $TARGET
shell() {
	coproc SHELL { exec bash --norc --noprofile 3>&-; }
	TARGET=$SHELL_PID
	STARTED+=("$TARGET")
	told 'echo ready'
}

# told COMMAND: the shell has run it, and has answered with a line
told() {
	echo "$1" >&"${SHELL[1]}"
	read -r -t 120 line <&"${SHELL[0]}"
}

# bats test_tags=full
@test "remote follow: attached, the children of a shell (A16)" {
	shell
	serving "$TARGET"
	watching -f "unix:$SOCKET"
	told 'for i in 1 2 3; do ls / | sort | tail -1 >/dev/null; done; echo done'
	kill -INT "$TAP"
	ended "$TAP" 0 || { cat "$err"; return 1; }
	nothing_lost
	jq -e '[.processes[] | select(.comm == "ls" or .comm == "sort" or .comm == "tail")] | length == 9' "$report"
	jq -e '[.processes[] | select(.comm == "ls") | .totals.allocs > 0 and .totals.unknown_frees == 0] | all' "$report"
	untouched "$TARGET"
}

# begins NAME: the shell starts a program that reads the commands of that file
begins() {
	told "HEAPTAP_COUNT='$BATS_TEST_TMPDIR/count' LD_PRELOAD='$ORACLE/count.so' '$T/step' <'$BATS_TEST_TMPDIR/$1' >/dev/null & echo \$!"
}

# seen_and_lost_of PID: events of that process in the report, and its lost ones, are together those of the oracle
seen_and_lost_of() {
	"$ORACLE/count-read" "$(count_page "$1")" >"$BATS_TEST_TMPDIR/count.json"
	jq -e -n --argjson pid "$1" --slurpfile r "$report" --slurpfile c "$BATS_TEST_TMPDIR/count.json" '
		[[$r[0].processes[] | select(.pid == $pid)] | last] as $p | $c[0].totals as $o
		| [($p | map(.totals.allocs + .lost.allocs) | add), ($p | map(.totals.frees + .totals.unknown_frees + .lost.frees) | add)] as $have
		| [$o.allocs, $o.frees + $o.unknown_frees] as $want
		| if $have == $want then true else error("PID \($pid): report \($have), oracle \($want), lost \($p | map(.lost))") end'
}

# cut_and_mended BACKEND: children begin and end while the client is away
cut_and_mended() {
	own_libc
	shell
	serving -b "$1" "$TARGET"
	start_as proxy python3 "$NET/proxy.py" "$BATS_TEST_TMPDIR/net/p" "$SOCKET"
	PROXY=$PID
	wait_for test -S "$BATS_TEST_TMPDIR/net/p"
	watching -f "unix:$BATS_TEST_TMPDIR/net/p"
	# One that stays, one that will end.
	mkfifo "$BATS_TEST_TMPDIR/stay" "$BATS_TEST_TMPDIR/end" "$BATS_TEST_TMPDIR/new"
	begins stay
	STAYS=$line
	exec 7>"$BATS_TEST_TMPDIR/stay"
	begins end
	ENDS=$line
	exec 8>"$BATS_TEST_TMPDIR/end"
	echo "alloc 1000 48" >&7
	echo "alloc 100 48" >&8
	wait_for has_allocs "$STAYS" 1000
	wait_for has_allocs "$ENDS" 100
	kill -USR1 "$PROXY"
	wait_for grep -q "connection lost" "$err"
	echo "alloc 50 10" >&7
	echo "alloc 20 10" >&8
	exec 8>&-
	wait_for gone "$ENDS"
	# One that began and ended unseen, and one that goes on.
	told "'$T/leak' >/dev/null; echo done"
	begins new
	NEW=$line
	exec 9>"$BATS_TEST_TMPDIR/new"
	kill -USR2 "$PROXY"
	wait_for grep -q "connection is back" "$err"
	echo "alloc 7 10" >&7
	echo "alloc 30 24" >&9
	wait_for has_allocs "$NEW" 30
	kill -INT "$TAP"
	wait_for gone "$TAP"
	seen_and_lost_of "$STAYS"
	seen_and_lost_of "$ENDS"
	jq -e --argjson p "$ENDS" '.processes[] | select(.pid == $p and .comm == "step") | .ended' "$report"
	jq -e --argjson p "$NEW" '.processes[] | select(.pid == $p and .comm == "step") | .scan.definite.blocks == 0' "$report"
	jq -e --argjson p "$TARGET" '.processes[] | select(.pid == $p) | .notes[] | test("^1 child")' "$report"
	jq -e '[.processes[] | .scan.definite.blocks // 0] | add == 0' "$report"
	untouched "$TARGET"
	exec 7>&- 9>&-
}

# has_allocs PID NR: so many allocations of the process have come to the client
has_allocs() {
	rm -f "$report"
	kill -USR1 "$TAP"
	wait_for test -s "$report"
	jq -e --argjson p "$1" --argjson n "$2" '[.processes[] | select(.pid == $p) | .totals.allocs] | max >= $n' "$report"
}

# bats test_tags=full
@test "remote follow: the link is cut: children that begin and end meanwhile are told or counted (G7)" {
	cut_and_mended bpf
}

# bats test_tags=full
@test "remote follow: the same by ptrace (G7)" {
	cut_and_mended ptrace
}

# bats test_tags=full
@test "remote follow: children on a slow link that loses its connection, verdicts included (G7)" {
	serving --wait -- "$T/fork" 5
	start_as proxy python3 "$NET/proxy.py" "$BATS_TEST_TMPDIR/net/p" "$SOCKET" delay=40 jitter=20 segment=700
	wait_for test -S "$BATS_TEST_TMPDIR/net/p"
	watched -f "unix:$BATS_TEST_TMPDIR/net/p"
	[ "$status" -eq 0 ] || { cat "$err"; return 1; }
	nothing_lost
	jq -e '.processes | length == 6 and (map(.scan.definite.blocks) | sort == [2, 9, 9, 9, 9, 9])' "$report"
	ended "$SERVE" 0
}

@test "remote follow: the agent serves children (A16)" {
	[ -x "$O/musl/heaptap-agent" ] || skip "no agent here, as there is no musl-gcc: see make agent-musl"
	own_libc
	HEAPTAP=$O/musl/heaptap-agent serving --wait -- "$T/fork" 3
	watched -f "unix:$SOCKET"
	[ "$status" -eq 0 ] || { cat "$err"; return 1; }
	ended "$SERVE" 0
	jq -e '.processes | length == 4 and (map(.scan.definite.blocks) | sort == [2, 9, 9, 9])' "$report"
}
