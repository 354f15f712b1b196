#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# Programs that code inside them could harm, with --backend inline.

load ../lib/common

setup_file() {
	[ "$(uname -m)" = x86_64 ] || skip "the inline source knows x86_64 only"
}

# harsh WHAT...: it ends as without heaptap
harsh() {
	traced -q --backend inline --no-scan -- "$T/harsh" "$@"
	[ "$(jq -r .backend "$report")" = inline ]
	[ "$status" -eq 0 ] || { echo "status $status"; cat "$err" "$out"; return 1; }
}

# counts_all: each call is seen
counts_all() {
	nothing_lost
	as_told calls
}

@test "inline: a program that may not read unaligned words (T5)" {
	harsh align
	counts_all
}

# The kernel reads the pages with jumps again from where they come from.
@test "inline: a program that drops its code (T5)" {
	traced -q --backend inline --no-scan -- "$T/drops"
	[ "$status" -eq 0 ] || { echo "status $status"; cat "$err" "$out"; return 1; }
	nothing_lost
	as_told allocs
}

# runs_in BYTES ARGUMENT...: a coroutine with so small a stack allocates, with these options
runs_in() { "$HEAPTAP" run -q --backend inline --no-scan -o /dev/null --format text "${@:2}" -- "$T/harsh" small "$1"; }

# The malloc of this program takes the longest way, and needs 112 bytes itself.
@test "inline: a program with a small stack (T5)" {
	"$T/harsh" small 128 || skip "this libc needs more itself"
	runs_in 464
	runs_in 448 --depth 0
}

# The counter is read neither for the order of calls nor for the time of waits.
@test "inline: a program that may not read the CPU's counter, in all of its threads (T5)" {
	[ "$(nproc --all)" -le 4 ] || skip "where stamps are times, a program that forbids the counter later ends"
	harsh counter
	counts_all
}

# told FUNCTION: calls that the program has counted
told() { awk -v name="$1" '$2 == "calls" && $3 == name { print $4 }' "$out"; }

# A jump may leave a call before the program has counted it, and behind where heaptap has.
# jumped HOW JUMPS: each call was seen, or is one loss, but for one of each jump, and those inside the last call that was left
jumped() {
	local begun seen lost most_within=320
	harsh "$1" "$2"
	begun=$(($(told malloc) + $(told free)))
	seen=$(field ' | .functions.malloc + .functions.free')
	lost=$(field ' | .lost.allocs + .lost.frees + .lost.other')
	echo "begun $begun, seen $seen, lost $lost"
	[ "$seen" -gt $((begun / 2)) ]
	[ $((seen + lost)) -ge $((begun - $2 - most_within)) ]
	[ $((seen + lost)) -le $((begun + 2 * $2)) ]
}

# bats test_tags=full
@test "inline: signals jump out of malloc and free, and later calls are seen (T5)" { jumped jumps 1000; }

# A hook that was left keeps its place, which later calls elsewhere on the stack cannot take.
@test "inline: signals jump out of calls from all over the stack, and later calls are seen (T5)" { jumped deep 100; }

# storm_by SOURCE: allocations and releases, seen or lost, of more threads than have places, in $calls
storm_by() {
	traced -q -b "$1" --no-scan -d 0 -- "$T/storm" 0 0 16600
	calls=$(field ' | [.totals.allocs + .lost.allocs, .totals.frees + .lost.frees, .lost.other] | @text')
}

# bats test_tags=full
@test "inline: of threads without a place each call is one loss, and what the C library frees for itself none (T5)" {
	local calls by_bpf
	with_bpf_only "the other half is by BPF"
	storm_by bpf
	by_bpf=$calls
	storm_by inline
	[ "$calls" = "$by_bpf" ] || { echo "inline $calls, BPF $by_bpf"; return 1; }
	[ "$(field .lost.allocs)" -gt 0 ]
}

