#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# Formats of reports: which one is written, and that all of them show the numbers of JSON.

load ../lib/common

setup() { cd "$BATS_TEST_TMPDIR" || return 1; }

# One process with two callers; 1,000 blocks of the first one are freed again. Needs no root.
list_events() {
	local i
	echo 'process 77 prog /nowhere/prog'
	echo 'map 77 0x400000 0x500000 0x400000 /nowhere/prog'
	echo 'stack 2 77 complete 0x400100 0x400200 0x400300'
	echo 'stack 3 77 complete 0x400110 0x400200 0x400300'
	echo 'alloc 77 1 malloc 0x1000 100 2 1000000000'
	for ((i = 1; i <= 1000; i++)); do
		echo "alloc 77 1 malloc $((0x10000 + i * 16)) $i 2 $((1000000000 + i * 1000000))"
	done
	for ((i = 1; i <= 1000; i++)); do
		echo "free 77 1 free $((0x10000 + i * 16)) 0 $((2000000000 + i * 1000000))"
	done
	echo 'alloc 77 1 calloc 0x2000 5000 3 3500000000'
	echo 'exit 77 0'
}

# bats test_tags=core
@test "formats: --format list needs no file" {
	"$HEAPTAP" report --format list >list
	[ "$(head -n 1 list | awk '{ print $1, $2 }')" = "text .txt" ]
	grep -q '^json  *\.json  *for scripts' list
	[ "$(awk '{ print $1 }' list | sort | uniq -d)" = "" ]
	"$HEAPTAP" run --format list | cmp - list
}

# bats test_tags=core
@test "formats: --format: for what is printed, and for files of other names" {
	list_events >events.txt
	"$HEAPTAP" report --format json events.txt | jq -e '.processes[0].totals.live_bytes == 5100'
	"$HEAPTAP" report --format json -o - events.txt | jq -e .schema
	"$HEAPTAP" report -q --format json -o plain -o r.txt events.txt
	jq -e .schema plain
	grep -q '^prog (pid 77)' r.txt
	run --separate-stderr "$HEAPTAP" report --format docx events.txt
	[ "$status" -eq 2 ]
	[[ $stderr == *"docx: no such format"* ]]
	run --separate-stderr "$HEAPTAP" report -o r.docx events.txt
	[ "$status" -eq 2 ]
	[[ $stderr == *".json"*--format* ]]
	echo 'format json' >config
	HEAPTAP_CONFIG=$PWD/config "$HEAPTAP" report events.txt | jq -e .schema
}

@test "formats: JSON: live bytes over time, with the exact peak, also of a span of time" {
	list_events >events.txt
	"$HEAPTAP" report --format json events.txt >r.json
	jq -e '.processes[0] | .totals as $t | .timeline | length > 100 and length <= 1025
		and (map(.max_bytes) | max) == $t.peak_bytes and last.bytes == $t.live_bytes
		and last.blocks == $t.live_blocks and (map(.time_ns) | . == sort)
		and all(.min_bytes <= .bytes and .bytes <= .max_bytes)' r.json
	"$HEAPTAP" report --format json --between 1500ms,end events.txt >part.json
	jq -e '.processes[0] | .totals as $t | .timeline | length > 100 and first.time_ns >= 2500000000
		and (map(.max_bytes) | max) == $t.peak_bytes' part.json
}

@test "formats: --format: run prints on stderr" {
	"$HEAPTAP" run -q --format json -- "$T/leak" 2>err >out
	jq -e .schema err
}

@test "formats: -o: a device is written in place" {
	list_events >events.txt
	"$HEAPTAP" report -o /dev/null events.txt
	[ -c /dev/null ]
	run --separate-stderr "$HEAPTAP" report -o /dev/full events.txt
	[ "$status" -eq 5 ]
	[[ $stderr == *"No space left"* ]]
}

@test "formats: a reader that goes away ends the report without a message" {
	local i
	{
		list_events
		for ((i = 0; i < 3000; i++)); do
			echo "stack $((i + 10)) 77 complete 0x400100 0x$(printf %x $((0x400400 + i)))"
			echo "alloc 77 1 malloc $((0x900000 + i * 16)) 8 $((i + 10)) 4000000000"
		done
	} | grep -v ^exit >events.txt
	for args in "--format json" "-n 0" --events; do
		# shellcheck disable=SC2086
		"$HEAPTAP" report $args events.txt 2>err | head -n 1 >first
		[ -s first ]
		[ ! -s err ] || { echo "$args"; cat err; return 1; }
	done
	"$HEAPTAP" help run 2>err | true
	[ ! -s err ]
}
