#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# heaptap scan: a verdict in between, from the heaptap that traces the process.

load ../lib/common

# scanned [OPTIONS] PID: its report is in $report
scanned() {
	report=$BATS_TEST_TMPDIR/scan.json
	status=0
	timeout 120 "$HEAPTAP" scan -q --force -o "$report" "$@" 2>"$BATS_TEST_TMPDIR/scan.err" || status=$?
}

# bats test_tags=core
@test "scan: of an attached process: its verdict, exit status, and the target runs on" {
	kinds
	attached "$TARGET"
	built
	scanned "$TARGET"
	[ "$status" -eq 0 ]
	is .pid "$TARGET"
	is .scan.definite.blocks 10
	is .scan.indirect.blocks 13
	untouched_but_probed
	scanned --fail-on definite "$TARGET"
	[ "$status" -eq 1 ]
	scanned --fail-on definite:1M "$TARGET"
	[ "$status" -eq 0 ]
	scanned --error-exitcode 42 "$TARGET"
	[ "$status" -eq 42 ]
	# As text.
	run --separate-stderr "$HEAPTAP" scan -n 1 "$TARGET"
	[[ $output == 'leaks 1,442 B in 10 blocks, '*'Top 1 of '*' callers with leaks'*'1,442 B in 10 blocks definite'* ]]
	report=$BATS_TEST_TMPDIR/report.json
	detach
	is .scan.definite.blocks 10
	untouched "$TARGET"
	tell
	ended "$TARGET" 3
}

untouched_but_probed() {
	is_running "$TARGET"
	grep -qx 'TracerPid:	0' "/proc/$TARGET/status"
	[[ $(sed -n 's/^State:\t\(.\).*/\1/p' "/proc/$TARGET/status") != [Tt] ]]
}

@test "scan: of a program that run started: as memcheck would say now, and the run goes on" {
	mkfifo "$BATS_TEST_TMPDIR/lines"
	out=$BATS_TEST_TMPDIR/leak_kinds.out
	start bash -c "exec '$HEAPTAP' run --max-pause 60s -o '$BATS_TEST_TMPDIR/report.json' -- '$T/leak_kinds' wait <'$BATS_TEST_TMPDIR/lines' >'$out'"
	TAP=$PID
	exec 7>"$BATS_TEST_TMPDIR/lines"
	wait_for grep -qs ready "$out"
	TARGET=$(pgrep -P "$TAP" -x leak_kinds)
	built
	scanned "$TARGET"
	[ "$status" -eq 0 ]
	is .started true
	is .scan.partial false
	is .scan.definite.blocks 10
	is .scan.unsure.blocks 0
	tell
	ended "$TAP" 3
	report=$BATS_TEST_TMPDIR/report.json
	is .scan.definite.blocks 10
}

# bats test_tags=core
@test "scan: --why: who holds the block at an address, who lost it, and where none is" {
	local addr
	kinds
	attached "$TARGET"
	built
	scanned --why 100 "$TARGET"
	addr=$(jq -r 'first(.processes[0].stacks[] | select(.frames[0].function == "keep_in_global")) | .why.address' "$report")
	scanned --why "$addr" "$TARGET"
	is .scan.why.verdict reachable
	is .scan.why.root.variable global_list
	is .scan.why.address "$addr"
	# Any address in it does.
	scanned --why "$(printf '0x%x' $((addr + 9)))" "$TARGET"
	is .scan.why.root.variable global_list
	scanned --why 0x10 "$TARGET"
	is '.scan.why.chain | length' 0
	run --separate-stderr "$HEAPTAP" scan -n 1 --why 0x10 "$TARGET"
	[[ $output == *'0x10 is in no live block that heaptap saw allocated'* ]]
	detach
}

@test "scan: of nobody, and of several" {
	run "$HEAPTAP" scan 999999999
	[ "$status" -eq 4 ]
	run "$HEAPTAP" scan
	[ "$status" -eq 2 ]
	run "$HEAPTAP" scan -p 1 -p 2
	[ "$status" -eq 2 ]
}

