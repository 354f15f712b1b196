#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# Other people's programs and allocators.

load ../lib/common

# library NAME: its path
library() { ldconfig -p | awk -v n="$1" '$1 ~ "^" n && $0 ~ /x86-64|AArch64/ { print $NF; exit }'; }

# with_allocator NAME KIND: the leaking program on another allocator
with_allocator() {
	local lib
	lib=$(library "$1")
	[ -n "$lib" ] || skip "$1 is not installed"
	LD_PRELOAD=$lib traced -- "$T/leak" --expect
	[ "$status" -eq 0 ] || { cat "$err"; return 1; }
	nothing_lost
	as_told live allocs failed unknown
	jq -e --arg k "$2" '.processes[0].allocators | any(.kind == $k)' "$report" ||
		{ jq -c '.processes[0].allocators' "$report"; return 1; }
}

@test "programs: jemalloc preloaded (B12, B13)" { with_allocator libjemalloc jemalloc; }
# bats test_tags=full
@test "programs: tcmalloc preloaded (B12, B13)" { with_allocator libtcmalloc_minimal.so tcmalloc; }
@test "programs: mimalloc preloaded (B12, B13)" { with_allocator libmimalloc mimalloc; }

# calls_in_all PATTERN: of functions whose name matches
calls_in_all() { jq --arg p "$1" '.processes[0].functions | with_entries(select(.key | test($p))) | add // 0' "$report"; }

# operators_on NAME: libraries that bring operator new and delete of their own. Several names may be one
# function there, so that only sums can be compared.
operators_on() {
	local lib
	lib=$(library "$1")
	[ -n "$lib" ] || skip "$1 is not installed"
	LD_PRELOAD=$lib HEAPTAP_TARGET_HOLD=1 traced -- "$T/operators"
	[ "$status" -eq 0 ] || { cat "$err"; return 1; }
	nothing_lost
	as_told live allocs failed unknown
	# 50 of them are released, 5 are held. A library may use them itself.
	[ "$(calls_in_all '^operator new')" -ge 55 ]
	[ "$(calls_in_all '^operator delete|^free')" -ge 50 ]
}

# bats test_tags=full
@test "programs: operators of jemalloc (B8, B12)" { operators_on libjemalloc; }
# bats test_tags=full
@test "programs: operators of tcmalloc (B8, B12)" { operators_on libtcmalloc_minimal.so; }
# bats test_tags=full
@test "programs: operators of mimalloc (B8, B12)" { operators_on libmimalloc; }

# counted_on NAME: threads, realloc and failures equal the oracle in front of another allocator
counted_on() {
	local lib p own
	lib=$(library "$1")
	[ -n "$lib" ] || skip "$1 is not installed"
	own=$(PRELOAD=$lib own_calls)
	for p in order threads failed operators; do
		PRELOAD=$lib counted -q -- "$T/$p"
		[ "$status" -eq 0 ] || { echo "$p: status $status"; cat "$err"; return 1; }
		as_counted || { echo "$p"; return 1; }
	done
}

# bats test_tags=full
@test "programs: jemalloc equals the oracle (B12)" { counted_on libjemalloc; }
# bats test_tags=full
@test "programs: tcmalloc equals the oracle (B12)" { counted_on libtcmalloc_minimal.so; }
# bats test_tags=full
@test "programs: mimalloc equals the oracle (B12)" { counted_on libmimalloc; }

# lost_of_all: in the report, definite blocks, and blocks that are not sure
lost_of_all() { jq -c '.processes[0].scan | [.definite.blocks + .indirect.blocks, .possible.blocks]' "$report"; }

# neighbours NAME: blocks beside the end of a container, and in a freed one, are lost as with glibc. One old end may lie
# on the stack.
neighbours() {
	local lib shape found
	lib=$(library "$1")
	[ -n "$lib" ] || skip "$1 is not installed"
	for shape in vectors halves queues freed table; do
		LD_PRELOAD=$lib traced -- "$T/neighbours" "$shape"
		[ "$status" -eq 0 ] || { cat "$err"; return 1; }
		found=$(lost_of_all)
		case "$shape $found" in
		"table [0,0]" | *" [1000,0]" | *" [99"[89]",0]") ;;
		*) echo "$shape: lost, possibly lost: $found"; return 1 ;;
		esac
	done
}

@test "programs: neighbours of ends and freed containers with jemalloc (T8)" { neighbours libjemalloc; }
# bats test_tags=full
@test "programs: neighbours of ends and freed containers with mimalloc (T8)" { neighbours libmimalloc; }
# bats test_tags=full
@test "programs: neighbours of ends and freed containers with tcmalloc (T8)" { neighbours libtcmalloc_minimal.so; }

