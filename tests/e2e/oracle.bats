#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# The oracle and the targets' own words agree, without heaptap: what the other tests compare with is right.
#
# bats file_tags=full

load ../lib/common

# oracle_agrees PROGRAM ARGS...
oracle_agrees() {
	local page word kind a b c have lines=0
	env HEAPTAP_COUNT="$BATS_TEST_TMPDIR/count" LD_PRELOAD="$ORACLE/count.so" "$@" >"$BATS_TEST_TMPDIR/out"
	page=$(ls "$BATS_TEST_TMPDIR"/count.* | head -1)
	"$ORACLE/count-read" "$page" >"$BATS_TEST_TMPDIR/count.json"
	[ "$(jq .untracked "$BATS_TEST_TMPDIR/count.json")" -eq 0 ]
	while read -r word kind a b c; do
		case $word/$kind in
		expect/calls) have=$(jq --arg f "$(names_of_symbols "$a")" '.functions[$f] // 0' "$BATS_TEST_TMPDIR/count.json") ;;
		expect/failed) b=$a have=$(jq .totals.failed_allocs "$BATS_TEST_TMPDIR/count.json") ;;
		expect/unknown) b=$a have=$(jq .totals.unknown_frees "$BATS_TEST_TMPDIR/count.json") ;;
		*) continue ;;
		esac
		lines=$((lines + 1))
		[ "$have" = "$b" ] || { echo "$kind $a: oracle $have, program $b"; return 1; }
	done <"$BATS_TEST_TMPDIR/out"
	[ "$lines" -gt 0 ]
}

setup() { STARTED=(); }

@test "oracle: leaking program" { oracle_agrees "$T/leak" --expect; }
@test "oracle: realloc in all forms" { oracle_agrees "$T/order"; }
@test "oracle: 8 threads" { oracle_agrees "$T/threads"; }
@test "oracle: 2000 threads" { oracle_agrees "$T/threads" 2000 20; }
@test "oracle: all operators" { oracle_agrees "$T/operators"; }
@test "oracle: exceptions out of operator new" { oracle_agrees "$T/exceptions"; }
@test "oracle: longjmp out of an allocator" { oracle_agrees "$T/longjmp"; }
@test "oracle: handlers that allocate" { oracle_agrees "$T/signals"; }
@test "oracle: cancelled threads" { oracle_agrees "$T/cancel" 20; }
@test "oracle: failing calls" { oracle_agrees "$T/failed"; }
@test "oracle: before and after main" { oracle_agrees "$T/early"; }

@test "oracle: a child counts into a page of its own" {
	oracle_agrees "$T/fork" 3
	[ "$(ls "$BATS_TEST_TMPDIR"/count.* | wc -l)" -ge 4 ]
}

@test "oracle: the page stays after SIGKILL" {
	env HEAPTAP_COUNT="$BATS_TEST_TMPDIR/count" LD_PRELOAD="$ORACLE/count.so" "$T/exitcodes" signal 9 || true
	"$ORACLE/count-read" "$BATS_TEST_TMPDIR"/count.* | jq -e '.functions.malloc == 5 and .totals.live_bytes == 55'
}
