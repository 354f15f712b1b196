#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Runs in a guest: heaptap on programs that print the truth about themselves. TAP on the console; status 0 = all is well.

bats_require_minimum_version() { :; }
export O=/build BATS_TEST_TMPDIR=/tmp/test BATS_FILE_TMPDIR=/tmp BATS_RUN_TMPDIR=/tmp
# shellcheck source=tests/lib/common.bash
. /tests/lib/common.bash
# guest_until() in machine.sh knows whether a guest hangs or gets no CPU; in here both look the same.
LIMIT_S=3600

# told PROGRAM ARGS...: as in run.bats, and every stack goes to its end
told() {
	traced -- "$@"
	[ "$status" -eq 0 ] || { echo "status $status"; cat "$err"; return 1; }
	nothing_lost
	as_told calls live allocs failed unknown bytes
	whole_stacks
}

whole_stacks() {
	jq -e '[.processes[0].stacks[] | select(.complete | not)] | length == 0' "$report" >/dev/null || {
		jq -c '.processes[0].stacks[] | select(.complete | not)
			| [.truncated, .allocs, (.frames | map(.function // .module))]' "$report" | head -5
		return 1
	}
}

test_doctor() {
	jq -r '"backend \(.backend): \(.reason)", (.features | to_entries[] | "\(.key) \(.value)")' /tmp/doctor.json |
		sed 's/^/# /' >&3
	case $(jq -r .backend /tmp/doctor.json) in bpf | "${HEAPTAP_BACKEND:-}") ;; *) return 1 ;; esac
}

# Not another one, which would see the same calls.
test_source() {
	traced -- "$T/nothing"
	jq -e --arg source "${HEAPTAP_BACKEND:-bpf}" '.backend == $source' "$report"
	! grep 'BPF' "$err"
}

test_leak() { told "$T/leak" --expect; }
test_order() { told "$T/order"; }
test_threads() { told "$T/threads" 4 200; }
more_operators() { HEAPTAP_TARGET_HOLD=1 told "$T/operators" && told "$T/own_operators"; }
test_exceptions() { HEAPTAP_TARGET_HOLD=1 told "$T/exceptions"; }
more_libraries_before_main() { told "$T/early"; }
test_libraries_by_dlopen() { told "$T/dlopen" "$T"; }
test_32bit() {
	[ -e "$T/leak-32" ] || skip "no 32-bit programs on this CPU"
	told "$T/leak-32" --expect
}
more_static() {
	traced -- "$T/nothing-static"
	cp "$report" /tmp/nothing.json
	base=/tmp/nothing.json told "$T/leak-static" --expect
}
more_reloads() {
	traced -- "$T/reloads" "$T/plug_own.so"
	[ "$status" -eq 0 ]
	nothing_lost
	as_told allocs live
}
more_mmap() { traced --mmap -- "$T/mmap" && [ "$status" -eq 0 ] && as_told bytes; }

more_deep_stack() {
	traced -- "$T/deep" 30
	jq -e '.processes[0].stacks[] | select(.live_bytes == 60)
		| ([.frames[] | select(.function == "recurse")] | length) == 30 and .complete' "$report"
}

more_exit_status() {
	traced -- "$T/exitcodes" exit 4
	[ "$status" -eq 4 ]
}

test_exit_by_signal() {
	traced -- "$T/exitcodes" signal 11
	[ "$status" -eq 139 ]
	is .exit.signal 11
}

test_attach_exactly() {
	attached_between
	whole_stacks
}

test_attach_threads_as_counted() {
	[ "$(jq .features.cookie /tmp/doctor.json)" != false ] ||
		skip "no cookies: a load of the programs for each of the oracle's functions would take minutes"
	stepping env HEAPTAP_COUNT="$BATS_TEST_TMPDIR/count" LD_PRELOAD="$ORACLE/count.so"
	step "alloc 100 64"
	cp "$(count_page "$TARGET")" /tmp/before
	attached "$TARGET"
	step "threads 4 2000"
	step "free 50"
	step "alloc 20 30"
	detach
	nothing_lost
	as_counted /tmp/before
	untouched "$TARGET"
}

# since MAJOR MINOR: this kernel is no older
since() {
	local major minor
	IFS=. read -r major minor _ </proc/sys/kernel/osrelease
	[ $((major * 100 + minor)) -ge $(($1 * 100 + $2)) ]
}

# The last state of a process that a signal ends is judged: the kernel has probes of its own functions.
test_attach_end_by_signal() {
	local signal round
	[ -e /sys/bus/event_source/devices/kprobe ] || skip "no kernel probes here"
	since 5 17 || skip "no bpf_loop() before Linux 5.17"
	for signal in 9 11; do
		# heaptap has half a second to come, which is little in an emulated machine beside a load: one of ten is judged.
		for ((round = 0; round < 10; round++)); do
			end_by "$signal"
			is_judged && break
		done
		[ "$round" -lt 10 ]
		is .exit.signal "$signal"
	done
}

# end_by SIGNAL: ends a process that heaptap has attached to
end_by() {
	stepping
	attached "$TARGET"
	step "alloc 7 50"
	kill "-$1" "$TARGET"
	ended "$TARGET" $((128 + $1))
	ended "$TAP" 0
}

is_judged() { jq -e '.processes[0].scan | [.definite, .reachable, .possible, .indirect | .blocks?] | add == 7' "$report"; }

# Another process with the same libraries is none of our business.
more_attach_one_of_two() {
	spinning 1 2
	local other=$TARGET
	stepping
	attached "$TARGET"
	step "burst 100"
	detach
	is .totals.allocs 100
	nothing_lost
	untouched "$TARGET"
	untouched "$other"
}

test_attach_two() {
	spinning 1 2
	local first=$TARGET second
	cp "$T/spin" /tmp/spin2
	start /tmp/spin2 1 2
	second=$PID
	attached "$first" "$second"
	sleep 1
	detach
	jq -e 'all(.processes[]; .totals.allocs > 0)' "$report" || { jq -c '.processes[].totals' "$report"; return 1; }
	nothing_lost
	untouched "$first"
	untouched "$second"
}

# By both sources, stock programs have the same calls and bytes.
more_stock_programs_as_by_bpf() {
	local by_bpf by_own
	for command in "jq -n [range(3000)]|map({a:.})|length" "sed -n p /guest.sh" "bash -c :" "grep -c test /guest.sh"; do
		# shellcheck disable=SC2086 # words of a command
		traced --backend bpf -- $command
		nothing_lost
		by_bpf=$(jq -c '.processes[0].totals | [.allocs, .frees, .alloc_bytes, .live_bytes]' "$report")
		# shellcheck disable=SC2086
		traced -- $command
		nothing_lost
		by_own=$(jq -c '.processes[0].totals | [.allocs, .frees, .alloc_bytes, .live_bytes]' "$report")
		echo "# $command: $by_own" >&3
		[ "$by_own" = "$by_bpf" ] || { echo "$command: by BPF $by_bpf, else $by_own"; return 1; }
	done
}

# Threads that are in an allocator all the time.
more_attach_at_full_speed() {
	spinning 0 4
	for _ in 1 2 3; do
		attached --no-scan "$TARGET"
		sleep 1
		detach
		nothing_lost
		untouched "$TARGET"
	done
}

test_follow() {
	traced -f -- "$T/fork" 3
	[ "$status" -eq 0 ]
	nothing_lost
	jq -e '[.processes[] | [.totals.live_blocks, .totals.unknown_frees, .exit.code]] == [[3, 0, 0], [9, 0, 0], [9, 0, 0], [9, 0, 0]]' "$report"
	traced -f -- "$T/sharers" clone
	[ "$status" -eq 0 ]
	as_told
}

# The child releases what it has from its parent. Sums of 5,000 samples and more are right within a tenth.
test_samples() {
	local rounds=20000 major minor
	traced --sample 16K -- "$T/sampled" $rounds
	[ "$status" -eq 0 ] && nothing_lost
	jq -e --argjson n $((rounds * 4100)) '.processes[0].totals.alloc_bytes / $n | . > 0.9 and . < 1.1' "$report"
	IFS=. read -r major minor _ </proc/sys/kernel/osrelease
	if [ $((major * 100 + minor)) -lt 517 ]; then
		status=0
		"$HEAPTAP" run --backend bpf -f --sample 16K -- "$T/nothing" 2>/tmp/refused || status=$?
		[ "$status" -eq 3 ]
		grep 'not with --follow on this kernel' /tmp/refused
		return
	fi
	traced -f --sample 16K -- "$T/sampled" $rounds fork
	jq -e --argjson n $((rounds * 9200)) '.processes[1].totals | (.alloc_bytes / $n | . > 0.9 and . < 1.1) and
		.live_bytes < $n / 20' "$report"
}

# Threads of the target make system calls for the scan and for the inline source, and go on as before.
test_system_calls_of_others() {
	since 3 11 || skip "no PTRACE_GETSIGMASK before Linux 3.11"
	test_thread_call
}

test_scan_of_a_copy() {
	since 3 11 || skip "no PTRACE_GETSIGMASK before Linux 3.11"
	stepping
	step "alloc 10 64"
	attached --snapshot fork "$TARGET"
	step "alloc 20 64"
	detach
	is .scan.copied true
	nothing_lost
	untouched "$TARGET"
	step "alloc 20 64"
}

test_killed_heaptap() {
	spinning 1 2
	attached "$TARGET"
	kill -KILL "$TAP"
	ended "$TAP" 137
	untouched "$TARGET"
	kill -TERM "$TARGET"
	ended "$TARGET" 0
}

# skip REASON: ends the test
skip() {
	echo "$1" >"$BATS_TEST_TMPDIR/skipped"
	exit 0
}

# A function with "set -e" must not be part of a condition, or that is off.
run_test() {
	local status begun=$SECONDS
	echo "GUEST-BEGIN $1"
	rm -rf "$BATS_TEST_TMPDIR"
	mkdir -p "$BATS_TEST_TMPDIR"
	(
		set -eE
		trap 'echo "line $LINENO: $BASH_COMMAND"' ERR
		trap end_started EXIT
		"$1"
	) 3>&1 >/tmp/log 2>&1 </dev/null
	status=$?
	nr=$((nr + 1))
	if [ "$status" -eq 0 ]; then
		echo "ok $nr - $1, $((SECONDS - begun)) s$(sed 's/^/ # SKIP /' "$BATS_TEST_TMPDIR/skipped" 2>/dev/null)"
		return
	fi
	echo "not ok $nr - $1, $((SECONDS - begun)) s"
	sed 's/^/#   /' /tmp/log
	[ ! -s "$BATS_TEST_TMPDIR/heaptap.err" ] || tail -n 40 "$BATS_TEST_TMPDIR/heaptap.err" | sed 's/^/#   stderr: /'
	failed=$((failed + 1))
}

# HEAPTAP_TESTS=REGEX chooses from all; otherwise those whose names begin with more_ are left out, as they take long.
chosen() { declare -F | awk -v re="${HEAPTAP_TESTS:-^test_}" '$3 ~ /^(test|more)_/ && $3 ~ re { print $3 }'; }

"$HEAPTAP" doctor --json >/tmp/doctor.json
nr=0 failed=0
for name in $(chosen); do
	run_test "$name"
done
echo "1..$nr"
# Why a kernel refuses a program is told only to those who ask.
[ "$failed" -eq 0 ] || "$HEAPTAP" run -v -v -- "$T/nothing" 2>&1 | grep -E 'bpf:|cannot' | tail -n 30 | sed 's/^/# load: /'
[ "$nr" -gt 0 ] && [ "$failed" -eq 0 ]
