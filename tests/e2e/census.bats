#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# heaptap scan of a process that nobody traces: its blocks from the books of the allocator.

load ../lib/common

# counted PROGRAM [ARGS]: start it with a pipe, and wait until it has printed its truth; its PID is in $TARGET
counted() {
	mkfifo "$BATS_TEST_TMPDIR/lines"
	truth=$BATS_TEST_TMPDIR/truth
	"$@" <"$BATS_TEST_TMPDIR/lines" >"$truth" 2>/dev/null &
	TARGET=$!
	STARTED+=("$TARGET")
	exec 7>"$BATS_TEST_TMPDIR/lines"
	wait_for grep -qs '</malloc>' "$truth"
}

# census [OPTIONS]: of $TARGET, as text in $text and as a list in $list
census() {
	text=$BATS_TEST_TMPDIR/census.txt
	list=$BATS_TEST_TMPDIR/census.csv
	"$HEAPTAP" scan -q --force -o "$text" -o "$list" "$@" "$TARGET"
}

# equals_truth MOST: the live blocks are those that the program has, with their sizes, and at most MOST of the C library
equals_truth() {
	awk '$1 == "block" { printf "%s,%s\n", $2, $3 }' "$truth" | sort >"$BATS_TEST_TMPDIR/wanted"
	awk -F, '$3 == "live" { printf "%s,%s\n", $1, $2 }' "$list" | sort >"$BATS_TEST_TMPDIR/have"
	[ "$(wc -l <"$BATS_TEST_TMPDIR/wanted")" -gt 1000 ]
	[ -z "$(comm -23 "$BATS_TEST_TMPDIR/wanted" "$BATS_TEST_TMPDIR/have" | head -3 | tee /dev/stderr)" ]
	[ "$(comm -13 "$BATS_TEST_TMPDIR/wanted" "$BATS_TEST_TMPDIR/have" | tee /dev/stderr | wc -l)" -le "$1" ]
}

# bats test_tags=core
@test "census: the blocks of a program with three threads are those that it has" {
	counted "$T/census" 1 3 4000
	census
	equals_truth 5
	[ "$(grep -c ',cached,' "$list")" -gt 50 ]
	! grep -q ',definite' "$list"
	! grep -q 'Does not add up' "$text"
	untouched "$TARGET"
}

@test "census: of 64-bit programs, static, stripped and at a fixed address" {
	for program in census-static census-static-pie census-nopie census-stripped; do
		[ -x "$T/$program" ] || skip "$program was not built here: see make targets"
		rm -f "$BATS_TEST_TMPDIR/lines"
		counted "$T/$program" 2 2 2000
		census
		equals_truth 12
		! grep -q 'Does not add up' "$text"
		exec 7>&-
		ended "$TARGET" 0
	done
}

@test "census: of 32-bit programs" {
	for program in census-32 census-32-static; do
		[ -x "$T/$program" ] || skip "$program was not built here: see make targets"
		rm -f "$BATS_TEST_TMPDIR/lines"
		counted "$T/$program" 3 4 2000
		census
		equals_truth 12
		! grep -q 'Does not add up' "$text"
		exec 7>&-
		ended "$TARGET" 0
	done
}

# the sum of a column of $list, where another one has this value
sum_of() { awk -F, -v s="$1" '$3 == s { sum += $2 } END { print sum + 0 }' "$list"; }

@test "census: many blocks, of many threads, again and again" {
	counted "$T/census" 5 8 30000
	for _ in 1 2 3; do
		census
		equals_truth 16
	done
}

@test "census: verdicts without a trace are those of memcheck" {
	kinds
	built
	TARGET=$TARGET
	census
	[ "$(grep -c ',definite' "$list")" -eq 10 ]
	[ "$(grep -c ',indirect' "$list")" -eq 13 ]
	[[ $(cat "$text") == 'leaks '*' in 10 blocks; '* ]]
	run "$HEAPTAP" scan --fail-on definite "$TARGET"
	[ "$status" -eq 1 ]
	run "$HEAPTAP" scan --fail-on definite:1M "$TARGET"
	[ "$status" -eq 0 ]
	run "$HEAPTAP" scan --fail-on growth:5% "$TARGET"
	[ "$status" -eq 6 ]
	untouched "$TARGET"
	tell
	ended "$TARGET" 3
}

@test "census: a process with another allocator, a pause that is too short, a format that a census has not" {
	counted "$T/census" 1 2 2000
	run --separate-stderr "$HEAPTAP" scan --max-pause 1us "$TARGET"
	[ "$status" -ge 3 ]
	[[ $stderr == *"PID $TARGET"* ]]
	run --separate-stderr "$HEAPTAP" scan -o "$BATS_TEST_TMPDIR/x.sarif" "$TARGET"
	[ "$status" -eq 5 ]
	[[ $stderr == *'a census has no format sarif'* ]]
	untouched "$TARGET"
	exec 7>&-
	ended "$TARGET" 0
	[ -x "$T/leak_kinds-musl" ] || skip "leak_kinds-musl was not built here: see make targets"
	"$T/leak_kinds-musl" wait <"$BATS_TEST_TMPDIR/lines" >"$BATS_TEST_TMPDIR/musl.out" &
	TARGET=$!
	STARTED+=("$TARGET")
	exec 7>"$BATS_TEST_TMPDIR/lines"
	wait_for grep -qs ready "$BATS_TEST_TMPDIR/musl.out"
	run --separate-stderr "$HEAPTAP" scan "$TARGET"
	[ "$status" -eq 3 ]
	[[ $stderr == *"no allocator whose books heaptap can read"*"heaptap attach $TARGET"* ]]
}
