#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# Verdict after verdict on one process: what is new, found again, grew; pointers in disguise; old ones overwritten.

load ../lib/common

# began [OPTIONS]: an again target and an attach to it, reports numbered in $BATS_TEST_TMPDIR/r.N.json
began() {
	rm -f "$BATS_TEST_TMPDIR"/r.*.json
	[ -z "${TARGET:-}" ] || { echo quit >&"${AGAIN[1]}" && wait "$TARGET"; }
	coproc AGAIN { exec "$T/again" 2>/dev/null 3>&-; }
	TARGET=$AGAIN_PID
	STARTED+=("$TARGET")
	answer ready
	N=0
	attached --force -o "$BATS_TEST_TMPDIR/r.%n.json" "$@" "$TARGET"
}

answer() {
	local line
	read -r -t 120 line <&"${AGAIN[0]}"
	[ "$line" = "$1" ]
}

says_ok() {
	echo "$1" >&"${AGAIN[1]}"
	answer ok
}

# reported: the next report, by SIGUSR1; it is in $report
reported() {
	N=$((N + 1))
	report=$BATS_TEST_TMPDIR/r.$N.json
	kill -USR1 "$TAP"
	wait_for test -s "$report"
}

# lost FUNCTION: blocks of it that are lost
lost() { of_function "$1" definite.blocks; }

# bats test_tags=core
@test "again: --scan with SIGUSR1: all, new since the last verdict, found again" {
	began --scan
	says_ok "lose 3"
	says_ok "hide 2"
	reported
	[ "$(lost again_loses)" -eq 3 ]
	[ "$(lost again_hides)" -eq 2 ]
	is .scan.new null
	says_ok "lose 4"
	says_ok show
	reported
	[ "$(lost again_loses)" -eq 7 ]
	[ "$(lost again_hides)" -eq 0 ]
	[ "$(of_function again_hides reachable.blocks)" -eq 2 ]
	is .scan.new.blocks 4
	is .scan.new.bytes 400
	is .scan.found_again.blocks 2
	reported
	is .scan.new.blocks 0
	is .scan.found_again.blocks 0
	says_ok show # hides them again: lost once more, which is new
	reported
	is .scan.new.blocks 2
	detach
}

# bats test_tags=full
@test "again: --leaks new and leaked: only those, in sums and callers" {
	began --scan --leaks new
	says_ok "lose 3"
	says_ok "hide 2"
	reported
	is .scan.definite.blocks 5
	says_ok "lose 4"
	says_ok show
	reported
	is .scan.definite.blocks 4
	is .scan.definite.bytes 400
	is .scan.left_out.blocks 3
	[ "$(lost again_loses)" -eq 4 ]
	reported
	is .scan.definite.blocks 0
	detach
	began --scan --leaks leaked
	says_ok "lose 3"
	says_ok "hide 2"
	reported
	is .scan.definite.blocks 0
	is .scan.left_out.blocks 5
	says_ok "lose 4"
	says_ok show
	reported
	is .scan.definite.blocks 3
	is .scan.left_out.blocks 4
	detach
}

@test "again: --fail-on counts what --leaks leaves in" {
	began --scan --leaks new --fail-on definite
	says_ok "lose 3"
	reported
	kill -INT "$TAP"
	ended "$TAP" 0
}

# bats test_tags=full
@test "again: scan --leaks new has a memory of its own" {
	began --scan
	says_ok "lose 3"
	reported
	report=$BATS_TEST_TMPDIR/scan.json
	"$HEAPTAP" scan -q --leaks new --force -o "$report" "$TARGET"
	is .scan.definite.blocks 3
	"$HEAPTAP" scan -q --leaks new --force -o "$report" "$TARGET"
	is .scan.definite.blocks 0
	is .scan.left_out.blocks 3
	says_ok "lose 1"
	reported
	is .scan.new.blocks 1
	report=$BATS_TEST_TMPDIR/scan.json
	"$HEAPTAP" scan -q --leaks new --force -o "$report" "$TARGET"
	is .scan.definite.blocks 1
	detach
}

