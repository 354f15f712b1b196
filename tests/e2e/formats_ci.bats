#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# Formats that other tools read: profiles of pprof, results for CI systems, data of heaptrack.

load ../lib/common

setup() { cd "$BATS_TEST_TMPDIR" || return 1; }

# profile FILE: a profile of pprof as JSON
profile() { python3 "$ROOT/tests/lib/pprof.py" "$1"; }

# same_sums JSON PROFILE: each sample type has the sum that the JSON report has
same_sums() {
	jq -c '[.processes[].stacks[]] | [
		(map(.allocs) | add), (map(.alloc_bytes) | add),
		(map(.live_blocks) | add), (map(.live_bytes) | add),
		(map((.definite.blocks // 0) + (.indirect.blocks // 0)) | add),
		(map((.definite.bytes // 0) + (.indirect.bytes // 0)) | add)]' "$1" >expected
	profile "$2" | jq -c '[.samples[].values] | [
		(map(.alloc_objects) | add), (map(.alloc_space) | add),
		(map(.inuse_objects) | add), (map(.inuse_space) | add),
		(map(.leak_objects) | add), (map(.leak_space) | add)]' >found
	diff expected found
}

# by_function FILE: of a report or a profile: live bytes by the innermost function of the stack, sorted
by_function() {
	case $1 in
	*.json) jq -r '.processes[].stacks[] | select(.live_bytes > 0)
		| "\(.frames[0].function) \(.frames[0].line) \(.live_bytes)"' "$1" ;;
	*) profile "$1" | jq -r '.samples[] | select(.values.inuse_space > 0)
		| "\(.frames[0].function) \(.frames[0].line) \(.values.inuse_space)"' ;;
	esac | awk '{ sum[$1 " " $2] += $3 } END { for (i in sum) print i, sum[i] }' | sort
}

# bats test_tags=core
@test "pprof: the numbers and places of JSON, with verdicts" {
	"$HEAPTAP" run -q -o r.json -o r.pb.gz -- "$T/leak" 2>err >out
	same_sums r.json r.pb.gz
	[ "$(jq '.[5]' found)" -gt 0 ]
	diff <(by_function r.json) <(by_function r.pb.gz)
	profile r.pb.gz | jq -e '.default_sample_type == "inuse_space" and .time_nanos > 1e18 and .duration_nanos > 0
		and ([.samples[].labels.verdict] | unique | contains(["definite", "indirect", "reachable"]))
		and (.mappings | all(.limit > 0 and (.build_id | length) == 40))'
	profile r.pb.gz | jq -e --argjson pid "$(jq '.processes[0].pid' r.json)" \
		'.samples | all(.labels.pid == $pid and .labels.process == "leak")'
}

@test "pprof: inlined functions are lines of one location" {
	"$HEAPTAP" run -q -o r.json -o r.pb.gz -- "$T/leak_cpp" 2>err >out
	jq -e '[.processes[].stacks[].frames[] | select(.inlined)] | length > 0' r.json
	diff <(jq -c '.processes[].stacks[] | [.frames[].function]' r.json | sort -u) \
		<(profile r.pb.gz | jq -c '.samples[] | [.frames[].function]' | sort -u)
}

@test "pprof: several processes in one profile, or a profile each" {
	"$HEAPTAP" run -q -f -o r.json -o r.pb.gz -o 'each-%p.pb.gz' -- "$T/fork" 3 2>err >out
	[ "$(jq '.processes | length' r.json)" -gt 1 ]
	same_sums r.json r.pb.gz
	diff <(jq -r '.processes[] | select(.totals.allocs > 0).pid' r.json | sort) \
		<(profile r.pb.gz | jq -r '.samples[].labels.pid' | sort -u)
	[ "$(ls each-*.pb.gz | wc -l)" -eq "$(jq '.processes | length' r.json)" ]
}

@test "pprof: a recording always makes the same file" {
	"$HEAPTAP" run -q -w r.heaptap -- "$T/leak" 2>err >out
	"$HEAPTAP" report -q -o a.pb.gz -o r.json r.heaptap
	"$HEAPTAP" report -q -o b.pb.gz r.heaptap
	cmp a.pb.gz b.pb.gz
	# The time in the head of gzip would make files of different seconds differ.
	[ "$(od -An -tx1 -j4 -N4 a.pb.gz | tr -d ' ')" = 00000000 ]
	same_sums r.json a.pb.gz
	profile a.pb.gz | jq -e '.time_nanos > 1e18'
}

@test "pprof: losses are comments" {
	printf '%s\n' 'process 77 prog /nowhere/prog' 'alloc 77 1 malloc 0x1000 100 2 1000000000' \
		'lost 77 1 2 3 4' 'exit 77 0' >events.txt
	run "$HEAPTAP" report -q -o r.json -o r.pb.gz events.txt
	[ "$status" -eq 5 ]
	same_sums r.json r.pb.gz
	profile r.pb.gz | jq -e '.comments | any(test("lost: 1 allocations, 2 frees"))'
}

@test "pprof: go reads it" {
	command -v go >/dev/null || skip "no go here: its pprof is not tried"
	"$HEAPTAP" run -q -o r.json -o r.pb.gz -- "$T/leak" 2>err >out
	HOME=$PWD go tool pprof -top -unit=B -sample_index=leak_space r.pb.gz >top
	grep -q "^ *768B .* load_settings" top
	grep -q "^ *10240B .* open_session" top
	HOME=$PWD go tool pprof -raw r.pb.gz >raw
	grep -q '\[FN\]\[FL\]\[LN\]\[IN\]' raw
}
