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

# told FUNCTION: calls that the program has counted
told() { awk -v name="$1" '$2 == "calls" && $3 == name { print $4 }' "$out"; }

# A jump may leave a call before the program has counted it, and behind where heaptap has.
@test "inline: signals jump out of malloc and free, and later calls are seen (T5)" {
	local jumps=1000 begun seen lost
	harsh jumps "$jumps"
	begun=$(told malloc)
	seen=$(field .functions.malloc)
	lost=$(field ' | .lost.allocs + .lost.other')
	echo "begun $begun, seen $seen, lost $lost"
	[ "$seen" -gt $((begun / 2)) ]
	[ $((seen + lost)) -ge $((begun - jumps)) ]
	[ $((seen + lost)) -le $((begun + jumps)) ]
}

# Which coroutine's call returns next is open at each moment.
@test "inline: signals switch between coroutines in the middle of malloc and free (T5)" {
	local i
	for ((i = 0; i < HEAPTAP_ROUNDS; i++)); do
		harsh turns 500
		[ "$(field .functions.malloc)" -gt 0 ]
	done
}
