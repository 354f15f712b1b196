#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# Markers in the program (include/heaptap.h): marks, pauses, pools, leak checks, and static probes of other files.

load ../lib/common
load ../lib/remote

# marked [VARIANT] [OPTIONS --] ARGS...: run the target of this variant and record it
marked() {
	local variant=$1
	shift
	needs_target "marked$variant"
	rec=$BATS_TEST_TMPDIR/marked.heaptap
	rm -f "$rec"
	traced --record "$rec" -- "$T/marked$variant" "$@"
	[ "$status" -eq 0 ] || { cat "$err"; return 1; }
	nothing_lost
}

# marks: those of the recording, in order
marks() { "$HEAPTAP" report --events "$rec" | awk '$1 == "mark" { print $3 }'; }

# part FROM,TO: $report is that of a part of the recording
part() {
	report=$BATS_TEST_TMPDIR/part.json
	rm -f "$report"
	"$HEAPTAP" report --between "$1" -o "$report" "$rec"
}

# bats test_tags=core,ptrace,inline
@test "markers: a pause leaves out what is allocated then, and counts what is released" {
	marked "" sections
	is .totals.allocs 9
	is .totals.alloc_bytes 440
	is .totals.live_blocks 8
	is .totals.live_bytes 410
	is .scan.definite.blocks 0
	is .scan.reachable.blocks 8
	jq -e '.processes[0].notes | any(contains("3 allocations of that time"))' "$report"
	[ "$(of_function sections allocs)" -eq 9 ]
	is '.errors | length' 0
}

# bats test_tags=full
@test "markers: in static and stripped programs" {
	for variant in -nopie -stripped; do
		marked "$variant" sections
		is .totals.live_bytes 410
	done
	marked_alike -static -static-pie
}

# marked_alike VARIANT...: those that were built have the same live blocks and marks
marked_alike() {
	local variant
	for variant in "$@"; do
		[ -x "$T/marked$variant" ] || continue
		marked "$variant" sections
		[ "$(of_function keep live_bytes)" -eq 410 ]
		[ "$(marks)" = "$(printf 'before\nafter')" ]
	done
}

# bats test_tags=full
@test "markers: in 32-bit programs" {
	not_by_inline "32-bit programs are refused"
	needs_target marked-32
	marked_alike -32 -32-static
}

# bats test_tags=core,ptrace,inline
@test "markers: marks of the program are moments of --between" {
	marked "" sections
	[ "$(marks)" = "$(printf 'before\nafter')" ]
	part before,after
	is .totals.allocs 3
	is .totals.live_blocks 2
	is .totals.live_bytes 60
	part after,end
	is .totals.allocs 5
	is .totals.live_bytes 250
}

@test "markers: a recording tells the same as the run" {
	marked "" sections
	"$HEAPTAP" report -o "$BATS_TEST_TMPDIR/again.json" "$rec"
	diff <(jq '.processes[0] | (.totals | del(.peak_time_ns)), .functions, [.stacks[] | {allocs, frees, live_bytes}]' "$report") \
		<(jq '.processes[0] | (.totals | del(.peak_time_ns)), .functions, [.stacks[] | {allocs, frees, live_bytes}]' \
			"$BATS_TEST_TMPDIR/again.json")
}

@test "markers: --start-paused counts from the first resume on" {
	traced --start-paused -- "$T/marked" sections
	is .totals.allocs 5
	is .totals.live_bytes 250
	jq -e '.processes[0].notes | any(contains("counting began late (--start-paused): 7 allocations"))' "$report"
	traced --start-paused -- "$T/leak"
	is .totals.allocs 0
	jq -e '.processes[0].notes | any(contains("counting began never"))' "$report"
}

@test "markers: a child begins paused if its parent is" {
	report=$BATS_TEST_TMPDIR/fork.json
	"$HEAPTAP" run -f -q -o "$report" "$T/marked" fork
	[ "$(jq '[.processes[] | select(.started)][0].totals.alloc_bytes' "$report")" -eq 55 ]
	[ "$(jq '[.processes[] | .totals.alloc_bytes] | sort | first' "$report")" -eq 33 ]
}

# bats test_tags=full
@test "markers: a million marks are bounded, and events stay complete" {
	times=1000000
	[ "${HEAPTAP_BACKEND:-}" != ptrace ] || times=70000
	marked "" repeat "$times"
	is .totals.allocs 1
	[ "$(marks | sort | uniq -c | awk '{ print $1, $2 }')" = "65536 again" ]
	grep -q 'more than 65536 marks' "$err"
	[ "$(stat -c %s "$rec")" -lt 4000000 ]
}

@test "markers: names are cut and escaped" {
	marked "" odd
	"$HEAPTAP" report --events "$rec" >"$BATS_TEST_TMPDIR/events"
	fails grep -q "$(printf '\033')" "$BATS_TEST_TMPDIR/events"
	[ "$(marks | wc -l)" -eq 2 ]
	[ "$(marks | tail -1)" = "$(printf 'x%.0s' {1..63})" ]
	is .totals.allocs 1
}

@test "markers: notes that lie get no probe, and are reported" {
	rec=$BATS_TEST_TMPDIR/wrong.heaptap
	traced --record "$rec" --mark-usdt other:guarded -- "$T/marked_wrong"
	[ "$status" -eq 0 ]
	[ "$(cat "$out")" = 1 ]
	nothing_lost
	[ "$(marks)" = right ]
	[ "$(of_function main allocs)" -ge 1 ]
	# For BPF, one more: its semaphore is in no data of the file, where the kernel would count.
	grep -qE "marked_wrong: [34] markers left out" "$err"
	"$HEAPTAP" run --backend ptrace -o /dev/null --mark-usdt other:guarded -- "$T/marked_wrong" >"$out" 2>"$err"
	grep -q 'other:guarded: guarded by a semaphore, so it makes markers by BPF only' "$err"
}

