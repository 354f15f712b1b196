#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# heaptap without memory: each of its own allocations fails once; the target and the truth of reports do not suffer.
#
# bats file_tags=full

load ../lib/common

# at NR COMMAND...: heaptap's NR-th allocation fails
at() {
	local nr=$1
	shift
	HEAPTAP_FAIL_AT=$nr LD_PRELOAD=$T/libfail.so timeout -k 5 120 "$HEAPTAP" "$@" 2>"$BATS_TEST_TMPDIR/err" 3>&-
}

# Numbers of allocations to fail at: the first ones, later ones at random, the same in each run.
numbers() {
	local i
	RANDOM=${HEAPTAP_SEED:-1}
	echo 1 2 4 5 7 9
	for ((i = 0; i < HEAPTAP_ROUNDS; i++)); do
		echo $((10 + RANDOM % 400))
		[ $((i % 4)) -ne 0 ] || echo $((400 + RANDOM % 1600))
	done
}

# said_why: a report, or a line on stderr
said_why() {
	[ ! -s "$BATS_TEST_TMPDIR/err" ] || return 0
	[ -s "$report" ] || { echo "no report and no word"; return 1; }
}

# is_unwritten: the report could not be written, which is no success (5), is said, and leaves no half of a file
is_unwritten() {
	[ "$status" -eq 5 ] && grep -Eq '^heaptap: report: (.*: )?Cannot allocate memory$' "$BATS_TEST_TMPDIR/err" && [ ! -e "$report" ]
}

# bats test_tags=rounds
@test "faults: run, its N-th allocation fails: the program is as without it, what is reported is right (A7)" {
	report=$BATS_TEST_TMPDIR/report.json
	"$T/leak" >"$BATS_TEST_TMPDIR/control"
	at 0 run -q -o "$report" -- "$T/leak" >/dev/null
	want=$(jq -c '.processes[0] | [.functions, .totals.allocs, .totals.frees, .totals.live_bytes]' "$report")
	for n in $(numbers); do
		rm -f "$report"
		status=0
		at "$n" run -q -o "$report" -- "$T/leak" >"$BATS_TEST_TMPDIR/out" || status=$?
		[[ $status =~ ^(0|3|126)$ ]] || is_unwritten || { echo "N=$n: $status"; cat "$BATS_TEST_TMPDIR/err"; return 1; }
		[ "$status" -ne 0 ] || cmp "$BATS_TEST_TMPDIR/out" "$BATS_TEST_TMPDIR/control"
		said_why || { echo "N=$n: $status"; return 1; }
		[ -s "$report" ] && [ "$(field '.lost | .allocs + .frees + .other')" -eq 0 ] || continue
		have=$(jq -c '.processes[0] | [.functions, .totals.allocs, .totals.frees, .totals.live_bytes]' "$report")
		[ "$have" = "$want" ] || { echo "N=$n: $have, not $want"; cat "$BATS_TEST_TMPDIR/err"; return 1; }
	done
}

# bats test_tags=rounds
@test "faults: attach, its N-th allocation fails: status and reason, the target untouched (A7)" {
	report=$BATS_TEST_TMPDIR/report.json
	spinning
	for n in $(numbers); do
		rm -f "$report"
		status=0
		at "$n" attach -q -t 100ms -o "$report" "$TARGET" >/dev/null || status=$?
		[[ $status =~ ^[0345]$ ]] || { echo "N=$n: $status"; cat "$BATS_TEST_TMPDIR/err"; return 1; }
		said_why || { echo "N=$n: $status"; return 1; }
	done
	untouched "$TARGET"
	kill -TERM "$TARGET"
	ended "$TARGET" 0
}

# bats test_tags=rounds
@test "faults: system, its N-th allocation fails: status and reason, the target untouched (A7)" {
	not_by_inline "system has no inline source"
	start "$T/swell" 65536
	TARGET=$PID
	wait_for says swell ready
	report=$BATS_TEST_TMPDIR/rows
	for n in $(numbers); do
		status=0
		at "$n" system -q --pid "$TARGET" --json -i 1s -t 100ms >"$report" || status=$?
		[[ $status =~ ^[03]$ ]] || { echo "N=$n: $status"; cat "$BATS_TEST_TMPDIR/err"; return 1; }
		said_why || { echo "N=$n: $status"; return 1; }
	done
	untouched "$TARGET"
}

