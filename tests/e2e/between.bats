#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# Parts of a recording: between times and markers; its events as text.

load ../lib/common

setup() { cd "$BATS_TEST_TMPDIR" || return 1; }

# of REPORT-OPTIONS...: part.json, of r.heaptap
of() {
	rm -f part.json
	"$HEAPTAP" report -q -o part.json "$@" r.heaptap
}

# number JQ: of the first process of part.json
number() { jq ".processes[0]$1" part.json; }

# says_of LIVE ALLOCATED: in part.json of the step target's blocks
says_of() {
	[ "$(number .totals.live_blocks) $(number .totals.allocs)" = "$1 $2" ] || { cat part.json; return 1; }
}

# list_times: of the allocations of r.heaptap in the order of time, in ns since its beginning
list_times() {
	local begin
	begin=$("$HEAPTAP" report --format json r.heaptap | jq '.time_ns - .duration_ns')
	"$HEAPTAP" report --events r.heaptap | perl -lane 'print $F[-1] - '"$begin"' if $F[0] eq "alloc"' | sort -n >times
	[ "$(wc -l <times)" -gt 100 ]
}

# at TENTHS: the moment when so many tenths of the allocations of list_times were made, whenever a busy machine made them
at() { echo "$(sed -n "$(($(wc -l <times) * $1 / 10 + 1))p" times)ns"; }

# bats test_tags=core
@test "between: markers, set by another heaptap: what a step left behind, then and at the end" {
	stepping
	start "$HEAPTAP" attach --no-scan -w r.heaptap -o whole.json "$TARGET"
	TAP=$PID
	wait_for grep -q 'attached to' "$BATS_TEST_TMPDIR/heaptap.err"
	step "alloc 10 100"
	"$HEAPTAP" mark "$TARGET" before
	step "alloc 7 1000"
	step "free 2"
	"$HEAPTAP" mark "$TARGET" "half way"
	step "alloc 5 50"
	step "free 8"
	"$HEAPTAP" mark "$TARGET" after
	step "free 3"
	kill -INT "$TAP"
	ended "$TAP" 0
	of --between "before,half way"
	says_of 5 7
	[ "$(number .totals.peak_bytes)" -eq 7000 ]
	[ "$(number '.functions.free')" -eq 2 ]
	jq -e '[.processes[0].stacks[] | select(.frames[0].function == "step_allocates")] | length == 1' part.json
	of --between "before,half way,after"
	says_of 2 7
	of --between "before,half way,end"
	says_of 0 7
	of --between "half way,after"
	says_of 0 5
	of --between "start,before"
	says_of 10 10
	of --between "after,end"
	says_of 0 0
	[ "$(number '.totals.unknown_frees')" -eq 0 ]
	of --between start,end
	for key in totals stacks functions; do
		diff <(jq -S ".processes[0].$key | del(.peak_time_ns?, .[]?.definite?)" part.json >/dev/null; jq ".processes[0].$key | length" part.json) \
			<(jq ".processes[0].$key | length" whole.json)
	done
	"$HEAPTAP" report --between "before,half way" r.heaptap >text
	# The report breaks long lines.
	tr -s ' \n' ' ' <text >line
	grep -q 'only blocks allocated from "before" (at .*) to "half way" (at .*) are counted; live: those not freed at "half way"' line
	for wrong in "before,never" "never,end" "after,before" "start,99h"; do
		status=0
		"$HEAPTAP" report --between "$wrong" r.heaptap >out 2>err || status=$?
		[ "$status" -eq 2 ] && [ ! -s out ] && [ "$(wc -l <err)" -eq 1 ] || { echo "$wrong: $status"; cat err; return 1; }
	done
}

@test "between: the parts make the whole, whatever is between them" {
	"$HEAPTAP" run -q --no-check -w r.heaptap -- "$T/threads" 4 5000 >out 2>err
	of
	whole=$(number '.totals | [.allocs, .frees, .alloc_bytes, .live_blocks, .live_bytes]' | tr -d ' \n')
	list_times
	for share in 1 3 9; do
		of --between "start,$(at $share),end"
		mv part.json first.json
		of --between "$(at $share),end"
		both=$(jq -s '[.[].processes[0].totals | [.allocs, .frees, .alloc_bytes, .live_blocks, .live_bytes]] | transpose | map(add)' first.json part.json | tr -d ' \n')
		[ "$both" = "$whole" ] || { echo "$whole is not $both"; return 1; }
	done
}

