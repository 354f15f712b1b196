#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# Releases that are wrong, each with its stacks; right ones are none; what --fail-on makes of errors and growth.

load ../lib/common

# wrong KIND FREER ALLOCATOR: how often, by the functions in the stacks of the release and of the allocation
wrong() {
	jq --arg k "$1" --arg f "$2" --arg a "$3" '
		.processes[0] as $p
		| def has($id; $name): $id != null and any($p.stacks[] | select(.id == $id) | .frames[]; (.function // "") | . == $name or startswith($name + "("));
		[$p.errors[] | select(.kind == $k and has(.free_stack; $f) and has(.alloc_stack; $a)) | .count] | add // 0' "$report"
}

# as_told_wrong: each "expect wrong" line of the program holds, and nothing else was wrong
as_told_wrong() {
	local word what kind count freer allocator sum=0
	while read -r word what kind count freer allocator; do
		[ "$word $what" = "expect wrong" ] || continue
		[ "$(wrong "$kind" "$freer" "$allocator")" -eq "$count" ] ||
			{ echo "$kind by $freer of $allocator: $(wrong "$kind" "$freer" "$allocator"), not $count"; return 1; }
		sum=$((sum + count))
	done <"$out"
	[ "$(jq '[.processes[0].errors[].count] | add // 0' "$report")" -eq $((sum + ${1:-0})) ]
}

# bats test_tags=core
@test "errors: mismatched releases: each with both stacks, right ones are none" {
	traced -- "$T/misuse"
	[ "$status" -eq 0 ]
	as_told_wrong
	is .checked true
}

# bats test_tags=core
@test "errors: double free: who allocated, who released first, who again" {
	traced -- "$T/misuse" double
	[ "$status" -eq 134 ]
	as_told_wrong 1
	[ "$(wrong double-free second_free by_malloc)" -eq 1 ]
	jq -e '.processes[0] as $p | $p.errors[] | select(.kind == "double-free") | .earlier_free_stack as $id
		| any($p.stacks[]; .id == $id and .frames[0].function == "first_free")' "$report"
}

# bats test_tags=core
@test "errors: by ptrace the same" {
	traced --backend ptrace -- "$T/misuse" double
	as_told_wrong 1
	[ "$(wrong double-free second_free by_malloc)" -eq 1 ]
}

# bats test_tags=core
@test "errors: wrong sizes and alignments of delete: each with both stacks, right ones are none" {
	traced -- "$T/sized"
	[ "$status" -eq 0 ]
	as_told_wrong
	is '.errors | map(select(.kind == "size-mismatch") | [.said_bytes, .block_bytes]) | tostring' '[[8,40],[99,100],[104,100],[64,256]]'
	is '.errors | map(select(.said_alignment != null) | [.said_alignment, .block_alignment]) | tostring' '[[32,64],[128,64]]'
	traced --backend ptrace --fail-on errors -- "$T/sized"
	[ "$status" -eq 99 ]
	as_told_wrong
	traced -- "$T/sized" right
	is '.errors | length' 0
	[ "$(jq '.processes[0].functions | to_entries | map(select(.key | startswith("operator delete(ptr, size"))) | length' "$report")" -eq 2 ]
}

# bats test_tags=full
@test "errors: wrong sizes by clang++: as by g++" {
	command -v clang++ >/dev/null || skip "clang++ is not installed"
	clang++ -std=c++17 -fsized-deallocation -O1 -g -I"$ROOT" -o "$BATS_TEST_TMPDIR/sized" "$ROOT/tests/targets/sized.cc" 2>"$BATS_TEST_TMPDIR/why" ||
		skip "clang++ does not compile it: $(head -1 "$BATS_TEST_TMPDIR/why")"
	traced -- "$BATS_TEST_TMPDIR/sized"
	as_told_wrong
}

# bats test_tags=full
@test "errors: wrong sizes in recordings, lists of events and the formats" {
	traced --record "$BATS_TEST_TMPDIR/r" -- "$T/sized"
	"$HEAPTAP" report -o "$BATS_TEST_TMPDIR/r.json" "$BATS_TEST_TMPDIR/r"
	jq -e --slurpfile a "$report" '($a[0].processes[0].errors | map(.kind, .count, .said_bytes, .said_alignment, .address)) == (.processes[0].errors | map(.kind, .count, .said_bytes, .said_alignment, .address))' "$BATS_TEST_TMPDIR/r.json"
	"$HEAPTAP" report --events "$BATS_TEST_TMPDIR/r" >"$BATS_TEST_TMPDIR/events"
	"$HEAPTAP" report -o "$BATS_TEST_TMPDIR/e.json" "$BATS_TEST_TMPDIR/events"
	jq -e --slurpfile a "$report" '($a[0].processes[0].errors | map(.kind, .count, .said_bytes, .said_alignment, .address)) == (.processes[0].errors | map(.kind, .count, .said_bytes, .said_alignment, .address))' "$BATS_TEST_TMPDIR/e.json"
	run --separate-stderr "$HEAPTAP" report -o "$BATS_TEST_TMPDIR/r.junit.xml" -o "$BATS_TEST_TMPDIR/r.sarif" "$BATS_TEST_TMPDIR/r"
	jq -e '[.runs[0].results[].ruleId] | map(select(. == "size-mismatch" or . == "alignment-mismatch")) | length == 10' "$BATS_TEST_TMPDIR/r.sarif"
	grep -q 'type="alignment-mismatch"' "$BATS_TEST_TMPDIR/r.junit.xml"
	run --separate-stderr "$HEAPTAP" run -- "$T/sized"
	[[ $stderr == *'bad frees   6 wrong sizes, 7 wrong alignments'* ]]
	[[ $(unbroken <<<"$stderr") == *'wrong size (first 99, not 100 bytes), 3 times, first 0x'*', by operator delete(ptr, size)'*'too_small at '*'allocated by operator new(size)'* ]]
	[[ $(unbroken <<<"$stderr") == *'wrong alignment (first 32, not 64), 2 times, first 0x'*', by operator delete(ptr, align)'*'other_alignment at '* ]]
}

# bats test_tags=full
@test "errors: free inside a block, of no block, realloc of a freed one" {
	traced -- "$T/misuse" inside
	[ "$(wrong bad-free free_inside by_malloc)" -eq 1 ]
	jq -e '.processes[0].errors[] | select(.kind == "bad-free") | .inside == 16' "$report"
	traced -- "$T/misuse" stack
	jq -e '.processes[0].errors[] | select(.kind == "bad-free") | .alloc_stack == null and .inside == 0' "$report"
	traced -- "$T/misuse" realloc
	[ "$(wrong bad-realloc realloc_of_freed by_malloc)" -eq 1 ]
}

# bats test_tags=full
@test "errors: the text report: before the leaks, with its stacks" {
	run --separate-stderr "$HEAPTAP" run -- "$T/misuse" double
	[[ $stderr == *'bad frees   8 mismatched releases, 1 double release'* ]]
	[[ $stderr == *'mismatched release, 1 time, 0x'*', by operator delete(ptr, size)'*'delete_of_malloc at '*'allocated by malloc'*'by_malloc at '* ]]
	[[ $stderr == *'double release, 1 time, 0x'*'second_free at '*'released before by free'*'first_free at '*'allocated by malloc'* ]]
	run --separate-stderr "$HEAPTAP" run -- "$T/leak"
	[[ $stderr == *'bad frees   none'* ]]
	run --separate-stderr "$HEAPTAP" run --no-check -- "$T/misuse"
	[[ $stderr != *'checked '* && $stderr != *'release, '* ]]
}

# right PROGRAM...: it releases nothing wrongly
right() {
	command -v "$1" >/dev/null || { echo "# $1 is not installed" >&3; return 0; }
	traced -q --no-scan -- "$@"
	is .checked true
	is '.errors | length' 0
	is .totals.unknown_frees 0
}

# bats test_tags=full
@test "errors: real programs release rightly" {
	right ls -lR /usr/lib/git-core
	# shellcheck disable=SC2016 # perl's own
	right perl -e 'my %h; $h{$_} = [1..9] for 1..999; delete $h{$_} for 1..500'
	right /usr/bin/python3 -c 'import json, decimal, threading; [threading.Thread(target=json.dumps, args=([1],)).start() for i in range(8)]'
	right clang -c -o "$BATS_TEST_TMPDIR/o" "-I$ROOT" -D_GNU_SOURCE "$ROOT/user/heap/trend.c"
	right git --no-pager -C "$ROOT" log --stat -3
}

# bats test_tags=full
@test "errors: one function for several families (mimalloc, tcmalloc): not told apart, double frees are" {
	local lib tried=0
	for lib in libmimalloc.so.2 libtcmalloc_minimal.so.4; do
		ldconfig -p | grep -q "$lib" || { echo "# $lib is not installed" >&3; continue; }
		tried=$((tried + 1))
		LD_PRELOAD=$lib traced -- "$T/misuse" double
		jq -e '[.processes[0].errors[].kind] == ["double-free"]' "$report"
	done
	[ "$tried" -gt 0 ] || skip "neither is installed"
}

# bats test_tags=full
@test "errors: after attach a free of an unknown block is no error, and nothing is checked unless asked for" {
	stepping
	step "alloc 10 100"
	attached "$TARGET"
	step "free 10"
	detach
	is .totals.unknown_frees 10
	is '.errors | length' 0
	is .checked false
	step "alloc 10 100"
	attached --force --check "$TARGET"
	step "free 10"
	detach
	is .checked true
	is .totals.unknown_frees 10
	is '.errors | length' 0
}

# bats test_tags=full
@test "errors: lost allocations: no release is called wrong for their sake (F1)" {
	traced --ring-size 4K -d 0 -- "$T/threads" 8 20000
	[ "$(field .lost.allocs)" -gt 0 ] || skip "nothing was lost here"
	is '.errors | length' 0
	[ "$(field .errors_unsure)" -gt 0 ]
}

@test "errors: --fail-on errors" {
	traced --fail-on errors -- "$T/misuse"
	[ "$status" -eq 99 ]
	traced --fail-on errors --error-exitcode 7 -- "$T/misuse"
	[ "$status" -eq 7 ]
	traced --fail-on errors -- "$T/leak"
	[ "$status" -eq 0 ]
	traced --fail-on errors --fail-on definite -- "$T/leak"
	[ "$status" -eq 99 ]
	traced --no-check --fail-on errors -- "$T/misuse"
	[ "$status" -eq 2 ]
}

@test "errors: --fail-on errors finds those of a program that posix_spawn starts (A16)" {
	traced -q -f --fail-on errors -- /usr/bin/python3 -c '
import os, sys
os.waitpid(os.posix_spawn(sys.argv[1], ["misuse", "double"], os.environ), 0)' "$T/misuse"
	jq -e '[.processes[] | select(.comm == "misuse").checked] == [true]' "$report"
	[ "$status" -eq 99 ]
}

# bats test_tags=full
@test "errors: --fail-on growth: of one that grows, not of one that does not" {
	traced --no-scan --fail-on growth:5% -- "$T/grow" 2000 1
	[ "$status" -eq 99 ]
	jq -e '.processes[0].growth | .after_bytes > .before_bytes' "$report"
	traced --no-scan --fail-on growth:5% -- "$T/grow" 2000 0
	[ "$status" -eq 0 ]
	jq -e '.processes[0].growth | .after_bytes == .before_bytes' "$report"
	traced --no-scan --fail-on growth:5% -- "$T/nothing"
	[ "$status" -eq 0 ]
	is .growth null
	for rule in growth growth:5 growth:0% growth:-1% errors:1 definite:; do
		run "$HEAPTAP" run --fail-on "$rule" -- "$T/nothing"
		[ "$status" -eq 2 ]
	done
}

# bats test_tags=full
@test "errors: sort keys mismatched and badfree" {
	traced -q --no-scan -s mismatched -- "$T/misuse" double
	is '.stacks[0].frames[0].function | startswith("by_")' true
	traced -q --no-scan -s badfree -- "$T/misuse" double
	is '.stacks[0].frames[0].function' second_free
	run --separate-stderr "$HEAPTAP" run -q --no-scan -n 2 -s badfree -- "$T/misuse" double
	[[ $stderr == *'1 bad releases'*'second_free at '* ]]
}

# bats test_tags=full
@test "errors: realloc to size 0, negative sizes and bad alignments are notices, and no errors" {
	traced --fail-on errors -- "$T/noticed"
	[ "$status" -eq 0 ] || { cat "$err"; return 1; }
	is '.errors | length' 0
	[ "$(jq -c '.processes[0].notices | map([.kind, .count])' "$report")" = '[["realloc-zero",3],["huge-size",1],["bad-alignment",3]]' ]
	jq -e '.processes[0] as $p | $p.notices | all(.stack as $id | any($p.stacks[];
		.id == $id and (.frames[0].function == "shrinks_to_nothing" or .frames[0].function == "asks_for_a_negative_size" or .frames[0].function == "asks_for_bad_alignments")))' "$report"
	run --separate-stderr "$HEAPTAP" run -- "$T/noticed"
	[[ $stderr == *'Notice: realloc to size 0, 3 times, first by realloc'* ]]
	[[ $stderr == *'Notice: bad alignment, 3 times, first by posix_memalign'* ]]
	traced --backend ptrace -- "$T/noticed"
	[ "$(jq -c '.processes[0].notices | map([.kind, .count])' "$report")" = '[["realloc-zero",3],["huge-size",1],["bad-alignment",3]]' ]
}
