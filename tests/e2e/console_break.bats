#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# The console: a process waits when it calls a function, or when one of its callers allocates.

load ../lib/common
load ../lib/console

setup() {
	export HEAPTAP_RUN_DIR=$BATS_TEST_TMPDIR/run XDG_STATE_HOME=$BATS_TEST_TMPDIR/state
	STARTED=()
	cd "$BATS_TEST_TMPDIR" || return 1
}

# waits, runs: is the target stopped? By ptrace its tracer sees to that.
waits() { grep -qE '^State:.*(T \(stopped\)|t \(tracing stop\))' "/proc/$TARGET/status"; }
runs() { ! waits && is_running "$TARGET"; }

nr_events() { find "/proc/$CON_PID/fd" -lname '*perf_event*' 2>/dev/null | wc -l; }

# is_set AT BEFORE: the command has begun. When the console has slept since, no call is missed. Of a function of a file
# there is an event for each CPU, beside those from before.
is_set() {
	helper=$(pgrep -P "$CON_PID" -x holder-of-heapt) || return 1
	[[ $1 != step* ]] || [ "$(nr_events)" -ge $(($2 + $(nproc --all))) ]
}

# breaking AT COMMAND: 'break AT', and then COMMAND of the target, which does not answer. The reply is in $output.
breaking() {
	local line before
	before=$(nr_events)
	printf 'break %s\nhelp quit\n' "$1" >&"${CON[1]}"
	wait_for is_set "$1" "$before"
	works "$CON_PID" 10
	echo "$2" >&"${STEP[1]}"
	output=
	while read -r -t 120 line <&"${CON[0]}"; do
		[[ $line != quit*leave* ]] || break
		output+=$line$'\n'
	done
	wait_for waits
}

@test "break: at any function of a file: the process waits in its call, and lives on if the console is killed" {
	stepping
	asking "$TARGET" -q
	breaking step:step_allocates 'alloc 1 1234'
	if [ "${HEAPTAP_BACKEND:-}" != ptrace ]; then
		has "PID $TARGET is stopped in this call"
	fi
	has "thread $TARGET  step:step_allocates(1, 1234, "
	has '  main (step.c:'
	ask 'continue'
	wait_for runs
	step_answer ok
	step 'alloc 1 10'
	# That of the first command tells nothing of the second one.
	wait_for gone "$helper"
	breaking step_frees 'free 1'
	kill -KILL "$CON_PID"
	wait_for runs
	step_answer ok
	untouched "$TARGET"
	step 'alloc 2 10'
}

# The kernel puts a program off while a signal is pending: the process waits in its call all the same.
@test "break: at any function of a file, where the kernel takes each program at the second try only" {
	stepping
	LD_PRELOAD=$T/libbusy.so asking "$TARGET" -q
	breaking step:step_frees 'free 1'
	if [ "${HEAPTAP_BACKEND:-}" != ptrace ]; then
		has "PID $TARGET is stopped in this call"
	fi
	has "thread $TARGET  step:step_frees(1, "
	ask 'continue'
	step_answer ok
}

# bats test_tags=full
# The program that stops runs for all threads: each event that tells of a call must be there before it.
@test "break: at a function that threads call all the time: each call is told, nobody is left stopped" {
	local rounds=() i
	for i in {1..12}; do
		rounds+=(-x 'break spin:spin_allocates' -x continue)
	done
	start "$T/spin" 0 2
	TARGET=$PID
	wait_for says spin ready
	run timeout 120 "$HEAPTAP" console -q "$TARGET" "${rounds[@]}"
	[ "$status" -eq 0 ] || { echo "$output"; false; }
	[ "$(grep -c 'and waits until' <<<"$output")" -eq 12 ]
	[ "$(grep -c ' spin:spin_allocates(' <<<"$output")" -eq 12 ]
	wait_for runs
	# Broken off: it never comes.
	start "$HEAPTAP" console -q "$TARGET" -x 'break spin:main'
	CON_PID=$PID
	wait_for pgrep -P "$CON_PID" -x holder-of-heapt
	kill -TERM "$CON_PID"
	wait_for gone "$CON_PID"
	wait_for runs
}

