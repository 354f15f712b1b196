#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# A board of another CPU, and its host: tests/arch/board.sh says what is where. The board does what is written to its
# console (tests/kernels/init.c); heaptap runs here, with the board's programs and their symbols in $BOARD/sysroot.

load ../lib/common
# shellcheck source=tests/kernels/machine.sh
. "$ROOT/tests/kernels/machine.sh"

LOG=${BOARD:?tests/arch/board.sh runs this}/log
SYSROOT=$BOARD/sysroot

# ---- the board ----

setup_file() {
	ip link set lo up
	rm -rf "$BOARD/net" "$BOARD/console"
	mkdir -m 700 "$BOARD/net"
	mkfifo "$BOARD/console"
	: >"$LOG"
	# Both ends of its input, so that it does not end between two orders.
	eval "exec $(cat "$BOARD/machine")" <>"$BOARD/console" >"$LOG" 2>&1 3>&- &
	echo $! >"$BOARD/pid"
	wait_long grep -q '^GUEST-READY' "$LOG" || { tail -n 20 "$LOG" >&3; return 1; }
	for module in $BOARD_MODULES; do
		[ ! -e "$BOARD/root/$module.ko" ] || order insmod "/$module.ko"
	done
	order net 10.0.2.15
}

teardown_file() {
	local pid
	pid=$(cat "$BOARD/pid")
	echo end >"$BOARD/console"
	wait_long gone "$pid" || kill -KILL "$pid"
}

# End the processes of a test: the next test may look for the same names.
teardown() {
	end_started
	for name in agent step; do
		send kill "$name" 9
		wait_long has_answers "$ORDER"
		send wait "$name"
		wait_long has_answers "$ORDER"
	done
}

# wait_long COMMAND...: as wait_for; an emulated machine on a busy one may need minutes for its start
wait_long() {
	guest_until "$LOG" "$(cat "$BOARD/pid")" "$@" || { echo "waited in vain for: $*"; return 1; }
}

nr_answers() { awk '/^GUEST-STATUS/ { n++ } END { print n + 0 }' "$LOG"; }

has_answers() { [ "$(nr_answers)" -ge "$1" ]; }

# send ORDER...: the board begins it; $ORDER is its number
send() {
	ORDER=$(($(nr_answers) + 1))
	echo "$*" >"$BOARD/console"
}

# answer: what the board said to the last order, GUEST-lines left out
answer() {
	awk -v n="$ORDER" '/^GUEST-BEGIN/ { on = ++k == n; next } /^GUEST-STATUS/ { on = 0 } on' "$LOG"
}

# answered [STATUS]: the last order has ended so
answered() {
	local status
	wait_long has_answers "$ORDER"
	status=$(sed -n 's/^GUEST-STATUS //p' "$LOG" | sed -n "${ORDER}p")
	[ "$status" -eq "${1:-0}" ] || { echo "status $status on the board"; answer | tail -n 20; return 1; }
}

# order ORDER...: and it ends well
order() {
	send "$@"
	answered
}

# heard WORDS: the board said so since the last order began, whoever it was
heard() { awk -v n="$ORDER" '/^GUEST-BEGIN/ { k++ } k >= n' "$LOG" | grep -q -- "$1"; }

# ---- the host ----

# connecting [OPTIONS] ADDRESS: heaptap here, in the background; its pid is in $TAP
connecting() {
	report=$BATS_TEST_TMPDIR/report.json
	err=$BATS_TEST_TMPDIR/heaptap.err
	rm -f "$report"
	start "$HEAPTAP" connect --sysroot "$SYSROOT" --max-pause 60s -o "$report" "$@"
	TAP=$PID
}

is_connected() { gone "$TAP" || grep -q 'connected;' "$err"; }

# serving_board [OPTIONS] TARGET...: the board serves in the background, as "agent"
serving_board() {
	order start agent /agent serve --max-pause 60s --insecure-tcp --listen tcp://10.0.2.15 --token-file /token "$@"
	wait_long heard 'heaptap connect tcp'
}

# line_of TARGET WORDS: of its source
line_of() { grep -n "$2" "$ROOT/tests/targets/$1.c" | head -n1 | cut -d: -f1; }

# leaks_are_told FILE [KIND...]: what "leak --expect" printed is in the report, with function, file and line of what leaks
leaks_are_told() {
	out=$1
	as_told "${@:2}"
	nothing_lost
	# Old pointers that lie about may keep one or two.
	jq -e '.processes[0].scan.definite.blocks as $n | $n >= 30 and $n <= 32' "$report" ||
		{ field .scan; return 1; }
	jq -e --argjson line "$(line_of leak 'malloc(SETTING_SIZE)')" '
		[.processes[0].stacks[] | select(any(.frames[]; .function == "load_settings"
			and .line == $line and (.file | endswith("tests/targets/leak.c"))))
			| .definite.blocks] | add >= 10' "$report" ||
		{ jq -c '.processes[0].stacks[] | [.definite, .frames]' "$report" | head -n 5; return 1; }
}

# told: the last order's output as a file
told() {
	answer >"$BATS_TEST_TMPDIR/told"
	echo "$BATS_TEST_TMPDIR/told"
}

# fetch FILE: from the board, into $BATS_TEST_TMPDIR
fetch() {
	order hex "$1"
	answer | perl -ne 'chomp; print pack "H*", $_' >"$BATS_TEST_TMPDIR/$(basename "$1")"
}