# bats test_tags=full
@test "markers: of C++, and libstdc++'s own probes by --mark-usdt" {
	rec=$BATS_TEST_TMPDIR/cxx.heaptap
	traced --record "$rec" --mark-usdt libstdcxx:throw --mark-usdt nowhere:none -- "$T/marked_cxx"
	[ "$status" -eq 0 ]
	grep -q 'nowhere:none: no mapped file has such a probe' "$err"
	if ! readelf -n "$(ldd "$T/marked_cxx" | awk '/libstdc/ { print $3 }')" | grep -q 'Name: throw'; then
		skip "the libstdc++ of this machine has no probes"
	fi
	[ "$(marks)" = "$(printf 'first\nsecond\nlibstdcxx:throw')" ]
	part first,second
	is .totals.allocs 2
	part libstdcxx:throw,end
	[ "$(of_function main allocs)" -ge 1 ]
	run "$HEAPTAP" run --mark-usdt nocolon true
	[ "$status" -eq 2 ]
}

# bats test_tags=core,ptrace,inline
@test "markers: blocks of a pool are blocks, with stacks and verdicts" {
	traced -- "$T/marked" pool
	[ "$status" -eq 0 ]
	nothing_lost
	is .totals.allocs 14
	is .totals.frees 1
	is .totals.live_bytes $((4096 + 12 * 48))
	is '.functions.HEAPTAP_ALLOC' 13
	[ "$(of_function lose live_blocks)" -eq 10 ]
	[ "$(jq '[.processes[0].stacks[] | select(.frames[0].function == "take").family] | unique == ["pool"]' "$report")" = true ]
	is '.errors | length' 0
	# A stale word of the stack may hold the last one; what is kept is never called lost.
	[ "$(of_function lose definite.blocks)" -ge 9 ]
	is .scan.definite.blocks "$(of_function lose definite.blocks)"
}

@test "markers: a pool ends again and again, and wrong releases are seen (B4)" {
	traced -- "$T/marked" pool_ends 5000
	nothing_lost
	is .totals.allocs 25001
	is .totals.frees 25001
	is .totals.live_blocks 0
	is .totals.unknown_frees 0
	is '.errors | length' 1
	is '.errors[0].kind' mismatched-free
	is '.errors[0].function' HEAPTAP_FREE
}

# bats test_tags=full
@test "markers: --between counts a part of a run" {
	traced --between before,after -- "$T/marked" sections
	[ "$status" -eq 0 ]
	is .totals.allocs 3
	is .totals.live_blocks 2
	is .totals.live_bytes 60
	is .scan null
	is .exit.code 0
	nothing_lost
	traced --between before,end -- "$T/marked" sections
	is .totals.allocs 8
	is .totals.live_bytes 310
	traced --between before,never -- "$T/marked" sections
	[ "$status" -eq 5 ]
	grep -q -- '--between: never: this moment has not come behind the moment before it' "$err"
	[ ! -e "$report" ]
}

@test "markers: --between ends an attach, and takes marks of heaptap mark, too" {
	stepping
	attached "$TARGET" --between from,to
	step "alloc 10 10"
	"$HEAPTAP" mark "$TARGET" from
	step "alloc 3 100"
	step "free 1"
	step "alloc 2 100"
	step "free 1"
	step "mark to"
	ended "$TAP" 0
	is .totals.allocs 5
	is .totals.live_blocks 3
	untouched "$TARGET"
	step "alloc 1 1"
}

# bats test_tags=full
@test "markers: over a connection, as on this machine" {
	with_bpf_only "the connection does not depend on the source"
	same_as_local "$T/marked" sections
	is .totals.live_bytes 410
	serving --wait -- "$T/marked" sections
	rec=$BATS_TEST_TMPDIR/remote.heaptap
	watched --record "$rec" "unix:$SOCKET"
	[ "$status" -eq 0 ]
	[ "$(marks)" = "$(printf 'before\nafter')" ]
	part before,after
	is .totals.allocs 3
	is .totals.live_bytes 60
}

# bats test_tags=core,ptrace,inline
@test "markers: a leak check finds what is lost at its moment" {
	"$HEAPTAP" run -q -o "$BATS_TEST_TMPDIR/check-%n.json" "$T/marked" check
	report=$BATS_TEST_TMPDIR/check-1.json
	# Stale words may still hold a block or two.
	[ "$(field .scan.definite.blocks)" -ge 17 ]
	report=$BATS_TEST_TMPDIR/check-2.json
	is .scan.definite.blocks 0
	is .scan.reachable.blocks 20
	nothing_lost
}

# bats test_tags=full
@test "markers: leak checks in a loop of attached threads hold nothing up" {
	stepping
	attached "$TARGET" --record "$BATS_TEST_TMPDIR/c.heaptap"
	step "alloc 3 10"
	for i in 1 2 3; do step "check"; done
	step "alloc 2 10"
	caught_up
	detach
	is .totals.live_blocks 5
	is .scan.definite.blocks 0
	nothing_lost
	untouched "$TARGET"
}

@test "markers: attach sees them, and leaves the program as it was" {
	stepping
	attached "$TARGET" --record "$BATS_TEST_TMPDIR/a.heaptap"
	step "alloc 3 10"
	step "mark here"
	step "pause"
	step "alloc 4 10"
	step "resume"
	step "alloc 5 10"
	detach
	rec=$BATS_TEST_TMPDIR/a.heaptap
	is .totals.allocs 8
	[ "$(marks)" = here ]
	untouched "$TARGET"
	step "mark ends"
}
