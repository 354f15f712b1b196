#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# Programs with LeakSanitizer, which traces them by ptrace at their end: they end as they do alone.

load ../lib/common

teardown() { end_started; }

# sanitized COMPILER KIND: builds $BATS_TEST_TMPDIR/sanitized; its path is in $program
sanitized() {
	program=$BATS_TEST_TMPDIR/sanitized
	command -v "$1" >/dev/null || skip "no $1"
	"$1" -g -O1 -fno-builtin -pthread "-fsanitize=$2" -o "$program" "$ROOT/tests/targets/sanitized.c" \
		2>"$BATS_TEST_TMPDIR/build.err" || skip "$1 cannot link -fsanitize=$2 here"
}

# told_leaks FILE: the report of LeakSanitizer without PIDs and addresses
told_leaks() { sed 's/==[0-9]*==/==PID==/; s/0x[0-9a-f]*/ADDRESS/g' "$1"; }

# as_alone PROGRAM ARGS...: status, stdout and stderr of the traced program are those of the program alone
as_alone() {
	local alone=0
	"$@" >"$BATS_TEST_TMPDIR/alone.out" 2>"$BATS_TEST_TMPDIR/alone.err" 3>&- || alone=$?
	traced -q "${options[@]}" -- "$@"
	[ "$status" -eq "$alone" ] || { echo "status $status, alone $alone"; cat "$err"; return 1; }
	cmp "$out" "$BATS_TEST_TMPDIR/alone.out"
	diff <(told_leaks "$err") <(told_leaks "$BATS_TEST_TMPDIR/alone.err")
}

# lost_blocks PROCESS: what our report says was lost by lose()
lost_blocks() {
	jq --argjson n "$1" '[.processes[$n].stacks[] | select(any(.frames[]; .function == "lose"))
		| .definite // empty] | [map(.blocks), map(.bytes)] | map(add // 0) | @csv' "$report" | tr -d '"'
}

has_verdict_note() {
	jq -e --argjson n "$1" '.processes[$n].notes | any(test("leak verdict is of the moment"))' "$report" >/dev/null ||
		{ echo "notes: $(jq -c '.processes[].notes' "$report")"; return 1; }
}

# with_leaks COMPILER KIND
with_leaks() {
	local what options=()
	sanitized "$@"
	for what in clean leak threads; do
		as_alone "$program" "$what"
		[ "$what" = clean ] || grep -q 'detected memory leaks' "$err"
		nothing_lost
		has_verdict_note 0
		[ "$(lost_blocks 0)" = "$([ "$what" = clean ] && echo 0,0 || echo 3,369)" ] ||
			{ echo "$what: lost $(lost_blocks 0)"; return 1; }
	done
}

# bats test_tags=core
@test "sanitizers: gcc -fsanitize=leak: the program ends as alone, with our verdict" { with_leaks gcc leak; }
# bats test_tags=full
@test "sanitizers: gcc -fsanitize=address: the program ends as alone, with our verdict" { with_leaks gcc address; }
# bats test_tags=full
@test "sanitizers: clang -fsanitize=address: the program ends as alone, with our verdict" { with_leaks clang address; }

# bats test_tags=full
@test "sanitizers: followed children with LeakSanitizer end as alone, each with a verdict" {
	local options=(-f)
	sanitized gcc leak
	as_alone "$program" fork
	jq -e '.processes | length == 2' "$report"
	has_verdict_note 0
	has_verdict_note 1
	[ "$(lost_blocks 0)" = 3,369 ]
	[ "$(lost_blocks 1)" = 3,369 ]
}

# bats test_tags=full
@test "sanitizers: a program that cannot be traced ends as alone" {
	local what alone
	sanitized clang leak
	for what in clean leak; do
		alone=0
		"$program" "$what" >"$BATS_TEST_TMPDIR/alone.out" 2>/dev/null 3>&- || alone=$?
		run --separate-stderr "$HEAPTAP" run -q -b inline -- "$program" "$what"
		[[ $stderr == *'not traced'* ]] || skip "inline traces it here"
		[ "$status" -eq "$alone" ] || { echo "status $status, alone $alone"; return 1; }
		[ "$output" = "$(cat "$BATS_TEST_TMPDIR/alone.out")" ]
	done
}

# bats test_tags=full
@test "sanitizers: a program that heaptap has left after --duration ends as alone" {
	local alone=0 gate=$BATS_TEST_TMPDIR/gate
	sanitized gcc leak
	"$program" leak >"$BATS_TEST_TMPDIR/alone.out" 2>&1 || alone=$?
	mkfifo "$gate"
	report=$BATS_TEST_TMPDIR/report.json
	start "$HEAPTAP" run -q -t 100ms -o "$report" -- bash -c "read -r _ <'$gate'; exec '$program' leak"
	wait_for test -s "$report"
	echo go >"$gate"
	ended "$PID" "$alone"
	grep -q 'detected memory leaks' "$BATS_TEST_TMPDIR/heaptap.err"
}

# bats test_tags=full
@test "sanitizers: a program that only makes tasks as LeakSanitizer does: the note claims no tracer" {
	traced -q -- "$T/tree" hidden
	[ "$status" -eq 0 ] || { cat "$err"; return 1; }
	grep -qx done "$out"
	[ "${HEAPTAP_BACKEND:-}" != ptrace ] || return 0
	has_verdict_note 0
	jq -e '.processes[0].notes | any(test("made a task by CLONE_UNTRACED")) and all(test("began to trace") | not)' "$report"
}