# own_api MODE KIND LOST [NAME]: functions that an allocator has beside malloc are counted, and no release is wrong
own_api() {
	local lib=
	if [ -n "${4:-}" ]; then
		lib=$(library "$4")
		[ -n "$lib" ] || skip "$4 is not installed"
	fi
	LD_PRELOAD=$lib traced --fail-on errors -- "$T/own_api" "$1"
	[ "$status" -eq 0 ] || { cat "$err"; return 1; }
	nothing_lost
	as_told allocs live unknown
	jq -e --arg k "$2" --argjson lost "$3" '.processes[0]
		| (.allocators | any(.kind == $k)) and .scan.definite.blocks == $lost' "$report" ||
		{ jq -c '.processes[0] | .allocators, .scan' "$report"; return 1; }
}

# bats test_tags=ptrace,inline
@test "programs: an own API under a prefix (T7)" { own_api my jemalloc 2; }
# bats test_tags=ptrace,inline
@test "programs: the own API of jemalloc (T7)" { own_api jemalloc jemalloc 2 libjemalloc; }
# bats test_tags=ptrace,inline
@test "programs: the own API of mimalloc (T7)" { own_api mimalloc mimalloc 1 libmimalloc; }

# bats test_tags=ptrace,inline
@test "programs: what mimalloc takes and releases unseen is no mistake (T7)" {
	traced --fail-on errors -- "$T/own_heap"
	[ "$status" -eq 0 ] || { cat "$err"; return 1; }
	nothing_lost
	as_told allocs live unknown
	jq -e '.processes[0].scan.definite.blocks == 2' "$report"
}

@test "programs: blocks of a heap that mimalloc destroyed are unsure (T7)" {
	local lib
	lib=$(library libmimalloc)
	[ -n "$lib" ] || skip "libmimalloc is not installed"
	LD_PRELOAD=$lib traced --fail-on definite --fail-on errors -- "$T/own_api" mimalloc-heap
	[ "$status" -eq 0 ] || { cat "$err"; return 1; }
	jq -e '.processes[0].scan | .definite.blocks == 0 and .unsure.blocks == 10' "$report"
}

@test "programs: the allocator of libc is named" {
	traced -- "$T/leak"
	jq -e '.processes[0].allocators | any(.kind == "glibc" and (.object | test("libc")))' "$report"
	[ -x "$T/leak-musl" ] || skip "musl targets were not built"
	traced -- "$T/leak-musl"
	jq -e '.processes[0].allocators | any(.kind == "musl")' "$report"
}

@test "programs: an allocator that is not used has no events" {
	traced -- "$T/ownalloc"
	jq -e '.processes[0].allocators | any(.object | endswith("ownalloc"))' "$report"
	as_told
}

answers() { redis-cli -s "$1" ping >/dev/null 2>&1; }

start_redis() {
	command -v redis-server >/dev/null || skip "redis-server is not installed"
	start env "$@" redis-server --port 0 --unixsocket "$BATS_TEST_TMPDIR/redis" --save "" --daemonize no --dir "$BATS_TEST_TMPDIR"
	TARGET=$PID
	wait_for answers "$BATS_TEST_TMPDIR/redis"
}

# bats test_tags=full
@test "programs: redis-server under redis-benchmark, attached while it runs" {
	start_redis
	local load=(redis-benchmark -s "$BATS_TEST_TMPDIR/redis" -q -t set,lpush,hset -r 1000) nr=5000
	# redis is under load during the attach; by ptrace that would take minutes.
	if [ "${HEAPTAP_BACKEND:-}" = ptrace ]; then nr=1000; else start "${load[@]}" -l; fi
	attached "$TARGET"
	start "${load[@]}" -n "$nr"
	ended "$PID" 0
	detach
	nothing_lost
	jq -e '.processes[0].totals.allocs > 1000' "$report"
	jq -e '[.processes[0].stacks[].frames[].function // empty] | any(. == "main" or startswith("aeProcessEvents"))' "$report"
	untouched "$TARGET"
	redis-cli -s "$BATS_TEST_TMPDIR/redis" ping
}

# stop_at_rest PID: in a system call, not between the probe at an allocator's entry and the oracle behind it
stop_at_rest() {
	local call
	kill -STOP "$1"
	wait_for grep -q '^State:	[Tt]' "/proc/$1/status"
	read -r call _ <"/proc/$1/syscall"
	[[ $call =~ ^[0-9]+$ ]] || { kill -CONT "$1"; return 1; }
}

@test "programs: redis-server equals the oracle between attach and detach" {
	local nr=5000
	start_redis HEAPTAP_COUNT="$BATS_TEST_TMPDIR/count" LD_PRELOAD="$ORACLE/count.so"
	# At rest it still does a little ten times a second: stopped, it does nothing while we attach and detach.
	wait_for stop_at_rest "$TARGET"
	cp "$(count_page "$TARGET")" "$BATS_TEST_TMPDIR/before"
	attached "$TARGET"
	kill -CONT "$TARGET"
	[ "${HEAPTAP_BACKEND:-}" != ptrace ] || nr=500
	redis-benchmark -s "$BATS_TEST_TMPDIR/redis" -n "$nr" -q -t set,lpush,hset -r 1000 >/dev/null
	wait_for stop_at_rest "$TARGET"
	detach
	nothing_lost
	as_counted "$BATS_TEST_TMPDIR/before"
	kill -CONT "$TARGET"
	untouched "$TARGET"
}
