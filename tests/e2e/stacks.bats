#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# Call stacks equal the chains of calls that programs tell themselves (C1, C2, C3, C5, D1).

load ../lib/common

teardown() { end_started; }

# chains_equal DEPTH PROGRAM [ARGS]: every chain that the program tells is in the report, as often, and no other
chains_equal() {
	local depth=$1 told=$BATS_TEST_TMPDIR/told seen=$BATS_TEST_TMPDIR/seen
	shift
	TRUTH_DEPTH=$depth traced -q -d "$depth" ${BACKEND:+-b "$BACKEND"} -- "$@"
	[ "$status" -eq 0 ] || { echo "$*: status $status"; cat "$err"; return 1; }
	nothing_lost || return 1
	grep '^chain ' "$out" | sort >"$told"
	jq -r -f "$ROOT/tests/stacks/chains.jq" "$report" | sort >"$seen"
	[ -s "$told" ] || { echo "$*: told nothing"; return 1; }
	diff "$told" "$seen" >"$seen.diff" && return
	echo "$*: told (<) and seen (>) differ:"
	cut -c 1-500 "$seen.diff" | head -20
	return 1
}

# by_all_levels COMPILER fp|nofp: both programs
by_all_levels() {
	local level
	command -v "$1" >/dev/null || skip "$1 is not installed"
	for level in O0 O1 O2 O3; do
		chains_equal 127 "$T/stack_calls-$1-$level-$2"
		chains_equal 127 "$T/stack_random-$1-$level-$2" 5 5000 2
	done
}

# bats test_tags=core,full
@test "stacks: gcc, all levels, with frame pointers" { by_all_levels gcc fp; }
@test "stacks: gcc, all levels, without frame pointers" { by_all_levels gcc nofp; }
# bats test_tags=full
@test "stacks: clang, all levels, with frame pointers" { by_all_levels clang fp; }
# bats test_tags=full
@test "stacks: clang, all levels, without frame pointers" { by_all_levels clang nofp; }

@test "stacks: what .eh_frame leaves out is in .debug_frame" {
	local compiler
	for compiler in gcc clang; do
		chains_equal 127 "$T/stack_calls-$compiler-debug_frame"
		chains_equal 127 "$T/stack_random-$compiler-debug_frame" 5 5000 2
	done
	readelf -SW "$T/stack_calls-gcc-debug_frame" | grep -q '\.debug_frame' # else it proves nothing
}

linked() {
	[[ $1 != 32* ]] || not_by_inline "32-bit programs are refused"
	needs_target "stack_calls-$1"
	chains_equal 127 "$T/stack_calls-$1" "${@:2}"
	chains_equal 127 "$T/stack_random-$1" 6 5000 3
}

# bats test_tags=ptrace,inline,full
@test "stacks: a static program" { linked static; }
# bats test_tags=full
@test "stacks: a static program at any address" { linked static-pie; }
# bats test_tags=full
@test "stacks: a program at its own address" { linked nopie; }
# bats test_tags=core,ptrace
@test "stacks: 32 bits" { linked 32; }
# bats test_tags=full
@test "stacks: 32 bits, static" { linked 32-static; }

# musl has no call frame information: what calls main() is known by its stack pointer, what calls others is not.
# bats test_tags=full
@test "stacks: musl, threads known up to the library's own functions (C5)" {
	TRUTH_THREAD_END=no-unwind-info TRUTH_CONSTRUCTOR_END=no-unwind-info linked musl own
}
# bats test_tags=full
@test "stacks: musl, static (C5)" {
	TRUTH_THREAD_END=no-unwind-info linked musl-static own
}

# The walk in user space, by the same tables: what it says of the same programs.
# bats test_tags=core
@test "stacks: by ptrace as by BPF" {
	export BACKEND=ptrace
	local program
	for program in stack_calls-gcc-O2-nofp stack_calls-clang-O3-nofp stack_calls-static stack_bad stack_throw stack_dlopen; do
		chains_equal 127 "$T/$program"
	done
	[ ! -x "$T/stack_calls-32" ] || chains_equal 127 "$T/stack_calls-32"
	for program in gcc-O0-fp gcc-O2-nofp clang-O3-fp; do
		chains_equal 127 "$T/stack_random-$program" 5 2000 2
	done
	chains_equal 10 "$T/stack_random-gcc-O2-nofp" 7 2000 2
	[ ! -x "$T/stack_random-musl-static" ] ||
		TRUTH_THREAD_END=no-unwind-info chains_equal 127 "$T/stack_random-musl-static" 6 2000 3
}

