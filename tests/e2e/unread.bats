#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# heaptap answers signals also while nobody reads what it prints.

load ../lib/common
load ../lib/remote

# full PIPE: as unread, with no room for another byte
full() {
	unread "$1"
	head -c 65536 /dev/zero >&8
}

# deaf COMMAND...: on a terminal that takes no output, with the lines of stdin typed; its pid is in $TAP
deaf() {
	cat >"$BATS_TEST_TMPDIR/typed"
	start python3 "$BATS_TEST_DIRNAME/../lib/deaf_terminal.py" "$@" <"$BATS_TEST_TMPDIR/typed"
	wait_for says python3 '^pid '
	TAP=$(awk '/^pid/ { print $2 }' "$BATS_TEST_TMPDIR/python3.out")
	STARTED+=("$TAP")
}

writes_to_terminal() { cat "/proc/$1"/task/*/wchan 2>/dev/null | grep -qE 'wait_woken|n_tty_write|tty_write'; }

told() { grep -q "$1: heaptap is busy.* another signal ends heaptap" "$err"; }

# bats test_tags=full
@test "unread: console with commands: Ctrl-C takes the probes out, the next one ends it (A5)" {
	spinning 0 2
	full "$BATS_TEST_TMPDIR/pipe"
	err=$BATS_TEST_TMPDIR/heaptap.err
	start bash -c "exec '$HEAPTAP' console -x report -x report $TARGET >'$BATS_TEST_TMPDIR/pipe' 2>'$err' 8>&-"
	TAP=$PID
	wait_for is_stuck "$TAP"
	has_probes "$TARGET"
	kill -INT "$TAP"
	untouched "$TARGET"
	wait_for told console
	kill -INT "$TAP"
	ended "$TAP" 130
	exec 8>&-
}

# bats test_tags=full
@test "unread: connect: one signal has the probes taken out at the other side, the next one ends it (A5)" {
	spinning 0 2
	serving "$TARGET"
	full "$BATS_TEST_TMPDIR/pipe"
	err=$BATS_TEST_TMPDIR/heaptap.err
	start bash -c "exec '$HEAPTAP' connect --no-scan -i 1s 'unix:$SOCKET' >'$BATS_TEST_TMPDIR/pipe' 2>'$err' 8>&-"
	TAP=$PID
	wait_for is_stuck "$TAP"
	has_probes "$TARGET"
	kill -TERM "$TAP"
	untouched "$TARGET"
	wait_for told connect
	grep -q 'the other side is taking the probes out' "$err"
	kill -TERM "$TAP"
	ended "$TAP" 143
	exec 8>&-
}

# traced_unread [OPTIONS]: system traces a process, whose pid is in $TARGET, until nobody takes its rows; its pid is in $TAP
traced_unread() {
	spinning 0 2
	unread "$BATS_TEST_TMPDIR/pipe"
	err=$BATS_TEST_TMPDIR/heaptap.err
	start bash -c "exec '$HEAPTAP' system --json -i 1s --max-cost 0 --pid $TARGET $* >'$BATS_TEST_TMPDIR/pipe' 2>'$err' 8>&-"
	TAP=$PID
	wait_for has_probes "$TARGET"
	# Now the pipe is full.
	head -c 65536 /dev/zero | dd of=/proc/self/fd/8 oflag=nonblock status=none 2>"$BATS_TEST_TMPDIR/dd.err" || true
	wait_for is_stuck "$TAP"
	has_probes "$TARGET"
}

# bats test_tags=full
@test "unread: system: one signal takes the probes out, the next one ends it (A5)" {
	not_by_inline "system has no inline source"
	for options in "" "--everything"; do
		traced_unread "$options"
		kill -TERM "$TAP"
		untouched "$TARGET"
		wait_for told system
		grep -q 'the probes are out' "$err"
		kill -TERM "$TAP"
		ended "$TAP" 143
		exec 8>&-
		rm "$BATS_TEST_TMPDIR/pipe"
		kill "$TARGET"
	done
}

# bats test_tags=full
@test "unread: top on a terminal that takes nothing: one signal takes the probes out, the next one ends it (A5)" {
	spinning 0 2
	deaf "$HEAPTAP" top "$TARGET" </dev/null
	err=$BATS_TEST_TMPDIR/python3.err
	wait_for has_probes "$TARGET"
	wait_for writes_to_terminal "$TAP"
	kill -TERM "$TAP"
	untouched "$TARGET"
	wait_for told top
	kill -TERM "$TAP"
	wait_for says python3 '^ended -15'
}

# There, Ctrl-C breaks off a command, and its target is traced on.
# bats test_tags=full
@test "unread: console on a terminal that takes nothing: the second Ctrl-C ends it (A5)" {
	spinning 0 2
	deaf "$HEAPTAP" console "$TARGET" <<<$'report\nreport\nreport'
	err=$BATS_TEST_TMPDIR/python3.err
	wait_for has_probes "$TARGET"
	wait_for writes_to_terminal "$TAP"
	kill -INT "$TAP"
	wait_for told console
	has_probes "$TARGET"
	kill -INT "$TAP"
	wait_for says python3 '^ended -2'
	untouched "$TARGET"
}

@test "unread: messages: events are read all the same, and what is left out is counted (A5)" {
	local n line=
	stepping
	unread "$BATS_TEST_TMPDIR/pipe"
	err=$BATS_TEST_TMPDIR/heaptap.err
	start bash -c "exec '$HEAPTAP' attach -o '$BATS_TEST_TMPDIR/%n.json' $TARGET 2>'$BATS_TEST_TMPDIR/pipe' 8>&-"
	TAP=$PID
	until [[ $line == *"attached to 1 process"* ]]; do
		read -r -t "$LIMIT_S" line <&8
	done
	python3 "$BATS_TEST_DIRNAME/../lib/fill_pipe.py" 8
	for n in 1 2 3; do
		step 'alloc 10 100'
		kill -USR1 "$TAP"
		wait_for [ -s "$BATS_TEST_TMPDIR/$n.json" ]
	done
	kill -INT "$TAP"
	start bash -c "exec cat '$BATS_TEST_TMPDIR/pipe' >'$err' 8>&-"
	exec 8>&-
	ended "$TAP" 0
	wait_for grep -q '^heaptap: warning: [1-9][0-9]* messages left out: standard error took none' "$err"
	jq -e '.processes[0].totals.allocs == 30' "$BATS_TEST_TMPDIR/3.json"
}
