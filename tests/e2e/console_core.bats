#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# The console: cores of running processes, which gdb opens.

load ../lib/common
load ../lib/console

setup() {
	export HEAPTAP_RUN_DIR=$BATS_TEST_TMPDIR/run XDG_STATE_HOME=$BATS_TEST_TMPDIR/state
	STARTED=()
	cd "$BATS_TEST_TMPDIR" || return 1
	case $(uname -m) in
	x86_64 | aarch64) ;;
	*) skip "no cores on $(uname -m)" ;;
	esac
}

# by_gdb CORE PROGRAM COMMAND...: what gdb says, in $output
by_gdb() {
	local core=$1 program=$2 commands=()
	shift 2
	for command; do commands+=(-ex "$command"); done
	output=$(DEBUGINFOD_URLS='' gdb -batch -nx "${commands[@]}" "$program" "$core" 2>&1)
}

# threads_of PID: their ids
threads_of() { ls "/proc/$1/task" | sort -n; }

# all_sleep PID: all threads have come to their time.sleep()
all_sleep() { ! grep -qsvE 'nanosleep|select|poll' "/proc/$1"/task/*/wchan; }

# bats test_tags=core
@test "core: all threads of a process, and the process runs on" {
	start python3 -c '
import threading, time
for i in range(6):
    threading.Thread(target=time.sleep, args=(1000,), daemon=True).start()
print("ready", flush=True)
time.sleep(1000)'
	TARGET=$PID
	wait_for says python3 ready
	wait_for all_sleep "$TARGET"
	threads_of "$TARGET" >threads
	run "$HEAPTAP" console -q "$TARGET" -x 'core python.core'
	[ "$status" -eq 0 ]
	has "python.core: PID $TARGET, 7 threads, "
	has 'stopped for '
	[ "$(stat -c %a python.core)" = 600 ]
	untouched "$TARGET"
	by_gdb python.core "$(readlink -f "/proc/$TARGET/exe")" 'info threads' 'thread apply all bt'
	grep -o 'LWP [0-9]*' <<<"$output" | awk '{ print $2 }' | sort -nu | diff threads -
	[ "$(grep -c ' in .*clock_nanosleep\| in .*select\|#0 .*clock_nanosleep' <<<"$output")" -ge 7 ]
}

# bats test_tags=full
@test "core: memory is as it was: gdb finds the block that the list has" {
	coproc PLANT { exec "$T/contents" 2>/dev/null 3>&-; }
	TARGET=$PLANT_PID
	STARTED+=("$TARGET")
	read -r -t 120 _ <&"${PLANT[0]}"
	asking "$TARGET" -q
	echo >&"${PLANT[1]}"
	read -r -t 120 _ at <&"${PLANT[0]}"
	ask 'core a.core'
	has '1 thread, '
	leave
	by_gdb a.core "$T/contents" "p *(struct planted *)$at" 'p contents_variable' 'p *contents_variable@1' 'bt'
	has 'number = 1234605616436508552, fraction = 2.5, negative = -7'
	has '<contents_code>'
	has '= {1, 2, 3, 4}'
	# Where CPUs of AMD have the vector registers, gdb before 14 finds too few bytes.
	lacks xstate
	has 'in main ('
	untouched "$TARGET"
}

# waited_for [OPTION]: a core of step when its caller allocates next, where its thread is in the call
waited_for() {
	stepping
	asking "$TARGET" -q "$@"
	step 'alloc 1 100'
	ask 'wait allocs>0 60s'
	ask 'core a.core 99'
	has '99: there is no such caller'
	printf 'core a.core 1\nhelp quit\n' >&"${CON[1]}"
	step 'burst 3'
	[ ! -e a.core ]
	# The console says nothing when it begins to wait: so again and again.
	nr=1
	until read -r -t 1 output <&"${CON[0]}"; do
		[ "$nr" -lt 100 ]
		step 'alloc 1 100'
		nr=$((nr + 1))
	done
	has "a.core: PID $TARGET, 1 thread, "
	has "in the call of thread $TARGET"
	ask status
	leave 2
	untouched "$TARGET"
	# The thread stands where the call returns, on new kernels in the page of the kernel between.
	by_gdb a.core "$T/step" 'bt'
	grep -q '^#[0-3] .*step_allocates' <<<"$output" || { echo "$output"; return 1; }
	rm a.core
	kill -KILL "$TARGET"
	wait_for gone "$TARGET"
}

# bats test_tags=full,ptrace,inline
@test "core: when a caller allocates next, and its thread is the first" {
	unset HEAPTAP_NO_CODE
	waited_for
	waited_for --backend inline
	waited_for --backend ptrace
}

# bats test_tags=full
@test "core: a limit, no file that is there, no other machine, no process" {
	stepping
	asking "$TARGET" -q
	ask 'set core-limit 64K'
	ask show
	has 'core-limit  64.0 KiB'
	ask 'core small.core'
	has 'left out by core-limit'
	[ "$(stat -c '%b' small.core)" -lt 400 ]
	ask 'core small.core'
	has 'not overwritten'
	ask 'set core-limit much'
	has 'must be a size'
	ask 'core ./none/a.core'
	has 'No such file'
	ask 'core a.core x'
	has 'must be the id of a caller'
	kill -KILL "$TARGET"
	wait_for gone "$TARGET"
	ask 'core a.core'
	has 'no such process runs'
	[ ! -e a.core ]
	leave 2
	stepping
	mkdir -m 700 sock
	start "$HEAPTAP" serve --listen "unix:$PWD/sock/s" "$TARGET"
	wait_for grep -qs 'heaptap connect' "$BATS_TEST_TMPDIR/heaptap.err"
	run "$HEAPTAP" console -q "unix:$PWD/sock/s" -x 'core a.core'
	[ "$status" -eq 2 ] || { echo "status $status: $output"; return 1; }
	has 'contents of memory stay on the machine of the process'
}

@test "core: a full disk leaves no half of a core" {
	[ "$(id -u)" -eq 0 ] || skip "not root: cannot mount"
	spinning
	mkdir small
	mount -t tmpfs -o size=64k none small || skip "cannot mount a tmpfs"
	run "$HEAPTAP" console -q "$TARGET" -x 'core small/a'
	left=$(ls small)
	umount small
	[ "$status" -eq 5 ]
	has 'No space left'
	[ -z "$left" ]
	untouched "$TARGET"
}