# bats test_tags=full
@test "again: growth since the last report, by caller, as sort key, and who holds it" {
	began --scan -s growth
	says_ok "lose 5"
	says_ok "grow 10"
	reported
	is '.stacks[0].grown' null
	says_ok "grow 7"
	reported
	is '.stacks[0].grown' 448
	is '.stacks[0].why.root.variable' cache
	is '.stacks[0].frames[0].function' again_grows
	run --separate-stderr "$HEAPTAP" scan -n 3 "$TARGET"
	[[ $output == *'one of them is held by cache in again'* ]]
	says_ok "grow 1"
	run --separate-stderr "$HEAPTAP" scan -n 3 "$TARGET"
	[[ $output == *', +64 B since the last report, by malloc'* ]]
	detach
}

# bats test_tags=full
@test "again: --interval: each report has its own verdict" {
	began --scan -i 300ms
	says_ok "lose 3"
	# One may be under way, from before.
	n=$(find "$BATS_TEST_TMPDIR" -name 'r.*.json' | wc -l)
	wait_for test -s "$BATS_TEST_TMPDIR/r.$((n + 4)).json"
	detach
	report=$BATS_TEST_TMPDIR/r.$((n + 4)).json
	is .scan.definite.blocks 3
	jq -se '[.[].processes[0].scan.new.blocks // 0] | add <= 3' "$BATS_TEST_TMPDIR"/r.*.json
}

# bats test_tags=full
@test "again: pointers with marks and at odd addresses: lost without --pointer-mask and --unaligned" {
	began
	says_ok "mask 3"
	says_ok "skew 4"
	detach
	[ "$(lost again_marks)" -eq 3 ]
	[ "$(lost again_skews)" -eq 4 ]
	began --pointer-mask 0x0000fffffffffff0 --unaligned
	says_ok "mask 3"
	says_ok "skew 4"
	says_ok "lose 2"
	detach
	[ "$(of_function again_marks reachable.blocks)" -eq 3 ]
	[ "$(of_function again_skews reachable.blocks)" -eq 4 ]
	[ "$(lost again_loses)" -eq 2 ]
	run "$HEAPTAP" run --pointer-mask 12 -- "$T/nothing"
	[ "$status" -eq 2 ]
	run "$HEAPTAP" run --pointer-mask 0x0 -- "$T/nothing"
	[ "$status" -eq 2 ]
}

# bats test_tags=full
@test "again: --perturb: an old pointer in fresh memory hides no leak; the environment is kept" {
	traced -- "$T/stale"
	[ "$(of_function stale_loses reachable.blocks)" -eq 1 ]
	traced --perturb -- "$T/stale"
	[ "$(lost stale_loses)" -eq 1 ]
	GLIBC_TUNABLES=glibc.malloc.arena_max=3 traced --perturb --no-scan -- env
	grep -qx 'GLIBC_TUNABLES=glibc.malloc.perturb=165:glibc.malloc.tcache_count=0:glibc.malloc.arena_max=3' "$out"
	[ "$(grep -c GLIBC_TUNABLES "$out")" -eq 1 ]
}

@test "again: --perturb: without glibc it says that it has no effect" {
	[ -x "$T/leak-musl" ] || skip "no musl-gcc"
	traced --perturb -- "$T/leak-musl"
	grep -q -- '--perturb: no effect' "$err"
}

# bats test_tags=full
@test "again: --keep removes the files of old reports, but none that was changed" {
	began --keep 2
	says_ok "lose 3"
	for ((i = 1; i <= 2; i++)); do reported; done
	echo changed >>"$BATS_TEST_TMPDIR/r.2.json"
	for ((i = 3; i <= 5; i++)); do reported; done
	# The last report comes at the end.
	kill -INT "$TAP"
	wait_for gone "$TAP"
	[ "$(cd "$BATS_TEST_TMPDIR" && ls r.*.json | paste -sd ' ')" = "r.2.json r.5.json r.6.json" ]
}