# The walk of the code inside the target, by the steps of the BPF programs.
# bats test_tags=core
@test "stacks: by the inline source as by BPF" {
	[ "$(uname -m)" = x86_64 ] || skip "the inline source knows x86_64 only"
	export BACKEND=inline
	local program
	for program in stack_calls-gcc-O2-nofp stack_calls-clang-O3-nofp stack_calls-static stack_bad stack_throw stack_dlopen; do
		chains_equal 127 "$T/$program"
	done
	for program in gcc-O0-fp gcc-O2-nofp clang-O3-fp; do
		chains_equal 127 "$T/stack_random-$program" 5 5000 2
	done
	chains_equal 127 "$T/stack_random-gcc-O2-nofp" 3 20000 8
	chains_equal 10 "$T/stack_random-gcc-O2-nofp" 7 2000 2
	[ ! -x "$T/stack_random-musl-static" ] ||
		TRUTH_THREAD_END=no-unwind-info chains_equal 127 "$T/stack_random-musl-static" 6 2000 3
}

# bats test_tags=full
@test "stacks: a random tree of calls, 100,000 allocations" {
	chains_equal 127 "$T/stack_random-gcc-O2-nofp" 1
	chains_equal 127 "$T/stack_random-clang-O2-nofp" 2
}

# bats test_tags=full
@test "stacks: random trees of several threads at once" {
	chains_equal 127 "$T/stack_random-gcc-O2-nofp" 3 100000 8
	chains_equal 127 "$T/stack_random-gcc-O3-fp" 4 100000 4
}

# bats test_tags=core,ptrace,inline
@test "stacks: cut at the depth that was asked for (C3)" {
	local depth
	for depth in 1 3 20; do
		chains_equal "$depth" "$T/stack_random-gcc-O2-nofp" 7 5000 2
		jq -e '[.processes[0].stacks[].frames | map(select(.inlined | not)) | length] | max == $d' \
			--argjson d "$depth" "$report"
	done
}

# bats test_tags=full
@test "stacks: recursion far deeper than the frames that are asked for (C3)" {
	local depth
	for depth in 2 20 64 100 127; do
		chains_equal "$depth" "$T/stack_random-gcc-O2-nofp" "$depth" 5000 2 250
	done
}

# bats test_tags=full
@test "stacks: a function with more rows than half a shard" { chains_equal 127 "$T/stack_rows"; }

@test "stacks: another library at the same address (D1)" {
	chains_equal 127 "$T/stack_dlopen"
	# Without the same address the test proves nothing.
	grep -qx 'same 24' "$out" || { grep same "$out"; skip "the libraries were not put at the same address"; }
}

# heaptap is stopped and reads no mappings. Tables of one library must not explain the other one, or the report says so.
# bats test_tags=full
@test "stacks: another library at the same address while heaptap is stopped (D1)" {
	not_by_inline "a stack after dlclose is not marked until heaptap looks"
	local line
	coproc TURNS { TRUTH_DEPTH=127 exec "$T/stack_dlopen" wait 3>&-; }
	TARGET=$TURNS_PID
	STARTED+=("$TARGET")
	read -r -t 120 line <&"${TURNS[0]}"
	attached -d 127 "$TARGET"
	kill -STOP "$TAP"
	echo >&"${TURNS[1]}"
	until [ "$line" = done ]; do read -r -t 120 line <&"${TURNS[0]}"; done
	kill -CONT "$TAP"
	kill -INT "$TAP"
	# By ptrace nobody looked at the new libraries in time, so their calls may be missing.
	ended "$TAP" "$([ "${HEAPTAP_BACKEND:-}" = ptrace ] && echo 5 || echo 0)" || { cat "$err"; return 1; }
	jq -e '[.processes[0].stacks[] | select(any(.frames[]; .function == "t_allocates"))] |
		(map(.allocs) | add) == 50 and all(.truncated == "stale-mappings")' "$report"
}

