#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# The console: memory of a running process. gdb and the program itself know what is in it.

load ../lib/common
load ../lib/console

setup() {
	export HEAPTAP_RUN_DIR=$BATS_TEST_TMPDIR/run XDG_STATE_HOME=$BATS_TEST_TMPDIR/state
	STARTED=()
	cd "$BATS_TEST_TMPDIR" || return 1
}

# planting [PROGRAM]: a started target that plants blocks
planting() {
	coproc PLANT { exec "${1:-$T/contents}" 2>/dev/null 3>&-; }
	TARGET=$PLANT_PID
	STARTED+=("$TARGET")
	read -r -t 120 answer <&"${PLANT[0]}"
	[ "$answer" = ready ]
}

# plant [KIND]: one more block, at $at
plant() {
	echo "${1:-}" >&"${PLANT[1]}"
	read -r -t 120 _ at <&"${PLANT[0]}"
}

# by_gdb ADDRESS FORMAT...: the values, without addresses and names in front, in a file gdb.FORMAT each
by_gdb() {
	local format commands=()
	for format in "${@:2}"; do commands+=(-ex "echo format $format\n" -ex "x/$format $1"); done
	gdb -p "$TARGET" -batch -nx "${commands[@]}" 2>/dev/null |
		awk '/^format / { file = "gdb." $2; next } file && sub(/^0x[^\t]*:\t/, "") { print >file }'
}

# values: of the last print
values() { sed -n 's/^0x[^\t]*:\t//p' <<<"$output"; }

# bats test_tags=core
@test "show: bytes, strings and pointers of a block, from any address in it" {
	planting
	asking "$TARGET" -q
	plant
	ask "show $at"
	has "$at: 72 B by calloc < make_planted < main"
	has '+0x0000  70 6c 61 6e 74 65 64 20  1b 5b 33 31 6d 00 00 00  |planted .[31m...|'
	has '88 77 66 55 44 33 22 11  |'
	has '+0x0000  "planted "'
	grep -q '+0x0010  0x[0-9a-f]*  contents_code in contents$' <<<"$output"
	grep -q '+0x0018  0x[0-9a-f]*  contents_variable+0x4 in contents$' <<<"$output"
	grep -q '+0x0020  0x[0-9a-f]*  byte 4 of 40 B of make_planted < main (0x[0-9a-f]*)$' <<<"$output"
	has "+0x0040  $at  72 B of make_planted < main ($at)"
	[[ $output != *$'\e'* ]]
	wanted=$output
	ask "show 0x$(printf '%x' $((at + 17)))"
	[ "${output#*, caller}" = "${wanted#*, caller}" ]
	leave
	untouched "$TARGET"
}

@test "show: as much as asked for, and what is left out" {
	planting
	asking "$TARGET" -q
	plant long
	ask "show $at"
	has '"far along"'
	has 'and 96.7 KiB more'
	# Lines that repeat are shown once.
	[ "$(grep -c '^  +0x' <<<"$output")" -lt 10 ]
	ask "show $at 64"
	lacks 'far along'
	ask "show $at 1M"
	lacks ' more'
	leave
}

# bats test_tags=core
@test "print: the values that gdb prints" {
	planting
	plant
	local formats=(4xg 8xw 3xh 9xb 2dg 6dw 4db 3uw 5ob 2tb 20c 2ow zg)
	by_gdb "$((at))" "${formats[@]}"
	by_gdb "$((at + 48))" fg
	asking "$TARGET" -q
	for format in "${formats[@]}"; do
		ask "print $at $format"
		values | diff "gdb.$format" -
		[ -s "gdb.$format" ]
	done
	# int contents_variable[4]
	ask 'print contents_variable 4dw'
	[ "$(values | tr '\t' ' ')" = '1 2 3 4' ]
	ask 'print contents_variable'
	[ "$(values | tr '\t' ' ')" = '0x0000000200000001 0x0000000400000003' ]
	ask "print 0x$(printf '%x' $((at + 48))) f"
	[ "$(values)" = 2.5 ]
	values | diff gdb.fg -
	leave
	untouched "$TARGET"
}

@test "print: strings are escaped, addresses are named" {
	planting
	asking "$TARGET" -q
	plant
	ask "print $at s"
	[ "$(values)" = '"planted \x1b[31m"' ]
	ask "print 0x$(printf '%x' $((at + 16))) 3a"
	has 'contents_code in contents'
	has 'contents_variable+0x4 in contents'
	has 'byte 4 of 40 B of make_planted < main'
	leave
}

@test "print, show: what cannot be read, and what is not meant" {
	planting
	asking "$TARGET" -q
	plant
	ask 'print 0x10 4xg'
	has 'print: 0x10: the process has no readable memory there'
	ask "print $at 4q"
	has 'must be a format such as 4xg'
	ask "print $at 100000xg"
	has 'more than 64 KiB'
	ask 'print here'
	has 'must be an address'
	ask 'show 0x10'
	has "in no live block; 'print' shows any memory"
	ask "show $at x"
	has 'must be a size'
	kill -KILL "$TARGET"
	wait_for gone "$TARGET"
	ask "print $at"
	has 'no such process runs'
	leave 2
}

# bats test_tags=full
@test "print, show: not of a recording, and not from another machine" {
	"$HEAPTAP" run -q -w r.heaptap "$T/leak" >/dev/null 2>&1
	run "$HEAPTAP" console -q -x 'show 0x1000' r.heaptap
	[ "$status" -eq 2 ]
	has 'a recording holds no contents of memory'
	planting
	mkdir -m 700 sock
	start "$HEAPTAP" serve --listen "unix:$PWD/sock/s" "$TARGET"
	wait_for grep -qs 'heaptap connect' "$BATS_TEST_TMPDIR/heaptap.err"
	asking "unix:$PWD/sock/s" -q
	plant
	ask "show $at"
	has 'contents of memory stay on the machine of the process'
	ask "print $at"
	has 'contents of memory stay'
	leave 2
}

@test "print: one process of several" {
	planting
	first=$TARGET
	spinning
	run "$HEAPTAP" console -q -x 'print 0x10' -x "set process $first" -x 'print 0x10' -p "$first" -p "$TARGET"
	[ "$status" -eq 2 ]
	has "which process? 'set process PID' chooses one of 2"
	has 'no readable memory'
}
