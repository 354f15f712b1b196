#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# --guess: malloc and free of static programs without symbols, found by their code and believed by what they do.

load ../lib/common

setup() { cd "$BATS_TEST_TMPDIR" || return 1; }

# same_with_symbols PROGRAM [ARG...]: the report of the stripped program, guessed, is that of the program with symbols
same_with_symbols() {
	needs_target "$1"
	# glibc allocates memory for the path of the program: both are of one length.
	cp "$T/$1" symbol
	strip -o hidden symbol
	traced -- ./symbol "${@:2}"
	[ "$status" -eq 0 ]
	"${FACTS:-facts}" "$report" >known
	traced --guess -o report.txt -- ./hidden "${@:2}"
	[ "$status" -eq 0 ]
	# The installed library may be of another build than those of the table.
	grep -q 'has malloc and free like those of' "$err" || skip "libc.a is of a build that the table lacks: make signatures"
	nothing_lost
	"${FACTS:-facts}" "$report" >guessed
	diff known guessed
	[ "$(jq '.processes[0].totals.allocs > 50' "$report")" = true ]
	grep -q '^  allocators  guessed ' report.txt
	grep -q '^  note        malloc and free are guessed by their code (--guess)$' report.txt
}

# facts REPORT: what the report says of the heap, without names
facts() {
	jq -S '.processes[0] | { functions, verdict: (.scan | del(.pause_ns, .scanned_bytes, .skipped_bytes)),
		totals: (.totals | del(.peak_time_ns)),
		stacks: [.stacks[] | [.function, .allocs, .frees, .alloc_bytes, .live_bytes, .live_blocks, .definite.bytes]] | sort }' "$1"
}

# sums REPORT: what does not depend on which thread was first
sums() {
	jq -S '.processes[0] | { functions, lost, unknown: .totals.unknown_frees, allocs: .totals.allocs, frees: .totals.frees,
		live: .totals.live_blocks, bytes: .totals.live_bytes }' "$1"
}

# bats test_tags=core
@test "guess: a static glibc program without symbols: the report that it has with symbols" { same_with_symbols leak-static; }
@test "guess: a static musl program without symbols: the report that it has with symbols" { same_with_symbols leak-musl-static; }
# bats test_tags=full
@test "guess: a static PIE" { same_with_symbols leak-static-pie; }
@test "guess: realloc in all its forms" { FACTS=sums same_with_symbols order-static; }
# bats test_tags=full
@test "guess: threads, whose ends make glibc call free for itself" { FACTS=sums same_with_symbols threads-static; }
# bats test_tags=full
@test "guess: threads of musl" { FACTS=sums same_with_symbols threads-musl-static; }

# bats test_tags=full
@test "guess: a process that runs already" {
	needs_target leak-static
	gcc -O1 -static -s -o spinner "$ROOT/tests/targets/spin.c" -I"$ROOT"
	start ./spinner
	TARGET=$PID
	wait_for says spinner ready
	attached --guess "$TARGET"
	grep -q 'has malloc and free like those of' "$err" || skip "libc.a is of a build that the table lacks: make signatures"
	works "$TARGET"
	kill -INT "$TAP"
	ended "$TAP" 0
	is .watched true
	[ "$(jq '.processes[0].totals.allocs > 10' "$report")" = true ]
}

@test "guess: without --guess there is no verdict, and --guess is named" {
	needs_target leak-static
	strip -o hidden "$T/leak-static"
	traced --fail-on definite -- ./hidden
	[ "$status" -eq 6 ]
	is '.unwatched_help | test("--guess")' true
	traced --guess --fail-on definite -- ./hidden
	grep -q 'has malloc and free like those of' "$err" || skip "libc.a is of a build that the table lacks: make signatures"
	[ "$status" -eq 99 ]
}

@test "guess: no verdict on a Go program" {
	command -v go >/dev/null || skip "no go here"
	mkdir gopher
	cat >gopher/main.go <<-'END'
		package main

		func main() { s := [][]byte{}; for i := 0; i < 1000; i++ { s = append(s, make([]byte, 1000)) }; println(len(s)) }
	END
	(cd gopher && GOCACHE=$PWD/cache GO111MODULE=off CGO_ENABLED=0 go build -ldflags '-s -w' -o ../go main.go)
	traced --guess --fail-on definite -- ./go
	[ "$status" -eq 6 ]
	is .watched false
	! grep -q 'has malloc and free' "$err" || return 1
}

@test "guess: no verdict on a static program with an allocator of its own" {
	cat >own.c <<-'END'
		static char pool[4096]; static unsigned used;
		__attribute__((noinline)) void *take(unsigned n) { void *p = pool + used; used += n; return p; }
		void _start(void) { for (int i = 0; i < 100; i++) *(volatile char *)take(16) = 1; __asm__ volatile("syscall" :: "a"(60), "D"(0)); }
	END
	gcc -O1 -static -nostdlib -s -o own own.c || skip "no static program can be linked here"
	traced --guess --fail-on definite -- ./own
	[ "$status" -eq 6 ]
}

# A list of events says what the guessed functions did.
@test "guess: functions that do not behave as malloc and free are not believed" {
	local kind
	begin() { printf 'process 10 prog /bin/prog %s\nmap 10 0x1000 0x2000 0 /bin/prog\nallocator 10 "%s" /bin/prog\n' started "$1"; }
	for kind in 'guessed\x20glibc' glibc; do
		{ begin "$kind"; for i in 1 2 3 4; do echo "free 10 10 free 0x${i}000 0"; done; echo "alloc 10 10 malloc 0x9000 16 0"; echo "free 10 10 free 0x9000 0"; } | tr -d '"' >wrong
		{ begin "$kind"; for i in 1 2 3 4; do echo "alloc 10 10 malloc 0x${i}000 16 0"; echo "free 10 10 free 0x${i}000 0"; done; } | tr -d '"' >right
		{ begin "$kind"; } | tr -d '"' >silent
		for events in wrong right silent; do "$HEAPTAP" report "$events" >"$events.txt"; done
		grep -q '^no verdict' right.txt && ! grep -q 'look like malloc' right.txt
		[ "$kind" = glibc ] || {
			unbroken <wrong.txt | grep -q 'no verdict: nothing could be watched: functions that look like malloc and free (--guess) do not behave so: blocks were released that had never been allocated'
			unbroken <silent.txt | grep -q 'do not behave so: no block was seen'
		}
		[ "$kind" != glibc ] || ! grep -q 'look like malloc' wrong.txt silent.txt || return 1
	done
}
