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
	grep -q 'only blocks allocated from "before" (at .*) to "half way" (at .*) are counted; live: those not freed at "half way"' text
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
	ns=$(jq .duration_ns part.json)
	for share in 1 3 9; do
		at=$((ns * share / 10))ns
		of --between "start,$at,end"
		mv part.json first.json
		of --between "$at,end"
		both=$(jq -s '[.[].processes[0].totals | [.allocs, .frees, .alloc_bytes, .live_blocks, .live_bytes]] | transpose | map(add)' first.json part.json | tr -d ' \n')
		[ "$both" = "$whole" ] || { echo "$whole is not $both"; return 1; }
	done
}

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
