#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# Allocators in odd states, under odd names and from odd places.

load ../lib/common

# Shadow stacks need a CPU and a kernel that have them; where they are, the program has one.
# bats test_tags=full
@test "faults: functions that begin with ENDBR or BTI, in a program that may have a shadow stack (C6)" {
	objdump -d "$T/custom-cet" | grep -A1 '<my_alloc>:' | grep -qE 'endbr|bti|paciasp'
	traced --alloc malloc=my_alloc,free=my_free,arg=2 -- "$T/custom-cet"
	[ "$status" -eq 0 ] || { cat "$err"; return 1; }
	as_told
	nothing_lost
	traced --backend ptrace --alloc malloc=my_alloc,free=my_free,arg=2 -- "$T/custom-cet"
	[ "$status" -eq 0 ] || { cat "$err"; return 1; }
	as_told
	nothing_lost
}

# bats test_tags=full
@test "faults: arenas and caches of threads, tuned in all ways, trimmed: equal to the oracle (B10)" {
	counted -d 4 -- "$T/arenas" 4
	as_counted
	nothing_lost
	counted -d 4 -- "$T/arenas" 3 1 1
	as_counted
	MALLOC_ARENA_MAX=1 MALLOC_PERTURB_=85 MALLOC_TOP_PAD_=0 counted -d 4 -- "$T/arenas" 3
	as_counted
	GLIBC_TUNABLES=glibc.malloc.tcache_count=0:glibc.malloc.mxfast=0 counted -d 4 -- "$T/arenas" 3
	as_counted
	nothing_lost
}

# bats test_tags=full
@test "faults: malloc by its other names, and that of a second C library (B13)" {
	traced -- "$T/names"
	[ "$status" -eq 0 ]
	as_told live allocs
	# The linker's own blocks for the second library are below it too.
	[ "$(of_function of_second_libc live_bytes)" -ge 20000 ]
	is '.functions.calloc // 0 | . > 0' true
	nothing_lost
}

# bats test_tags=full
@test "faults: memalign at the address of aligned_alloc is shown with both names, and suppressed by each" {
	local libc places rule
	libc=$(ldd "$T/noticed" | awk '/libc\.so/ { print $3 }')
	places=$(readelf -W --dyn-syms "$libc" | awk '$8 ~ /^(aligned_alloc|memalign)@/ { print $2 }' | sort -u | wc -l)
	traced -- "$T/noticed"
	if [ "$places" -eq 1 ]; then
		is '.functions["aligned_alloc/memalign"]' 2
	else
		is .functions.aligned_alloc 2
		return
	fi
	for rule in aligned_alloc memalign; do
		printf 'leak:^%s$\n' "$rule" >"$BATS_TEST_TMPDIR/rules"
		traced --suppressions "$BATS_TEST_TMPDIR/rules" -- "$T/leak_aligned"
		is .scan.suppressed.blocks 3
		is .scan.definite.blocks 0
	done
}

# bats test_tags=core
@test "faults: malloc within malloc, 300 deep, is one request (B16)" {
	not_by_inline "it follows 32 calls of a thread at once, and counts others as lost"
	for depth in 3 63 64 300; do
		traced -- "$T/nested" "$depth"
		[ "$status" -eq 0 ]
		as_told
		is .functions.malloc 10
		nothing_lost
	done
}

# bats test_tags=full
@test "faults: more calls under way at once than can be followed: what is not seen is counted (B16)" {
	local requests seen
	for depth in 3 20 63 64 200; do
		traced -- "$T/nested" "$depth" far
		[ "$status" -eq 0 ]
		requests=$(awk '/^requests/ { print $2 }' "$out")
		seen=$(field .totals.allocs)
		((seen <= requests && seen + $(field .lost.other) >= requests)) ||
			{ echo "depth $depth: $requests requests, $seen seen, $(field .lost)"; return 1; }
		[ "$depth" -ne 3 ] || nothing_lost
	done
}

# bats test_tags=full
@test "faults: an allocator that asks for the call stack sees the same as untraced (B19)" {
	"$T/asks_stack" >"$BATS_TEST_TMPDIR/control"
	traced -- "$T/asks_stack"
	[ "$status" -eq 0 ]
	cmp "$out" "$BATS_TEST_TMPDIR/control"
	[ "$(field .functions.malloc)" -gt 0 ]
	nothing_lost
}

# bats test_tags=full
@test "faults: exit, quick_exit, _exit, abort: all that handlers do is seen (B18)" {
	local how
	for how in exit quick _exit abort; do
		control=0
		"$T/ends" "$how" >"$BATS_TEST_TMPDIR/control" || control=$?
		traced -- "$T/ends" "$how"
		[ "$status" -eq "$control" ] || { echo "$how: $status, not $control"; return 1; }
		cmp "$out" "$BATS_TEST_TMPDIR/control"
		as_told
		nothing_lost
	done
}

# bats test_tags=full
@test "faults: the main thread ends, another goes on (B18)" {
	traced -- "$T/ends" main
	[ "$status" -eq 0 ]
	as_told
	nothing_lost
	is .exit.code 0
}

# bats test_tags=full
@test "faults: static programs are told which C library's allocator they have (B12)" {
	traced -- "$T/leak-static"
	is '.allocators[0].kind' glibc
	[ -x "$T/leak-musl-static" ] || skip "no musl-gcc"
	traced -- "$T/leak-musl-static"
	is '.allocators[0].kind' musl
}