# without_names REPORT: what board and host must agree on; the board knows no names
without_names() {
	jq -S 'del(.backend, '"$OF_THE_RUN"') | .processes[]
		|= (del(.pid) | .scan |= del(.pause_ns, .scanned_bytes) | .totals |= del(.peak_time_ns)
		| .stacks |= (map(del(.id, .why) | .frames |= map([.module, .build_id, .offset]))
			| sort_by([.function, .frames])))' "$1"
}

# same_as_agent REPORT HERE: the agent's own report is that of its recording, read here. It has no sums by thread and by
# module, no sentence and no places, which are made of names, and its times are not yet those of a recording.
same_as_agent() {
	local file
	for file; do
		without_names "$file" | jq 'del(.processes[] | .timeline, .threads, .modules, .verdict, .wrappers, .stacks[].place)' >"$file.same"
	done
	diff "$1.same" "$2.same" >"$1.differences" || { head -n 40 "$1.differences"; return 1; }
}

# stepping_board: the target that does what it is told, as "step"
stepping_board() {
	order start step /step
	wait_long heard '^ready'
	step_board alloc 10 100
}

step_board() {
	order tell step "$@"
	wait_long heard '^ok'
}

# in_between: some calls, of which every one must be seen
in_between() {
	step_board alloc 12 50
	step_board free 14
	step_board burst 1000
	step_board alloc 3 70
}

as_in_between() {
	nothing_lost
	is .totals.unknown_frees 2
	is '.functions.free' 1014
	is .totals.live_blocks 3
	is .scan.reachable.blocks 3
	is .scan.definite.blocks 0
}

# free_again: runs, and nobody traces it
free_again() {
	order status step
	answer | grep -q '^TracerPid:	0'
	answer | grep -q '^State:	[RS]'
}

@test "board: a program from its start, over TCP: counts, function, file, line, leaks (G5)" {
	send /agent serve --max-pause 60s --insecure-tcp --listen tcp://10.0.2.15 --token-file /token --wait -- /leak --expect
	wait_long heard 'heaptap connect tcp'
	connecting -w "$BATS_TEST_TMPDIR/r.heaptap" --token-file "$BOARD/token" tcp://127.0.0.1
	wait_long gone "$TAP"
	ended "$TAP" 0 || { cat "$err"; false; }
	answered
	leaks_are_told "$(told)"
	# and so does what was recorded here
	without_names "$report" >"$BATS_TEST_TMPDIR/live"
	report=$BATS_TEST_TMPDIR/replayed.json
	"$HEAPTAP" report --sysroot "$SYSROOT" -o "$report" "$BATS_TEST_TMPDIR/r.heaptap"
	leaks_are_told "$BATS_TEST_TMPDIR/told"
	without_names "$report" | diff "$BATS_TEST_TMPDIR/live" -
}

@test "board: a program from its start, over a line of bytes, in all its forms (G5)" {
	local program
	for program in "$SYSROOT"/leak*; do
		program=$(basename "$program")
		connecting "unix:$BOARD/net/line"
		send on /dev/vport1p1 /agent serve --max-pause 60s --stdio -- "/$program" --expect
		wait_long gone "$TAP"
		ended "$TAP" 0 || { echo "$program"; cat "$err"; false; }
		answered
		# A static program's start allocates too.
		leaks_are_told "$(told)" live failed unknown
		is .exe "/$program"
	done
}

@test "board: a process that runs is served, let go, and served again" {
	stepping_board
	serving_board step
	for round in 1 2; do
		connecting --token-file "$BOARD/token" tcp://127.0.0.1
		wait_long is_connected
		in_between
		kill -INT "$TAP"
		wait_long gone "$TAP"
		ended "$TAP" 0 || { cat "$err"; false; }
		as_in_between
		[ "$(of_function step_allocates allocs)" -eq 15 ]
		[ "$(of_function step_allocates live_blocks)" -eq 3 ]
		[ "$(of_function step_burst allocs)" -eq 1000 ]
		free_again
	done
	order kill agent 15
	order wait agent
}

@test "board: the agent attaches and records there; the recording is read here" {
	stepping_board
	order start agent /agent attach --max-pause 60s -w /tmp/step.heaptap -o /tmp/step.json step
	wait_long heard 'attached to'
	in_between
	order kill agent 2
	order wait agent
	free_again
	order cat /tmp/step.json
	report=$(told)
	as_in_between
	fetch /tmp/step.heaptap
	report=$BATS_TEST_TMPDIR/here.json
	"$HEAPTAP" report --sysroot "$SYSROOT" -o "$report" "$BATS_TEST_TMPDIR/step.heaptap"
	as_in_between
	[ "$(of_function step_allocates allocs)" -eq 15 ]
	[ "$(of_function step_burst allocs)" -eq 1000 ]
	same_as_agent "$BATS_TEST_TMPDIR/told" "$report"
}

@test "board: a recording of a program there, read here: the same report, and names (G5)" {
	order /agent run --max-pause 60s -w /tmp/leak.heaptap -o /tmp/leak.json -- /leak --expect
	cp "$(told)" "$BATS_TEST_TMPDIR/words"
	fetch /tmp/leak.heaptap
	report=$BATS_TEST_TMPDIR/here.json
	"$HEAPTAP" report --sysroot "$SYSROOT" -o "$report" "$BATS_TEST_TMPDIR/leak.heaptap"
	leaks_are_told "$BATS_TEST_TMPDIR/words"
	order cat /tmp/leak.json
	same_as_agent "$(told)" "$report"
}