# marks_of FROM,TO: names of the marks in a report of that part of l.txt
marks_of() {
	rm -f part.json
	"$HEAPTAP" report -q -o part.json --between "$1" l.txt
	jq -r '[.marks[].name] | join(" ")' part.json
}

@test "between: a report has the marks of its part only, also where a mark is what ends the reading" {
	cat >l.txt <<-'END'
		process 77 prog /nowhere/prog
		alloc 77 1 malloc 0x1000 100 0 1000000000
		mark 1500000000 one
		alloc 77 1 malloc 0x2000 100 0 2000000000
		mark 2500000000 two
		alloc 77 1 malloc 0x3000 100 0 3000000000
		mark 3500000000 three
		alloc 77 1 malloc 0x4000 100 0 4000000000
	END
	[ "$(marks_of start,end)" = "one two three" ]
	[ "$(marks_of start,1200ms)" = one ]
	[ "$(marks_of 1200ms,2200ms)" = two ]
	[ "$(marks_of two,three)" = "two three" ]
	[ "$(marks_of two,end)" = "two three" ]
	# The console reads on from one moment to the next, and then knows the mark that ended the first part.
	"$HEAPTAP" console -q -x 'goto 1200ms' -x 'report a.json' -x 'goto 2200ms' -x 'report b.json' l.txt >out
	[ "$(jq -r '[.marks[].name] | join(" ")' a.json)" = one ]
	[ "$(jq -r '[.marks[].name] | join(" ")' b.json)" = "one two" ]
}

@test "between: marks that a report has no room for are those of its part" {
	local i
	{
		printf 'process 77 prog /nowhere/prog\nalloc 77 1 malloc 0x1000 100 0 1000000000\n'
		for ((i = 1; i <= 300; i++)); do printf 'mark %d m%d\n' $((1000000000 + i * 1000000)) "$i"; done
		echo 'alloc 77 1 malloc 0x2000 100 0 2000000000'
	} >l.txt
	# A moment between two marks, the moment of a mark, and the name of one. Reading ends with the mark behind it.
	for part in start,290500us:34 start,290ms:34 start,m290:34 m35,m290:0 start,end:44; do
		rm -f part.json
		"$HEAPTAP" report -q -o part.json --between "${part%:*}" l.txt
		[ "$(jq .marks_left_out part.json)" -eq "${part#*:}" ] || { jq .marks_left_out part.json; return 1; }
	done
	"$HEAPTAP" console -q -x 'goto 290500us' -x 'report a.json' -x 'goto 292500us' -x 'report b.json' l.txt >out
	[ "$(jq .marks_left_out a.json)" -eq 34 ]
	[ "$(jq .marks_left_out b.json)" -eq 36 ]
}

# bats test_tags=full
@test "mark: only where somebody records; a marker is no time" {
	stepping
	status=0
	"$HEAPTAP" mark "$TARGET" here 2>err || status=$?
	[ "$status" -eq 3 ]
	grep -q 'no heaptap of yours traces it' err
	attached "$TARGET"
	status=0
	"$HEAPTAP" mark "$TARGET" here 2>err || status=$?
	[ "$status" -eq 3 ]
	grep -q 'records nothing' err
	for name in 10s end "a,b" "" "$(printf '%070d' 0)"; do
		status=0
		"$HEAPTAP" mark "$TARGET" "$name" 2>err || status=$?
		[ "$status" -eq 2 ] && [ "$(wc -l <err)" -eq 1 ] || { cat err; return 1; }
	done
	detach
}

# same_part FROM,TO: of the file, where reading begins at a seek point, and of a pipe, where it begins at the start
same_part() {
	rm -f part.json pipe.json
	"$HEAPTAP" report -vv -o part.json --between "$1" r.heaptap 2>err || { cat err; return 1; }
	"$HEAPTAP" report -q -o pipe.json --between "$1" - < <(cat r.heaptap)
	cmp part.json pipe.json
}

