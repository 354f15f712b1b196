#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# Clocks that jump, a day that passes, CPUs that go and come.
#
# bats file_tags=full

load ../lib/common
load ../lib/remote

teardown() {
	[ -z "${CPU:-}" ] || echo 1 >"$CPU" || true
	end_started
}

# with_clock COMMAND...: with the library that changes its clock
with_clock() { LD_PRELOAD=$T/libclock.so HEAPTAP_CLOCK_FILE=$BATS_TEST_TMPDIR/a-day-later "$@"; }

@test "faults: the wall clock jumps by years while heaptap works (F6)" {
	local reports
	status=0
	report=$BATS_TEST_TMPDIR/report.json out=$BATS_TEST_TMPDIR/program.out
	with_clock timeout 120 "$HEAPTAP" run -q -o "$report" -w "$BATS_TEST_TMPDIR/r.heaptap" -- \
		"$T/threads" >"$out" 3>&- || status=$?
	[ "$status" -eq 0 ]
	as_told
	nothing_lost
	"$HEAPTAP" report -o "$BATS_TEST_TMPDIR/again.json" "$BATS_TEST_TMPDIR/r.heaptap"
	[ "$(jq -c '.processes[0].totals | del(.peak_time_ns)' "$BATS_TEST_TMPDIR/again.json")" = "$(jq -c '.processes[0].totals | del(.peak_time_ns)' "$report")" ]
	spinning
	err=$BATS_TEST_TMPDIR/heaptap.err
	with_clock timeout 120 "$HEAPTAP" attach -q --max-pause 60s -i 100ms -t 1s -o "$BATS_TEST_TMPDIR/n%n.json" "$TARGET" 2>"$err"
	reports=$(find "$BATS_TEST_TMPDIR" -name 'n*.json' | wc -l)
	[ "$reports" -ge 2 ] && [ "$reports" -le 12 ]
	report=$(find "$BATS_TEST_TMPDIR" -name 'n*.json' | sort -V | tail -1)
	nothing_lost
	jq -e '.duration_ns > 5e8 and .duration_ns < 60e9' "$report"
	untouched "$TARGET"
}

@test "faults: a day passes on a connection at once: it is made again, seen and lost add up (G8)" {
	stepping
	with_clock serving "$TARGET"
	with_clock watching "unix:$SOCKET"
	step "alloc 100 48"
	touch "$BATS_TEST_TMPDIR/a-day-later"
	# Both sides look at their clocks again and again.
	works "$TAP" 50
	works "$SERVE" 50
	step "alloc 20 48"
	# For each side the other one has been silent for a day: the connection is made again, and said. A signal before
	# that would end heaptap without it.
	wait_for grep -q 'the connection is back' "$err"
	kill -INT "$TAP"
	ended "$TAP" 5 || { cat "$err" "$BATS_TEST_TMPDIR/serve.err"; return 1; }
	jq -e '.processes[0] | .totals.allocs + .lost.allocs == 120' "$report"
	untouched "$TARGET"
}

# A board on a line of bytes may start later than its host.
@test "faults: the other side of a connection answers late, or never (G8)" {
	local later=$BATS_TEST_TMPDIR/a-day-later
	err=$BATS_TEST_TMPDIR/heaptap.err
	start /usr/bin/python3 -c 'import socket, sys, time
s = socket.socket(socket.AF_UNIX); s.bind(sys.argv[1]); s.listen()
print("ready", flush=True)
time.sleep(600)' "$BATS_TEST_TMPDIR/line"
	wait_for says python3 ready
	with_clock start "$HEAPTAP" connect "unix:$BATS_TEST_TMPDIR/line"
	TAP=$PID
	works "$TAP" 20
	echo 20 >"$later.new" && mv "$later.new" "$later"
	works "$TAP" 20
	fails gone "$TAP"
	echo 40 >"$later.new" && mv "$later.new" "$later"
	wait_for gone "$TAP"
	ended "$TAP" 4 || { cat "$err"; return 1; }
	grep -q 'nothing heard of the other side for 30 s' "$err"
}

@test "faults: a CPU goes and comes back while heaptap traces (A21)" {
	CPU=$(find /sys/devices/system/cpu/cpu[1-9]*/online -writable 2>/dev/null | tail -1)
	[ -n "$CPU" ] && [ "$(cat "$CPU")" -eq 1 ] || { CPU=; skip "no CPU can be taken away here"; }
	stepping env HEAPTAP_COUNT="$BATS_TEST_TMPDIR/count" LD_PRELOAD="$ORACLE/count.so"
	cp "$(count_page "$TARGET")" "$BATS_TEST_TMPDIR/before"
	attached "$TARGET"
	step "threads 4 500"
	echo 0 >"$CPU" || skip "no CPU can be taken away here"
	step "threads 4 500"
	echo 1 >"$CPU"
	step "threads 4 500"
	detach
	nothing_lost
	as_counted "$BATS_TEST_TMPDIR/before"
	untouched "$TARGET"
	echo 0 >"$CPU"
	attached "$TARGET"
	echo 1 >"$CPU"
	step "threads 4 500"
	detach
	nothing_lost
	is .functions.malloc 2000
}