# bats test_tags=full
@test "scan: of one of several attached; of none with --no-scan" {
	local first
	spinning
	first=$TARGET
	spinning
	attached "$first" "$TARGET"
	scanned "$first"
	[ "$(jq '.processes | length' "$report")" -eq 1 ]
	is .pid "$first"
	scanned "$TARGET"
	is .pid "$TARGET"
	report=$BATS_TEST_TMPDIR/report.json
	detach
	# By name, which no other test has.
	cp "$T/spin" "$BATS_TEST_TMPDIR/scan-$$"
	start "$BATS_TEST_TMPDIR/scan-$$"
	first=$PID
	attached --force "$first"
	scanned "scan-$$"
	is .pid "$first"
	report=$BATS_TEST_TMPDIR/report.json
	detach
	attached --no-scan --force "$TARGET"
	run --separate-stderr "$HEAPTAP" scan "$TARGET"
	[ "$status" -eq 3 ]
	[[ $stderr == *"PID $TARGET"*"the heaptap that traces it was started with --no-scan"* ]]
	report=$BATS_TEST_TMPDIR/report.json
	detach
}

# bats test_tags=full
@test "scan: a heaptap that was killed is not asked" {
	spinning
	attached "$TARGET"
	kill -KILL "$TAP"
	wait "$TAP" || true
	# The guard of that heaptap may still be the tracer.
	wait_for untouched "$TARGET"
	run --separate-stderr "$HEAPTAP" scan "$TARGET"
	[ "$status" -eq 0 ]
	[[ $output == *"Census of PID $TARGET"* ]]
	wait_for untouched "$TARGET"
}

# bats test_tags=full
@test "scan and mark: a heaptap that is stopped cannot answer: they say so, and a scan takes a census (A8)" {
	spinning
	attached -w "$BATS_TEST_TMPDIR/spin.heaptap" "$TARGET"
	# A heaptap is asked about processes that it does not trace, too.
	start sleep 300
	kill -STOP "$TAP"
	run -0 timeout 60 "$HEAPTAP" scan "$PID"
	[[ $output == *"heaptap (PID $TAP) is stopped and cannot answer; 'kill -CONT $TAP' resumes it"*"no leaks"* ]]
	# A thread may be changing the books: status 4.
	run timeout 60 "$HEAPTAP" scan "$TARGET"
	[[ $status =~ ^[04]$ && $output == *"heaptap (PID $TAP) is stopped and cannot answer"* ]]
	run -3 timeout 60 "$HEAPTAP" mark "$TARGET" here
	[[ $output == *"heaptap (PID $TAP) is stopped and cannot answer; 'kill -CONT $TAP' resumes it"* ]]
	kill -CONT "$TAP"
	# By inline the target did not wait for the stopped heaptap, so calls may be lost.
	kill -INT "$TAP"
	wait "$TAP" || { [ "$?" -eq 5 ] && by_inline; }
}

# A socket that never answers stands for a heaptap that hangs.
# bats test_tags=full
@test "scan and mark: a heaptap that does not answer is named, and Ctrl-C ends the wait" {
	local command other
	spinning
	install -d -m 700 "$HEAPTAP_RUN_DIR"
	start python3 -c "import os, signal, socket
s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
s.bind('$HEAPTAP_RUN_DIR/%d' % os.getpid())
s.listen()
signal.pause()"
	other=$PID
	wait_for test -S "$HEAPTAP_RUN_DIR/$other"
	for command in "scan $TARGET" "mark $TARGET here"; do
		# shellcheck disable=SC2086
		start "$HEAPTAP" $command
		wait_for grep -q "waiting for the answer of another heaptap (PID $other)" "$BATS_TEST_TMPDIR/heaptap.err"
		kill -INT "$PID"
		ended "$PID" 130
	done
}

# bats test_tags=full
@test "scan: a directory for sockets that is not the user's alone is named" {
	spinning
	mkdir -m 755 "$BATS_TEST_TMPDIR/open"
	export HEAPTAP_RUN_DIR=$BATS_TEST_TMPDIR/open
	run --separate-stderr "$HEAPTAP" mark "$TARGET" here
	[[ "$stderr" == *"$HEAPTAP_RUN_DIR: is not a directory of this user alone"* ]]
	[[ "$stderr" != *"Operation not permitted"* ]]
	attached --no-scan "$TARGET"
	detach
	grep -q "$HEAPTAP_RUN_DIR: is not a directory of this user alone" "$err"
	untouched "$TARGET"
}
