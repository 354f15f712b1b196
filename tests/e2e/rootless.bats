#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# Without root and without BPF: code in the program sees its calls, and ptrace all else.

load ../lib/common

setup_file() {
	[ "$(uname -m)" = x86_64 ] || skip "the inline source was tried on x86_64 only"
	export PLACE
	PLACE=$(mktemp -d)
	cp "$HEAPTAP" "$PLACE/real"
	cp -r "$ORACLE/count.so" "$T" "$PLACE/"
	# With arguments for the C library of the program alone: HT_PRELOAD.
	cat >"$PLACE/heaptap" <<-EOF
		#!/bin/sh
		exec $PLACE/as_user \${HT_PRELOAD:+env LD_PRELOAD=\$HT_PRELOAD} $PLACE/real "\$@"
	EOF
	echo '#!/bin/sh' >"$PLACE/as_user"
	if [ "$(id -u)" -eq 0 ]; then
		echo 'exec setpriv --reuid=65534 --regid=65534 --clear-groups --inh-caps=-all "$@"' >>"$PLACE/as_user"
	else
		echo 'exec "$@"' >>"$PLACE/as_user"
	fi
	chmod -R a+rX "$PLACE"
	chmod 755 "$PLACE/heaptap" "$PLACE/as_user"
}

teardown_file() { [ -z "${PLACE:-}" ] || rm -rf "$PLACE"; }

setup() {
	STARTED=()
	unset HEAPTAP_NO_CODE HEAPTAP_CONFIG HT_PRELOAD
	HEAPTAP=$PLACE/heaptap
	T=$PLACE/targets
	# The user writes here.
	BATS_TEST_TMPDIR=$(mktemp -d "$PLACE/test-XXXXXX")
	chmod 777 "$BATS_TEST_TMPDIR"
	"$PLACE/as_user" "$PLACE/real" attach -b bpf -t 100ms $$ 2>&1 | grep -q 'no permission' || skip "any user may use BPF here"
}

teardown() { end_started; }

# by SOURCE: the report names it
by() { jq -e --arg source "$1" '.backend == $source' "$report" >/dev/null || { jq .backend "$report"; cat "$err"; return 1; }; }

went_well() { [ "$status" -eq 0 ] || { echo "status $status"; cat "$err"; return 1; }; }

# equals_oracle PROGRAM...: all of the oracle's code is in one page, which has no copy, so inline must be asked for
equals_oracle() {
	HEAPTAP_COUNT=$BATS_TEST_TMPDIR/count HT_PRELOAD=$PLACE/count.so traced -q --backend inline -- "$@"
	went_well
	by inline
	nothing_lost
	as_counted
}

# bats test_tags=core,anyone
@test "rootless: run takes inline, finds the leaks, and one line says so" {
	traced -- "$T/leak"
	went_well
	by inline
	nothing_lost
	is .scan.definite.blocks 32
	is .totals.allocs 862
	is .totals.frees 760
	[ "$(grep -c '^heaptap: auto: ' "$err")" -eq 1 ]
	grep -q '^heaptap: auto: inline: by code in the program (--backend ptrace: without it)' "$err"
	fails grep 'slower' "$err"
}

# bats test_tags=anyone,full
@test "rootless: HEAPTAP_NO_CODE and --backend ptrace put no code in" {
	HEAPTAP_NO_CODE=1 traced -q -- "$T/leak"
	went_well
	by ptrace
	traced -q --backend ptrace -- "$T/leak"
	by ptrace
	traced -q --backend inline -- "$T/leak"
	by inline
}

# bats test_tags=core,anyone
@test "rootless: the counts of the oracle: realloc in all forms" { equals_oracle "$T/order"; }

# bats test_tags=anyone
@test "rootless: the counts of the oracle: threads" { equals_oracle "$T/threads" 8 20000; }

# bats test_tags=anyone
@test "rootless: the counts of the oracle: operators and exceptions" {
	equals_oracle "$T/operators"
	equals_oracle "$T/exceptions"
}

# Each of its 60 loads is a stop, and each library has an allocator of its own.
# bats test_tags=anyone,full
@test "rootless: libraries that come and go (B13)" {
	traced -q -- "$T/dlopen" "$T" rounds 20
	went_well
	by inline
	as_told allocs live
	nothing_lost
}

# bats test_tags=core,anyone
@test "rootless: a program that cannot be changed is left to breakpoints, and is not started twice" {
	traced -- "$T/asks_stack"
	went_well
	[ "$(grep -c 'malloc saw' "$out")" -eq 1 ]
	by ptrace
	nothing_lost
	is .totals.allocs 9
	grep -qE 'asks_stack: PID .*: (malloc|free): .*: all calls of this process are seen by breakpoints' "$err"
}

# bats test_tags=anyone,full
@test "rootless: a library that comes later and cannot be changed: breakpoints go on where our code has stopped" {
	traced -- "$T/dlopen" "$T" rounds 3 short
	went_well
	by inline
	as_told allocs live
	nothing_lost
	is '.notes | map(select(test("breakpoints have seen all of its calls"))) | length' 1
}

# bats test_tags=anyone,full
@test "rootless: static programs, another C library, and one whose memory is limited (E5)" {
	if [ -x "$T/leak-musl" ]; then
		traced -q -- "$T/leak-musl"
		went_well
		by inline
		nothing_lost
		is .scan.definite.blocks 32
	fi
	traced -q -- "$T/leak-static"
	went_well
	by inline
	nothing_lost
	is .scan.definite.blocks 32
	traced -q -- bash -c 'ulimit -v 200000; exec "$@"' bash "$T/order"
	went_well
	nothing_lost
	jq -e '.processes[1].notes | any(test("breakpoints have seen all of its calls"))' "$report"
}