# Which coroutine's call returns next is open at each moment.
# bats test_tags=full
@test "inline: signals switch between coroutines in the middle of malloc and free (T5)" {
	local i
	for ((i = 0; i < HEAPTAP_ROUNDS; i++)); do
		harsh turns 500
		[ "$(field .functions.malloc)" -gt 0 ]
	done
}

# bats test_tags=full
@test "inline: by BPF the kernel ends a program whose coroutines switch inside malloc, and a line says so (T5)" {
	with_bpf_only "return probes are the kernel's"
	traced -q -b bpf --no-scan -- "$T/harsh" turns 500
	[ "$status" -eq $((128 + 4)) ]
	grep -q 'the kernel sends it SIGILL, because calls of an allocator.* --backend inline and --backend ptrace keep' "$err"
}

# freezer: make a control group whose processes can be frozen; its directory is in $group
freezer() {
	for group in /sys/fs/cgroup/unified /sys/fs/cgroup /sys/fs/cgroup/freezer; do
		group=$group/heaptap-test-$$-$BATS_TEST_NUMBER
		mkdir "$group" 2>/dev/null || continue
		[ ! -e "$group/cgroup.freeze" ] && [ ! -e "$group/freezer.state" ] || return 0
		rmdir "$group"
	done
	return 1
}

freeze() {
	if [ -e "$group/cgroup.freeze" ]; then echo 1 >"$group/cgroup.freeze"; else echo FROZEN >"$group/freezer.state"; fi
	wait_for is_frozen
}

thaw() {
	if [ -e "$group/cgroup.freeze" ]; then echo 0 >"$group/cgroup.freeze"; else echo THAWED >"$group/freezer.state"; fi
}

is_frozen() { grep -qxE "frozen 1|FROZEN" "$group/cgroup.events" "$group/freezer.state" 2>/dev/null; }

has_no_map_of_ours() { ! grep -q heaptap "/proc/$1/maps"; }

# As "docker pause" does.
# bats test_tags=full
@test "inline: a frozen program keeps the code until it runs, and heaptap ends (T5)" {
	freezer || skip "no control group can be made whose processes can be frozen"
	start "$T/spin"
	TARGET=$PID
	attached --backend inline --no-scan "$TARGET"
	echo "$TARGET" >"$group/cgroup.procs"
	freeze
	detach
	grep -q "PID $TARGET: the probes stay in it, without effect: its threads do not run" "$err"
	thaw
	wait_for has_no_map_of_ours "$TARGET"
	untouched "$TARGET"
	kill "$TARGET"
	wait_for gone "$TARGET"
	rmdir "$group"
}

# By attach heaptap is not the ptracer, and the program goes on after half a second.
@test "inline: run, heaptap has no CPU for a second: the program waits, and nothing is lost" {
	local target
	report=$BATS_TEST_TMPDIR/report.json
	start "$HEAPTAP" run -q --backend inline --no-scan -d 0 -o "$report" -- "$T/turns" 1000000
	TAP=$PID
	wait_for pgrep -P "$TAP" -x turns
	target=$(pgrep -P "$TAP" -x turns)
	wait_for has_used "$target" 10
	kill -STOP "$TAP"
	wait_for has_used "$target" $(($(ticks "$target") + 100))
	kill -CONT "$TAP"
	ended "$TAP" 0
	nothing_lost
	is .totals.allocs 4000000
}

# bats test_tags=core
@test "inline: Ctrl-Z stops heaptap, the target does not wait for it, and what is lost is counted (A8)" {
	stepping
	attached -b inline "$TARGET"
	step "alloc 10 100"
	kill -TSTP "$TAP"
	wait_for is_stopped "$TAP"
	# More than its ring holds.
	step "burst 1000000"
	kill -CONT "$TAP"
	step "free 9"
	kill -INT "$TAP"
	ended "$TAP" 5
	jq -e '.processes[0].lost.allocs > 0' "$report"
	untouched "$TARGET"
}