# bats test_tags=full
@test "between: a part that is read from a seek point on is the same part (F5)" {
	"$HEAPTAP" run -q --no-scan --record-seek 64K -w r.heaptap -- "$T/threads" 4 120000 >out 2>err
	list_times
	for share in 5 7 8; do
		same_part "$(at $share),$(at $((share + 1)))"
		[ "$(jq '.processes[0].totals.allocs > 0' part.json)" = true ]
		grep -q 'reading begins at byte' err
	done
	same_part "$(at 5),end"
	same_part "start,$(at 5)"
	fails grep 'reading begins at byte' err
	# A damaged state is said, and does not become another report.
	byte=$("$HEAPTAP" report -vv --between "$(at 5),end" r.heaptap 2>&1 >out | sed -n 's/.*begins at byte //p')
	printf XXXX | dd of=r.heaptap bs=1 seek=$((byte - 200)) conv=notrunc status=none
	status=0
	"$HEAPTAP" report --between "$(at 5),end" r.heaptap >out 2>err || status=$?
	[ "$status" -eq 2 ] && [ ! -s out ]
	grep -q 'checksum does not match' err
}

# bats test_tags=full
@test "between: seek points of several processes, between markers" {
	"$HEAPTAP" run -q -f --no-scan --record-seek 64K -w r.heaptap -- sh -c "
		'$T/threads' 2 20000; '$T/threads' 3 30000 & '$T/threads' 2 30000; wait" >out 2>err
	list_times
	same_part "$(at 8),$(at 9)"
	grep -q 'reading begins at byte' err
	"$HEAPTAP" run -q --no-scan --record-seek 64K -w m.heaptap -- "$T/marked" sections >out 2>err
	mv m.heaptap r.heaptap
	same_part before,after
}

# begins_at NS: the byte where reading of the part from NS to the end begins; nothing if it is the start
begins_at() {
	"$HEAPTAP" report -vv --between "${1}ns,end" r.heaptap 2>&1 >out | sed -n 's/.*begins at byte //p'
}

# bats test_tags=full
@test "between: right behind a seek point with thousands of live blocks (F5)" {
	"$HEAPTAP" run -q --no-scan --record-seek 64K -w r.heaptap -- "$T/threads" 4 80000 4000 >out 2>err
	to=$("$HEAPTAP" report --format json r.heaptap | jq .duration_ns)
	last=$(begins_at "$to")
	# 128 bytes for each of them are between two points.
	[ "$last" -gt $((4000 * 128)) ]
	from=0
	for ((round = 0; round < 12; round++)); do
		at=$(((from + to) / 2))
		if [ "$(begins_at "$at")" = "$last" ]; then to=$at; else from=$at; fi
	done
	of --between "start,${to}ns"
	[ "$(number .totals.live_blocks)" -gt 3500 ]
	same_part "${to}ns,end"
	grep -q "reading begins at byte $last" err
	# The frees of those blocks are known ones.
	[ "$(number .totals.unknown_frees)" -eq 0 ]
}

# moments GOTO...: what the console reports at the last one
moments() {
	local commands=() at
	for at in "$@"; do
		commands+=(-x "goto $at" -x top)
	done
	rm -f here.json
	"$HEAPTAP" console -vv "${commands[@]}" -x 'report here.json' r.heaptap >out 2>err
}

# bats test_tags=full
@test "goto: later moments are read on, and show what the console shows that goes there at once (F5)" {
	"$HEAPTAP" run -q -f --record-seek 64K -w r.heaptap -- sh -c "
		'$T/threads' 2 10000; '$T/threads' 3 10000 & '$T/threads' 2 20000 1000; wait" >out 2>err
	ns=$("$HEAPTAP" report --format json r.heaptap | jq .duration_ns)
	for share in 2 5 8; do
		moments "$((ns * share / 9))ns"
		fails grep 'reading goes on' err
		mv here.json once.json
		moments 1ns "$((ns / 9))ns" "$((ns / 9))ns" "$((ns * share / 9 - 1))ns" "$((ns * share / 9))ns"
		[ "$(grep -c 'reading goes on' err)" -ge 1 ]
		cmp here.json once.json
		# Back, then on.
		moments "$((ns * 8 / 9))ns" "$((ns / 9))ns" "$((ns * share / 9))ns"
		[ "$(grep -c 'reading goes on' err)" -ge 1 ]
		cmp here.json once.json
	done
	jq -e '.processes[0].totals.allocs > 0' once.json
	# A moment that does not come changes nothing.
	status=0
	moments "$((ns * 8 / 9))ns" 99h || status=$?
	[ "$status" -eq 2 ]
	grep -q 'the recording ends after' err
	cmp here.json once.json
}