# bats test_tags=core
@test "break: at a function: its call with arguments, and the process waits until continue" {
	stepping
	asking "$TARGET" -q --check
	breaking malloc 'alloc 1 12345'
	has "PID $TARGET is stopped in this call"
	has "thread $TARGET  malloc(12345) = 0x"
	has 'step_allocates < main'
	# The other commands work meanwhile.
	ask 'break free'
	has "PID $TARGET waits already"
	ask status
	has '1 block'
	ask scan
	has 'reachable'
	waits
	ask continue
	[ -z "$output" ]
	step_answer ok
	runs
	ask continue
	has 'no process waits'
	breaking free 'free 1'
	has '  free(0x'
	has 'step_frees < main'
	ask continue
	step_answer ok
	leave 2
	untouched "$TARGET"
}

@test "break: at a function, by ptrace: the process stands in its call, and the core has it there" {
	stepping
	asking "$TARGET" -q -b ptrace
	breaking malloc 'alloc 1 12345'
	has "PID $TARGET is stopped in this call"
	has "thread $TARGET  malloc(12345) = 0x"
	if [[ $(uname -m) =~ ^(x86_64|aarch64)$ ]]; then
		ask 'core a.core'
		DEBUGINFOD_URLS='' gdb -batch -nx -ex bt "$T/step" a.core >gdb.out 2>&1
		grep -q '^#0 .*step_allocates' gdb.out || { cat gdb.out; return 1; }
	fi
	ask continue
	step_answer ok
	leave
	untouched "$TARGET"
}

# bats test_tags=full
@test "break: at a caller, not at others; gdb can look at the process" {
	stepping
	asking "$TARGET" -q
	step 'burst 2'
	step 'alloc 1 100'
	ask 'top total-blocks'
	id=$(awk '/step_allocates/ { print $1 }' <<<"$output" | tr -d '#')
	[[ $id =~ ^[0-9]+$ ]]
	printf 'break %s\nhelp quit\n' "$id" >&"${CON[1]}"
	wait_for is_set
	step 'burst 5'
	runs
	echo 'alloc 1 100' >&"${STEP[1]}"
	wait_for waits
	ask status
	if [ "${HEAPTAP_BACKEND:-}" = ptrace ]; then
		ask continue
		step_answer ok
		return
	fi
	DEBUGINFOD_URLS='' gdb -batch -nx -p "$TARGET" -ex 'p nr_blocks' -ex bt >gdb.out 2>&1
	# Of this block, and of the one before: the caller counts it around the call, which has not returned.
	grep -qx '\$1 = [12]' gdb.out || { cat gdb.out; return 1; }
	grep -q '^#[0-3] .*step_allocates' gdb.out
	waits
	ask continue
	step_answer ok
	leave
	untouched "$TARGET"
}

# bats test_tags=full
@test "break: the process runs on when the console ends, by quit, SIGTERM or SIGKILL (A3)" {
	local how
	for how in quit TERM KILL; do
		stepping
		asking "$TARGET" -q
		breaking malloc 'alloc 1 10'
		if [ "$how" = quit ]; then
			leave
		else
			kill "-$how" "$CON_PID"
			wait_for gone "$CON_PID"
		fi
		wait_for runs
		step_answer ok
		wait_for gone "$helper"
		echo quit >&"${STEP[1]}"
		wait_for gone "$TARGET"
	done
}

@test "break: Ctrl-C leaves the command, and the prompt says that a process waits" {
	spinning
	"$ROOT/tests/lib/talk.py" "$HEAPTAP" console "$TARGET" <<SCRIPT
expect heaptap> 
send break calloc
run sleep 0.3
type \\x03
expect heaptap> 
send break malloc
expect this call
expect heaptap (holding)> 
send continue
expect heaptap> 
send quit
end 0
SCRIPT
	untouched "$TARGET"
}

# bats test_tags=full
@test "break: what is no function, no caller, no process, not here" {
	stepping
	asking "$TARGET" -q
	for bad in 'break mallog' 'break 0' 'break 99' 'break' 'continue'; do
		ask "$bad"
		has 'console: '
	done
	printf 'break malloc\nhelp quit\n' >&"${CON[1]}"
	wait_for is_set
	kill -KILL "$TARGET"
	while read -r -t 120 line <&"${CON[0]}"; do
		output=$line
		[[ $line != *'has ended'* ]] || break
	done
	has 'break: the process has ended'
	leave 2
	stepping
	mkdir -m 700 sock
	start "$HEAPTAP" serve --listen "unix:$PWD/sock/s" "$TARGET"
	wait_for grep -qs 'heaptap connect' "$BATS_TEST_TMPDIR/heaptap.err"
	run "$HEAPTAP" console -q "unix:$PWD/sock/s" -x 'break malloc'
	[ "$status" -eq 2 ]
	has 'not stopped from here'
}
