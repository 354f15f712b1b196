#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# heaptap's own memory has a limit, and what it leaves out to stay within it is counted and said.

load ../lib/common

MIB=$((1 << 20))

setup() {
	peak=$BATS_TEST_TMPDIR/peak
	printf '#!/bin/sh\nexec python3 "%s" "%s" "%s" "$@"\n' "$BATS_TEST_DIRNAME/../lib/peak.py" "$peak" "$HEAPTAP" \
		>"$BATS_TEST_TMPDIR/heaptap"
	HEAPTAP=$BATS_TEST_TMPDIR/heaptap
	chmod +x "$HEAPTAP"
}

# took_at_most MIB: heaptap, the program that it ran and its helpers, each of them
took_at_most() {
	[ "$(cat "$peak")" -le $(($1 * MIB)) ] || { echo "took $(($(cat "$peak") / MIB)) MiB, not $1"; return 1; }
}

# is_true: the report is, and sets callers, live_callers, definite and shown
is_true() {
	local facts
	facts=$(python3 "$BATS_TEST_DIRNAME/../lib/folded.py" "$report" "$out") || { echo "$facts"; return 1; }
	read -r callers live_callers definite shown <<<"$(tail -n 1 <<<"$facts")"
	echo "folded $callers callers, $live_callers live; $definite blocks lost; $shown callers shown"
}

# bats test_tags=ptrace,inline
@test "memory: callers without live blocks are folded at --max-memory, sums and verdicts stay exact (T2)" {
	traced --max-memory 40M -- "$T/new_stacks" 40000
	[ "$status" -eq 0 ]
	is_true
	[ "$callers" -ge 2000 ]
	[ "$live_callers" -eq 0 ]
	[ "$definite" -eq 2 ]
	took_at_most 56
	[ "$(grep -c 'from now on: the books have reached --max-memory 40.0 MiB' "$err")" -eq 1 ]
}

# bats test_tags=inline,full
@test "memory: where all callers have live blocks, stacks are shortened, and no verdict changes (T2)" {
	traced --max-memory 40M -- "$T/new_stacks" 48000 lost
	[ "$status" -eq 0 ]
	is_true
	[ "$callers" -ge 2000 ]
	[ "$live_callers" -eq "$callers" ]
	[ "$definite" -eq 48002 ]
	took_at_most 56
}

@test "memory: without a need nothing is folded (T2)" {
	traced -- "$T/new_stacks" 3000 kept
	is_true
	[ "$callers" -eq 0 ]
	[ "$shown" -gt 2900 ]
	fails grep -q 'max-memory' "$err"
}

# bats test_tags=full
@test "memory: text and page say what was folded (T2)" {
	local name=$BATS_TEST_TMPDIR/r
	"$HEAPTAP" run --max-memory 24M -s total-blocks -o "$name.txt" -o "$name.html" -- "$T/new_stacks" 12000 >/dev/null 2>&1
	grep -q '^ *\[folded callers\]$' "$name.txt"
	grep -q 'callers, 0 of them with live' "$name.txt"
	grep -q 'callers, 0 of them with live' "$name.html"
}

# bats test_tags=full
@test "memory: a recording has all callers, and its reader has a limit of its own (T2)" {
	local recording=$BATS_TEST_TMPDIR/r.heaptap
	traced --max-memory 24M -w "$recording" -- "$T/new_stacks" 12000
	is_true
	[ "$callers" -ge 2000 ]
	"$HEAPTAP" report --force -o "$report" "$recording" >/dev/null
	is_true
	[ "$callers" -eq 0 ]
	[ "$shown" -gt 11900 ]
	"$HEAPTAP" report --force --max-memory 16M -o "$report" "$recording" >/dev/null
	is_true
	[ "$callers" -ge 2000 ]
	took_at_most 40
}