@test "faults: no memory at all from the N-th allocation on (A7)" {
	export HEAPTAP_FAIL_ON=1
	report=$BATS_TEST_TMPDIR/report.json
	spinning
	for n in 3 60 150 300 450 700; do
		status=0
		rm -f "$report"
		at "$n" attach -q -t 100ms -o "$report" "$TARGET" >/dev/null || status=$?
		if [ "$n" -ge 450 ] && [ "$status" -eq 0 ]; then
			# heaptap does not need so many each time. On a busy machine the target may not run meanwhile.
			jq -e ".processes[0] | .pid == $TARGET and (.totals | has(\"allocs\"))" "$report"
			continue
		fi
		[[ $status =~ ^[345]$ ]] || { echo "N=$n: $status"; cat "$BATS_TEST_TMPDIR/err"; return 1; }
		[ -s "$BATS_TEST_TMPDIR/err" ]
	done
	untouched "$TARGET"
}

@test "faults: report FILE, its N-th allocation fails: the report, or status 3 and a word (A7)" {
	report=$BATS_TEST_TMPDIR/report.json
	"$HEAPTAP" run -q -w "$BATS_TEST_TMPDIR/r.heaptap" -- "$T/leak" >/dev/null 2>&1
	for n in {1..16} $(seq 19 31 600); do
		rm -f "$report"
		status=0
		at "$n" report -q -o "$report" "$BATS_TEST_TMPDIR/r.heaptap" || status=$?
		[[ $status =~ ^[035]$ ]] || { echo "N=$n: $status"; cat "$BATS_TEST_TMPDIR/err"; return 1; }
		said_why || { echo "N=$n: $status"; return 1; }
	done
}

@test "faults: what reads recordings, its N-th allocation fails: done, or a status and a word (A7)" {
	local r=$BATS_TEST_TMPDIR/r.heaptap what
	"$HEAPTAP" run -q -w "$r" -- "$T/leak" >/dev/null 2>&1
	for n in {1..16} 31 $(seq 40 45 400); do
		for what in "report --events $r" "diff $r $r" "console -x top $r"; do
			status=0
			# shellcheck disable=SC2086
			at "$n" $what >/dev/null || status=$?
			[[ $status =~ ^[035]$ ]] || { echo "$what, N=$n: $status"; cat "$BATS_TEST_TMPDIR/err"; return 1; }
			[ "$status" -ne 3 ] || [ -s "$BATS_TEST_TMPDIR/err" ]
		done
	done
}

@test "faults: a report for which memory is missing is written with less in it (A7)" {
	local n nr_short=0 r=$BATS_TEST_TMPDIR/r.heaptap sums='.processes[0] | [.totals, .functions, [.stacks[] | [.allocs, .live_bytes]]]'
	"$HEAPTAP" run -q -w "$r" -- "$T/leak" >/dev/null 2>&1
	report=$BATS_TEST_TMPDIR/report.json
	"$HEAPTAP" report -q -o "$report" "$r"
	want=$(jq -c "$sums" "$report")
	for ((n = 1; n <= 600; n += n < 300 ? 1 : 17)); do
		rm -f "$report"
		status=0
		at "$n" report -o "$report" "$r" || status=$?
		grep -q 'not enough memory' "$BATS_TEST_TMPDIR/err" || continue
		nr_short=$((nr_short + 1))
		[ "$status" -eq 0 ]
		[ "$(jq -c "$sums" "$report")" = "$want" ]
		jq -e '.short == true and ([.processes[].stacks[].frames[] | select(.function != null)] | length == 0)' "$report"
	done
	[ "$nr_short" -gt 0 ]
}

@test "faults: a program that could not be traced for want of memory has no verdict for --fail-on (A7)" {
	local n nr_untraced=0
	for ((n = 60; n <= 400; n += 20)); do
		status=0
		at "$n" run -q --fail-on definite -o "$BATS_TEST_TMPDIR/r$n.json" -- "$T/nothing" >/dev/null || status=$?
		grep -q 'not traced' "$BATS_TEST_TMPDIR/err" || continue
		nr_untraced=$((nr_untraced + 1))
		[ "$status" -eq 6 ] || { echo "N=$n: $status"; return 1; }
	done
	[ "$nr_untraced" -gt 0 ]
}

# a_recording: r.heaptap, of a program that leaks
a_recording() {
	traced -q -w "$BATS_TEST_TMPDIR/r.heaptap" -- "$T/leak"
	[ "$status" -eq 0 ]
}

@test "faults: a report of heaptap, traced by heaptap, has no leak and no wrong release" {
	a_recording
	traced -q --fail-on definite --fail-on errors -- \
		"$HEAPTAP" report -o "$BATS_TEST_TMPDIR/again.json" "$BATS_TEST_TMPDIR/r.heaptap"
	[ "$status" -eq 0 ] || { cat "$err"; return 1; }
	is .scan.definite.blocks 0
	nothing_lost
	[ -s "$BATS_TEST_TMPDIR/again.json" ]
}