# bats test_tags=full
@test "stacks: more libraries than there is room for are said, their stacks marked (C3)" {
	with_bpf_only "the tracer has no such limit"
	local dir=$BATS_TEST_TMPDIR/libraries n files=()
	mkdir "$dir"
	for ((n = 0; n < 1200; n++)); do files+=("$dir/$n.so"); done
	# heaptap opens each of them, whatever limit it came with.
	[ "$(ulimit -Hn)" = unlimited ] || [ "$(ulimit -Hn)" -ge 4096 ] || skip "too few open files are allowed"
	ulimit -Sn 2048
	tee "${files[@]}" <"$T/stack_plug_a.so" >/dev/null
	coproc MANY { exec "$T/stack_dlopen" many "${files[@]}" 3>&-; }
	TARGET=$MANY_PID
	STARTED+=("$TARGET")
	read -r -t 120 n <&"${MANY[0]}"
	ulimit -Sn 1024
	attached -d 127 "$TARGET"
	grep -q 'more than 1024: stacks through the others end early' "$err"
	echo >&"${MANY[1]}"
	read -r -t 120 n <&"${MANY[0]}"
	detach
	nothing_lost
	jq -r -f "$ROOT/tests/stacks/chains.jq" "$report" >"$BATS_TEST_TMPDIR/seen"
	cat "$BATS_TEST_TMPDIR/seen"
	# Half of the room is for the first mappings, half for the last: the program and the C library are there.
	awk '$2 == "complete" && $5 == "t_allocates;t_plug_a;t_calls;main" { complete = $3 }
		$2 == "limit" && $5 == "t_allocates;t_plug_a" { cut = $3 }
		END { exit !(NR == 2 && complete > 400 && cut > 400 && complete + cut == 1200) }' "$BATS_TEST_TMPDIR/seen"
}

# Where frame pointers are all there is, a function that keeps none hides its caller: never said to be complete.
@test "stacks: code of a just-in-time compiler, with frame pointers and without (C5)" {
	local told=$BATS_TEST_TMPDIR/told seen=$BATS_TEST_TMPDIR/seen line
	[ "$(uname -m)" = x86_64 ] || skip "its machine code is for x86_64"
	coproc JIT { TRUTH_DEPTH=127 exec "$T/stack_jit" 3>&-; }
	TARGET=$JIT_PID
	STARTED+=("$TARGET")
	exec 9<&"${JIT[0]}"
	read -r -t 120 line <&9
	attached -d 127 "$TARGET"
	echo >&"${JIT[1]}"
	timeout 120 cat <&9 | grep '^chain ' | sort >"$told"
	exec 9<&-
	ended "$TAP" 0
	nothing_lost
	jq -r -f "$ROOT/tests/stacks/chains.jq" "$report" | sort >"$seen"
	[ "$(wc -l <"$told")" -eq 7 ]
	diff "$told" "$seen"
}

is_explained() {
	[ -s "$report" ] && jq -e '[.processes[0].stacks[] | select(.truncated == "frame-pointers")
		| any(.frames[]; .function == "t_goes_on")] | any' "$report" >/dev/null 2>&1
}

# No event announces new code. The program adds the second piece just after heaptap read the mappings for the first one.
@test "stacks: code that is written meanwhile is found by its stacks (C5)" {
	local line
	[ "$(uname -m)" = x86_64 ] || skip "its machine code is for x86_64"
	coproc JIT { exec "$T/stack_jit" late 3>&-; }
	TARGET=$JIT_PID
	STARTED+=("$TARGET")
	read -r -t 120 line <&"${JIT[0]}"
	attached -d 127 -i 200ms "$TARGET"
	echo >&"${JIT[1]}"
	wait_for is_explained
	echo >&"${JIT[1]}"
	ended "$TAP" 0
}

# bats test_tags=full
@test "stacks: while exceptions are thrown, pass and are caught, both compilers, all levels (B9)" {
	local compiler level
	chains_equal 127 "$T/stack_throw"
	for compiler in g++ clang++; do
		for level in O0 O1 O2 O3; do chains_equal 127 "$T/stack_throw-$compiler-$level"; done
	done
}

# Looked up early: the linker's way to a function that is called for the first time has no rule that a row holds.
# bats test_tags=full
@test "stacks: from a signal handler after each instruction of functions, C library and vDSO (C5)" {
	[ "$(uname -m)" = x86_64 ] || skip "single steps are for x86_64"
	with_bpf_only "the program steps itself, and breakpoints take SIGTRAP from a thread that blocks it"
	LD_BIND_NOW=1 chains_equal 127 "$T/stack_step"
}

# bats test_tags=full
@test "stacks: lies, edges, and a recursion 1,000,000 deep end where they must, and say so (C1, C3)" {
	with_bpf_only "/proc/PID/mem shows a tracer protected pages, too"
	chains_equal 127 "$T/stack_bad"
}
