#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# Random heaps whose every verdict is known: no block may be called lost that is not. tests/leaks/run.sh is the long form.
#
# bats file_tags=full

load ../lib/common

# random_heaps HOW SEED...: each right, and of all lost blocks in them at least $least per cent found
random_heaps() {
	local how=$1
	shift
	run env HEAPTAP="$HEAPTAP" O="$O" HOW="$how" "$ROOT/tests/leaks/run.sh" $# 30000 "$1"
	echo "$output"
	[ "$status" -eq 0 ]
	[[ $output =~ found\ ([0-9]+) ]]
	[ "${BASH_REMATCH[1]}" -ge "$least" ]
}

on_library() {
	PRELOAD=$(ldconfig -p | awk -v want="^$1" '$1 ~ want && $0 ~ /x86-64|AArch64/ { print $NF; exit }')
	[ -n "$PRELOAD" ] || skip "$1 is not installed"
	export PRELOAD
}
on_jemalloc() { on_library libjemalloc; }

@test "leaks: random heaps, run: nothing false, most found" { least=90 random_heaps run 101 102 103; }
@test "leaks: random heaps, run, freed memory overwritten: nothing false, nearly all found" { least=96 random_heaps perturb 104 105 106; }
@test "leaks: random heaps, attach: nothing false, most found" { least=85 random_heaps attach 107 108 109; }
@test "leaks: random heaps, a census without a trace: the list of blocks to the byte, nothing false, most found" { least=85 random_heaps census 114 115 116; }
@test "leaks: random heaps, a census of a copy by fork and by precopy: the same list, nothing false, most found" {
	least=85 random_heaps census_fork 119 120
	# Before Linux 6.7 no copy can be made ahead; the report says so, and stops the process.
	if [[ $(uname -r) =~ ^([0-5]\.|6\.[0-6][.-]) ]]; then echo "# no precopy before Linux 6.7" >&3; return; fi
	least=85 random_heaps census_precopy 119 120
}
@test "leaks: random heaps on jemalloc, run: nothing false, most found" { on_jemalloc; least=80 random_heaps run 110 111; }
@test "leaks: random heaps on jemalloc, attach: nothing false, most found" { on_jemalloc; least=75 random_heaps attach 112 113; }
@test "leaks: random heaps on jemalloc, a census without a trace: the list of blocks to the byte, nothing false" { on_jemalloc; least=80 random_heaps census 117 118; }
@test "leaks: random heaps on tcmalloc, a census without a trace: the list of blocks to the byte, nothing false" {
	on_library libtcmalloc_minimal.so
	least=85 random_heaps census 117 118
}
# The debug libraries keep a table of all live blocks.
@test "leaks: random heaps on tcmalloc for debugging, attach: nothing false, most found" {
	on_library libtcmalloc_minimal_debug
	least=90 random_heaps attach 112
}
# Before a block at an aligned address lies the link of a free list, in no block.
@test "leaks: random heaps on mimalloc, attach: nothing false, most found" {
	on_library libmimalloc.so.2
	least=90 random_heaps attach 112 113
}
@test "leaks: random heaps on mimalloc, a census without a trace: the list of blocks, nothing false" {
	on_library libmimalloc.so.2
	least=70 random_heaps census 117 118
}