# ends_when_asked COMMAND...: heaptap attach inside of COMMAND ends with 0 by SIGINT when it traces
ends_when_asked() {
	local outer
	err=$BATS_TEST_TMPDIR/${1##*/}.err
	start "$@"
	outer=$PID
	wait_for is_inner_tracing "$outer"
	# The helpers of the outer one have its command line.
	kill -INT "$(pgrep -P "$outer" -f "^$HEAPTAP attach " || echo "$outer")"
	ended "$outer" 0 || { cat "$err"; false; }
}

# is_inner_tracing OUTER: or it has ended
is_inner_tracing() { gone "$1" || grep -q 'attached to' "$err"; }

@test "faults: heaptap run and attach, traced by heaptap, have no leak and no wrong release" {
	local backend
	for backend in bpf ptrace; do
		# Probes by BPF on the C library would disturb the breakpoints of the inner one.
		traced -q --backend "$backend" --fail-on definite --fail-on errors -- "$HEAPTAP" run -q --backend "$backend" \
			-o "$BATS_TEST_TMPDIR/run-$backend.json" -- "$T/leak"
		[ "$status" -eq 0 ] || { cat "$err"; return 1; }
		nothing_lost
		[ "$(field .totals.allocs)" -gt 100 ]
		spinning
		ends_when_asked "$HEAPTAP" run -q --backend "$backend" --fail-on definite --fail-on errors -o "$BATS_TEST_TMPDIR/outer-$backend.json" -- \
			"$HEAPTAP" attach --max-pause 60s --backend "$backend" -o "$BATS_TEST_TMPDIR/attach-$backend.json" "$TARGET"
		jq -e '.processes[0] | .scan.definite.blocks == 0 and .totals.allocs > 100' "$BATS_TEST_TMPDIR/outer-$backend.json"
		jq -e '.processes[0].totals.allocs > 0' "$BATS_TEST_TMPDIR/attach-$backend.json"
		untouched "$TARGET"
		end_started
	done
	report=$BATS_TEST_TMPDIR/run-bpf.json
	[ "$(field .totals.allocs)" -eq "$(jq .processes[0].totals.allocs "$BATS_TEST_TMPDIR/run-ptrace.json")" ]
}

# Not by BPF: valgrind runs a translation of heaptap's code, so the probe of the trial is never hit.
@test "faults: heaptap run and attach have no error and no leak under memcheck" {
	valgrind -q "$T/exitcodes" exit 3 >/dev/null 2>&1 || [ $? -eq 3 ] || skip "valgrind does not work here"
	local memcheck=(valgrind -q --error-exitcode=99 --leak-check=full --errors-for-leak-kinds=definite
		"--log-file=$BATS_TEST_TMPDIR/log.%p")
	status=0
	"${memcheck[@]}" "$HEAPTAP" run -q --backend ptrace -o "$BATS_TEST_TMPDIR/run.json" -- "$T/leak" >/dev/null \
		2>"$BATS_TEST_TMPDIR/err" 3>&- || status=$?
	[ "$status" -eq 0 ] || { cat "$BATS_TEST_TMPDIR"/log.*; return 1; }
	[ "$(jq .processes[0].totals.live_blocks "$BATS_TEST_TMPDIR/run.json")" -gt 0 ]
	spinning
	ends_when_asked "${memcheck[@]}" "$HEAPTAP" attach --max-pause 60s --backend ptrace -o "$BATS_TEST_TMPDIR/attach.json" "$TARGET"
	jq -e '.processes[0].totals.allocs > 0' "$BATS_TEST_TMPDIR/attach.json"
	untouched "$TARGET"
	# Helpers of heaptap have logs of their own, and end by _exit(): errors of theirs are there.
	fails grep -HE 'Invalid|uninitialised|definitely' "$BATS_TEST_TMPDIR"/log.*
}

@test "faults: a report of heaptap has no error and no leak under memcheck" {
	valgrind -q "$T/exitcodes" exit 3 >/dev/null 2>&1 || [ $? -eq 3 ] || skip "valgrind does not work here"
	a_recording
	# The reader of names, whose filter memcheck does not know, may die: that is said.
	status=0
	valgrind -q --error-exitcode=99 --leak-check=full --errors-for-leak-kinds=definite --log-file="$BATS_TEST_TMPDIR/log" \
		"$HEAPTAP" report -o "$BATS_TEST_TMPDIR/again.json" "$BATS_TEST_TMPDIR/r.heaptap" 2>"$err" || status=$?
	[ "$status" -eq 0 ] || { cat "$BATS_TEST_TMPDIR/log"; return 1; }
	[ "$(jq .processes[0].totals.allocs "$BATS_TEST_TMPDIR/again.json")" -eq "$(field .totals.allocs)" ]
}
