#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# Programs that code inside them could harm, with --backend inline.

load ../lib/common

setup_file() {
	[ "$(uname -m)" = x86_64 ] || skip "the inline source knows x86_64 only"
}

# harsh WHAT...: it ends as without heaptap
harsh() {
	traced -q --backend inline --no-scan -- "$T/harsh" "$@"
	[ "$(jq -r .backend "$report")" = inline ]
	[ "$status" -eq 0 ] || { echo "status $status"; cat "$err" "$out"; return 1; }
}

# counts_all: each call is seen
counts_all() {
	nothing_lost
	as_told calls
}

@test "inline: a program that may not read unaligned words (T5)" {
	harsh align
	counts_all
}

# The kernel reads the pages with jumps again from where they come from.
@test "inline: a program that drops its code (T5)" {
	traced -q --backend inline --no-scan -- "$T/drops"
	[ "$status" -eq 0 ] || { echo "status $status"; cat "$err" "$out"; return 1; }
	nothing_lost
	as_told allocs
}

# The counter is read neither for the order of calls nor for the time of waits.
@test "inline: a program that may not read the CPU's counter, in all of its threads (T5)" {
	[ "$(nproc --all)" -le 4 ] || skip "where stamps are times, a program that forbids the counter later ends"
	harsh counter
	counts_all
}