# bats test_tags=anyone
@test "rootless: a program that comes under seccomp ends as it does untraced" {
	local wanted=0
	"$T/confined" >/dev/null 2>&1 || wanted=$?
	traced -q -- "$T/confined"
	[ "$status" -eq "$wanted" ]
	by inline
	as_told allocs live
	nothing_lost
}

# The piece would take the two threads for one: before the second one runs, it is switched off.
# bats test_tags=anyone,full
@test "rootless: a program that makes a thread without a thread pointer of its own gets rid of our code" {
	local i
	for i in 1 2 3; do
		traced -q --backend inline -- "$T/twins" 5000000
		went_well
		grep -q "the thread pointer of another (clone without CLONE_SETTLS): the code is taken out of it" "$err"
	done
}

# bats test_tags=anyone
@test "rootless: a program that becomes another one by exec" {
	traced -q -- "$T/exec" "$T/exec" "$T/leak"
	went_well
	nothing_lost
	jq -e '[.processes[].totals.allocs] == [4, 4, 862]' "$report"
}

# bats test_tags=anyone,full
@test "rootless: markers, in their order among the calls" {
	needs_target marked
	traced -q --between before,after -- "$T/marked" sections
	went_well
	nothing_lost
	counts_of ptrace -b ptrace --between before,after -- "$T/marked" sections
	counts_of inline --between before,after -- "$T/marked" sections
	diff "$BATS_TEST_TMPDIR/ptrace.counts" "$BATS_TEST_TMPDIR/inline.counts"
}

# counts_of SOURCE [OPTIONS] -- PROGRAM...
counts_of() {
	local source=$1
	shift
	traced -q --no-scan "$@"
	by "$source"
	jq -S '[.processes[] | .comm, .totals.allocs, .totals.frees, .totals.live_bytes, .functions, .lost, .exit]' "$report" \
		>"$BATS_TEST_TMPDIR/$source.counts"
}

# bats test_tags=core,anyone
@test "rootless: children that are not followed run on without a tracer, and those that are have all counts (A16)" {
	local script='for i in 1 2 3; do "$0/leak" >/dev/null; done; (exec "$0/order") >/dev/null; "$0/fork" >/dev/null'
	traced -q -- "$T/fork"
	went_well
	as_told
	nothing_lost
	counts_of ptrace -b ptrace -f -- sh -c "$script" "$T"
	counts_of inline -f -- sh -c "$script" "$T"
	diff <(jq 'sort_by(tostring)' "$BATS_TEST_TMPDIR/ptrace.counts") <(jq 'sort_by(tostring)' "$BATS_TEST_TMPDIR/inline.counts")
}

# has_code PID
has_code() { grep -qs heaptap-inline "/proc/$1/maps"; }

# running: heaptap run of spin; its PID is in $TAP, that of the program in $TARGET
running() {
	start "$HEAPTAP" run -q "$@" -o "$BATS_TEST_TMPDIR/report.json" -- "$T/spin"
	TAP=$PID
	report=$BATS_TEST_TMPDIR/report.json
	wait_for says heaptap ready
	TARGET=$(pgrep -P "$TAP" -x spin)
	STARTED+=("$TARGET")
}

has_ended_or_is_whole() { gone "$1" || ! has_code "$1"; }

# bats test_tags=anyone,rounds
@test "rootless: heaptap is killed: the code comes out, and the program goes on (A3, A4, A6)" {
	local i
	for ((i = 0; i < HEAPTAP_ROUNDS; i++)); do
		running
		sleep "0.0$((RANDOM % 10))"
		kill -KILL "$TAP"
		wait "$TAP" 2>/dev/null || true
		wait_for has_ended_or_is_whole "$TARGET"
		untouched "$TARGET"
		works "$TARGET" 20
		kill -KILL "$TARGET"
	done
}

# bats test_tags=anyone,full
@test "rootless: --duration leaves the program without code and without a tracer" {
	running -t 500ms
	wait_for test -s "$report"
	wait_for has_ended_or_is_whole "$TARGET"
	untouched "$TARGET"
	works "$TARGET" 20
	nothing_lost
	by inline
}

# bats test_tags=core,anyone
@test "rootless: attach to a program of one's own: code is in it while heaptap is (A10)" {
	start "$PLACE/as_user" "$T/spin"
	TARGET=$PID
	wait_for says as_user ready
	attached "$TARGET"
	has_code "$TARGET"
	works "$TARGET"
	kill -INT "$TAP"
	ended "$TAP" 0 || { cat "$err"; return 1; }
	by inline
	nothing_lost
	[ "$(field .totals.allocs)" -gt 0 ]
	fails has_code "$TARGET"
	untouched "$TARGET"
}

# bats test_tags=anyone,full
@test "rootless: attach with --follow, asked for inline: children have their calls seen (A16)" {
	start "$PLACE/as_user" bash -c 'trap : USR1; echo ready; while [ ! -e "$1" ]; do sleep 0.1; done; "$0/leak"; exit 0' \
		"$T" "$BATS_TEST_TMPDIR/go"
	TARGET=$PID
	wait_for says as_user ready
	attached -f --backend inline --no-scan "$TARGET"
	touch "$BATS_TEST_TMPDIR/go"
	ended "$TARGET" 0
	ended "$TAP" 0 || { cat "$err"; return 1; }
	by inline
	nothing_lost
	jq -e '[.processes[] | select(.comm == "leak" and .totals.allocs == 862)] | length == 1' "$report"
}
