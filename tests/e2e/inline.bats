#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# --backend inline: code inside the target, which is as before afterwards.

load ../lib/common

setup_file() {
	[ "$(uname -m)" = x86_64 ] || skip "the inline source knows x86_64 only"
}

# first_jump PID: the address of the first jump (0xe9) in mapped code that is not what the file says
first_jump() {
	text_differs "$1" | grep 'is 0351,' | python3 -c '
import re, sys
line = sys.stdin.readline()
path, byte = re.match(r"(.*): byte (\d+) of its code", line).groups()
for mapping in open("/proc/'"$1"'/maps"):
    field = mapping.split()
    if len(field) == 6 and field[5] == path and "x" in field[1]:
        print(int(field[0].split("-")[0], 16) + int(byte) - 1)
        break'
}

# poke PID ADDRESS HEX: write one byte to its memory
poke() {
	python3 -c 'import sys
with open(f"/proc/{sys.argv[1]}/mem", "r+b", 0) as memory:
    memory.seek(int(sys.argv[2]))
    memory.write(bytes.fromhex(sys.argv[3]))' "$@"
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

# seeded: the moments of a test that has failed come again with the HEAPTAP_SEED that it says
seeded() {
	RANDOM=${HEAPTAP_SEED:=$$}
	echo "HEAPTAP_SEED=$HEAPTAP_SEED"
}

# moment: waits for up to 0.3 s. No subshell, which would have random numbers of its own.
moment() {
	local fraction
	printf -v fraction %03d $((RANDOM % 300))
	sleep "0.$fraction"
}

# has_no_memory PID: none of ours is mapped there
has_no_memory() { ! grep -q heaptap-inline "/proc/$1/maps"; }

# bats test_tags=rounds
@test "inline: attach and detach at random moments" {
	seeded
	spinning
	for ((i = 0; i < HEAPTAP_ROUNDS; i++)); do
		attached --backend inline --no-scan "$TARGET"
		moment
		detach
		untouched "$TARGET"
		works "$TARGET"
	done
}

# bats test_tags=rounds
@test "inline: kill -9 of heaptap leaves the target as it was" {
	seeded
	spinning
	for ((i = 0; i < HEAPTAP_ROUNDS; i++)); do
		start "$HEAPTAP" attach -q --backend inline --no-scan "$TARGET"
		[ $((i % 2)) -eq 0 ] || wait_for has_probes "$TARGET"
		moment
		kill -KILL "$PID"
		wait "$PID" 2>/dev/null || true
		untouched "$TARGET"
		wait_for has_no_memory "$TARGET" || { cat "/proc/$TARGET/maps"; return 1; }
		works "$TARGET"
	done
}

@test "inline: a forked child works, and is not counted" {
	traced -q --backend inline -- "$T/fork"
	[ "$status" -eq 0 ] || { echo "status $status"; cat "$err" "$out"; return 1; }
	nothing_lost
	as_told calls
}

# A breakpoint over our jump: the debugger will write the byte of our jump back, so what it leads to must stay.
@test "inline: a jump that somebody has changed keeps our memory" {
	stepping
	attached --backend inline --no-scan "$TARGET"
	read -r place < <(first_jump "$TARGET")
	[ -n "$place" ]
	poke "$TARGET" "$place" cc
	detach
	grep -q "a jump of ours" "$err" || { cat "$err"; return 1; }
	! has_no_memory "$TARGET"
	poke "$TARGET" "$place" e9
	step "alloc 10 100"
	step "free 10"
	step "threads 2 100"
}

# While nobody reads, a thread waits for a while and then goes on; what had no room is counted.
@test "inline: a full ring holds nobody, and losses are counted" {
	stepping
	attached --backend inline --no-scan "$TARGET"
	step "alloc 3 100"
	kill -STOP "$TAP"
	wait_for grep -q '^State:	T' "/proc/$TAP/status"
	step "burst 20000" # more records than a ring has room for
	kill -CONT "$TAP"
	step "burst 10"
	step "alloc 4 100"
	kill -INT "$TAP"
	ended "$TAP" 5 # some events were lost
	jq -e '.processes[0] | .lost.allocs > 0 and .lost.frees > 0
		and .totals.allocs + .lost.allocs == 20017 and .totals.frees + .lost.frees == 20010' "$report" ||
		{ jq -c '.processes[0] | .totals, .lost' "$report"; return 1; }
	untouched "$TARGET"
}

@test "inline: --follow and 32-bit programs are refused" {
	run timeout 60 "$HEAPTAP" run --backend inline --follow -- "$T/nothing"
	[ "$status" -eq 3 ]
	[[ $output == *"children are not followed"* ]]
	[ -x "$T/leak-32" ] || skip "no 32-bit programs here"
	traced --backend inline -- "$T/leak-32"
	[ "$status" -eq 0 ] || { echo "status $status"; cat "$err"; return 1; }
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
