#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# --backend inline: code inside the target, which is as before afterwards.

load ../lib/common

setup_file() {
	[ "$(uname -m)" = x86_64 ] || skip "the inline source knows x86_64 only"
}

equals_oracle() {
	counted -q --backend inline -- "$@"
	[ "$status" -eq 0 ] || { echo "status $status"; cat "$err"; return 1; }
	nothing_lost
	as_counted
	[ "$(jq -r .backend "$report")" = inline ]
}

# bats test_tags=core
@test "inline: run, realloc in all forms" { equals_oracle "$T/order"; }

@test "inline: run, 8 threads" { equals_oracle "$T/threads" 8 20000; }
@test "inline: run, 2000 threads" { equals_oracle "$T/threads" 2000 20; }
@test "inline: run, all operators" { equals_oracle "$T/operators"; }
@test "inline: run, exceptions out of operator new" { equals_oracle "$T/exceptions"; }
@test "inline: run, signal handlers that allocate" { equals_oracle "$T/signals"; }
# The handler's stack is above the interrupted call, which has not ended, whatever the stack pointers say.
@test "inline: run, a handler on a higher stack interrupts malloc and allocates" {
	traced -q --backend inline -- "$T/altstack"
	[ "$status" -eq 0 ] || { echo "status $status"; cat "$err" "$out"; return 1; }
	grep -qx "expect calls malloc 100" "$out"
	# A call that seems to have ended is counted as lost.
	is " | .functions.malloc + .lost.other" 100
}

@test "inline: run, threads that are cancelled" { equals_oracle "$T/cancel"; }
@test "inline: run, a large C++ program" { equals_oracle llvm-nm "$(command -v llvm-nm)"; }

# bats test_tags=core
@test "inline: attach, exactly what happens between attach and detach" {
	stepping
	step "alloc 10 100"
	attached --backend inline "$TARGET"
	has_probes "$TARGET"
	step "alloc 7 50"
	step "free 9"
	step "burst 1000"
	detach
	is .totals.allocs 1007
	is .totals.live_blocks 0
	is .totals.frees 1007
	is .totals.unknown_frees 2
	nothing_lost
	untouched "$TARGET"
	! grep -q heaptap "/proc/$TARGET/maps" || { echo "memory of ours stays"; cat "/proc/$TARGET/maps"; return 1; }
	step "alloc 5 10"
}

@test "inline: attach, threads at full speed" {
	stepping env HEAPTAP_COUNT="$BATS_TEST_TMPDIR/count" LD_PRELOAD="$ORACLE/count.so"
	step "alloc 100 64"
	cp "$(count_page "$TARGET")" "$BATS_TEST_TMPDIR/before"
	attached --backend inline "$TARGET"
	step "threads 8 20000"
	step "free 50"
	step "alloc 20 30"
	detach
	nothing_lost
	as_counted "$BATS_TEST_TMPDIR/before"
	untouched "$TARGET"
}

# bats test_tags=rounds
@test "inline: attach and detach at random moments" {
	spinning
	for ((i = 0; i < HEAPTAP_ROUNDS; i++)); do
		attached --backend inline --no-scan "$TARGET"
		detach
		untouched "$TARGET"
		works "$TARGET"
	done
}

# bats test_tags=rounds
@test "inline: kill -9 of heaptap leaves the target as it was" {
	spinning
	for ((i = 0; i < HEAPTAP_ROUNDS; i++)); do
		start "$HEAPTAP" attach -q --backend inline --no-scan "$TARGET"
		[ $((i % 2)) -eq 0 ] || wait_for has_probes "$TARGET"
		sleep "0.$((RANDOM % 4))"
		kill -KILL "$PID"
		wait "$PID" 2>/dev/null || true
		untouched "$TARGET"
		works "$TARGET"
	done
}

@test "inline: a forked child works, and is not counted" {
	traced -q --backend inline -- "$T/fork"
	[ "$status" -eq 0 ] || { echo "status $status"; cat "$err" "$out"; return 1; }
	nothing_lost
}

@test "inline: --follow and 32-bit programs are refused" {
	run timeout 60 "$HEAPTAP" run --backend inline --follow -- "$T/nothing"
	[ "$status" -eq 3 ]
	[[ $output == *"children are not followed"* ]]
	[ -x "$T/leak-32" ] || skip "no 32-bit programs here"
	traced --backend inline -- "$T/leak-32"
	grep -q "32-bit" "$err"
}

@test "inline: a program that locks all of its memory is refused" {
	start python3 -c 'import ctypes, time
libc = ctypes.CDLL(None)
print("locked", libc.mlockall(3), flush=True)
time.sleep(100)'
	wait_for says python3 locked
	says python3 "locked 0" || skip "mlockall is not permitted here"
	run timeout 60 "$HEAPTAP" attach --backend inline -t 100ms "$PID"
	[ "$status" -eq 3 ] || { echo "status $status: $output"; return 1; }
	[[ $output == *"locks all of its memory"* ]]
	untouched "$PID"
}
