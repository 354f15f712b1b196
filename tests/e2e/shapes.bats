#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# Shapes of pointers: behind a header of the program's own, with marks in bits that are no address, at ends of blocks.

load ../lib/common

# census_of HOW: the census of headed, in $json
census_of() {
	start "$T/headed" "$1" wait
	TARGET=$PID
	wait_for says headed ready
	json=$BATS_TEST_TMPDIR/$1.json
	"$HEAPTAP" scan -q -o "$json" -o "$BATS_TEST_TMPDIR/$1.txt" "$TARGET"
}

# told KEY VALUE
told() { [ "$(jq -c "$1" "$json")" = "$2" ] || { echo "census: $1 is not $2"; jq -c .scan "$json"; return 1; }; }

# bats test_tags=ptrace,full
@test "shapes: all blocks of a caller behind a header are reachable, and one without a pointer is lost" {
	traced -o "$BATS_TEST_TMPDIR/r.txt" -- "$T/headed" one
	is .scan.possible.blocks 0
	is .scan.definite.blocks 20
	[ "$(of_function lose definite.blocks)" -eq 20 ]
	[ "$(of_function hold reachable.blocks)" -eq 300 ]
	is '.scan.behind_header | [.blocks, .bytes, .header_bytes] | tostring' '[300,30000,[16]]'
	grep -q '^ *29\.3 KiB in 300 blocks reached behind a 16-byte header$' "$BATS_TEST_TMPDIR/r.txt"
	# Pointers behind headers are a chain as any other.
	traced -- "$T/headed" scattered
	is .scan.possible.blocks 300
	is .scan.behind_header null
}

@test "shapes: the header of a wrapper, whose callers have few blocks each" {
	traced -- "$T/headed" wrapper
	is .scan.possible.blocks 0
	[ "$(of_function hold_deep reachable.blocks)" -eq 120 ]
	[ "$(of_function lose definite.blocks)" -eq 20 ]
}

@test "shapes: a census knows headers by the sizes of blocks" {
	census_of one
	told .scan.possible.blocks 0
	told .scan.definite.blocks 20
	told .scan.behind_header.blocks 300
	told .scan.behind_header.header_bytes '[16]'
	grep -q ' in 300 blocks reached behind a 16-byte header$' "$BATS_TEST_TMPDIR/one.txt"
	kill "$TARGET"
	census_of scattered
	told .scan.possible.blocks 300
}

# bats test_tags=full
@test "shapes: pointers with marks hold nothing, and the report names the mask that follows them" {
	traced -o "$BATS_TEST_TMPDIR/r.txt" -- "$T/headed" marked
	is .scan.definite.blocks 320
	is '.scan.tagged | [.blocks, .pointer_mask] | tostring' '[300,"0xffffffffffff"]'
	unbroken <"$BATS_TEST_TMPDIR/r.txt" | grep -q 'pointers with marks in other bits lead to 300 of the 320 lost blocks: --pointer-mask 0xffffffffffff follows them'
	traced --pointer-mask 0xffffffffffff -- "$T/headed" marked
	is .scan.definite.blocks 20
	is .scan.tagged null
	census_of marked
	told .scan.tagged.blocks 300
	told .scan.tagged.pointer_mask '"0xffffffffffff"'
}

# bats test_tags=full
@test "shapes: a recording keeps what a scan says about headers and marks" {
	local how
	for how in one marked; do
		traced --record "$BATS_TEST_TMPDIR/$how.heaptap" -- "$T/headed" "$how"
		jq -c '.processes[0].scan' "$report" >"$BATS_TEST_TMPDIR/live"
		"$HEAPTAP" report -q --force -o "$report" "$BATS_TEST_TMPDIR/$how.heaptap"
		jq -c '.processes[0].scan' "$report" | diff - "$BATS_TEST_TMPDIR/live"
	done
}

# headerless PROGRAM...: trace it with jemalloc
headerless() {
	local lib
	lib=$(ldconfig -p | sed -n 's/.*libjemalloc\.so.* => //p' | head -1)
	[ -n "$lib" ] || skip "no libjemalloc here"
	LD_PRELOAD=$lib traced -- "$@"
}

@test "shapes: begin and end alone: the block behind the end may be lost (T8)" {
	headerless "$T/neighbours" spans
	is .scan.definite.blocks 0
	[ "$(of_function lose possible.blocks)" -ge 990 ]
	[ "$(of_function keep possible.blocks)" -eq 0 ]
	is .scan.behind_header null
}

# bats test_tags=full
@test "shapes: begin and end of different sizes: the block behind an end is lost (T8)" {
	headerless "$T/neighbours" sized
	is .scan.definite.blocks 1000
	[ "$(of_function lose definite.blocks)" -eq 1000 ]
	is .scan.possible.blocks 0
}

# bats test_tags=full
@test "shapes: an array with data and a position in each entry loses nothing (T8)" {
	headerless "$T/neighbours" cursors
	is .scan.definite.blocks 0
	[ "$(of_function keep reachable.blocks)" -ge 800 ]
}

# bats test_tags=full
@test "shapes: a million pointers in a row, and words around that look as containers, lose nothing (T8)" {
	local how
	for how in table shapes; do
		headerless "$T/crowd" "$how"
		is .scan.definite.blocks 0
		is .scan.possible.blocks 0
		[ "$(of_function fill reachable.blocks)" -eq 1000001 ]
	done
}
