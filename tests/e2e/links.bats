#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# serve and connect over links that are slow, stand or break, and between machines whose clocks differ.
#
# bats file_tags=full

load ../lib/common
load ../lib/remote

# slow_link [SETTING...]: from the host's 192.0.2.2:4600 to the board; tests/net/proxy.py; its pid is in $PROXY
slow_link() {
	start_as proxy ip netns exec "$HOST" python3 "$NET/proxy.py" 192.0.2.2:4600 192.0.2.1:4576 "$@"
	PROXY=$PID
	wait_for says proxy ready
}

# lines NUMBER REGEX FILE: has the file as many such lines?
lines() {
	[ "$(grep -c "$2" "$3")" -ge "$1" ]
}

@test "links: two hosts 200 ms apart, in pieces of 7 bytes: the report is the local one" {
	two_hosts
	serving_board --wait --listen tcp://192.0.2.1 -- "$T/leak"
	wait_for is_listening
	slow_link delay=100 jitter=50 segment=7
	watching_host --sysroot / tcp://192.0.2.2:4600
	ended "$TAP" 0 || { cat "$err"; false; }
	ended "$SERVE" 0
	normal "$report" >"$BATS_TEST_TMPDIR/remote.json"
	traced -- "$T/leak"
	normal "$report" | diff "$BATS_TEST_TMPDIR/remote.json" -
}

@test "links: two hosts 200 ms apart: attach, detach: exactly what happens in between" {
	two_hosts
	stepping env HEAPTAP_COUNT="$BATS_TEST_TMPDIR/count" LD_PRELOAD="$ORACLE/count.so"
	serving_board --listen tcp://192.0.2.1 "$TARGET"
	wait_for is_listening
	slow_link delay=100 jitter=50 segment=500
	cp "$(count_page "$TARGET")" "$BATS_TEST_TMPDIR/before"
	watching_host --sysroot / tcp://192.0.2.2:4600
	wait_for is_watching
	step "alloc 1000 48"
	step "free 700"
	step "threads 4 500"
	kill -INT "$TAP"
	ended "$TAP" 0 || { cat "$err"; false; }
	nothing_lost
	as_counted "$BATS_TEST_TMPDIR/before"
	is .scan.definite.blocks 0
	untouched "$TARGET"
}

# over_64_kbit [OPTIONS]: connect by such a link, which loses 1 % too; $TARGET has made much more than that takes in time
over_64_kbit() {
	two_hosts
	stepping env HEAPTAP_COUNT="$BATS_TEST_TMPDIR/count" LD_PRELOAD="$ORACLE/count.so"
	serving_board --listen tcp://192.0.2.1 "$TARGET"
	wait_for is_listening
	slow_link delay=100 segment=500 rate=8000 loss=100
	cp "$(count_page "$TARGET")" "$BATS_TEST_TMPDIR/before"
	watching_host --sysroot / "$@" tcp://192.0.2.2:4600
	wait_for is_watching
	step "shuffle 100000"
}

# left_out: what was on its way is counted as lost. Where the other side has not answered within 2 s of the signal, as on a
# machine with other work, that is said in place of it.
left_out() {
	if jq -e '.broken_off == true' "$report"; then
		return
	fi
	is .lost.other 0
	[ "$(field .lost.allocs)" -gt 1000 ]
	seen_and_lost
}

@test "links: 64 kbit/s, 1 % loss: Ctrl-C leaves out what is on its way, and it is counted as lost" {
	over_64_kbit
	kill -INT "$TAP"
	ended "$TAP" 5 || { cat "$err"; false; }
	grep -q 'the link is slow: what is still on its way is left out' "$err"
	left_out
	untouched "$TARGET"
}

@test "links: 64 kbit/s, 1 % loss: --duration ends without a verdict; Ctrl-C leaves out what is on its way, counted as lost" {
	over_64_kbit -t 5s
	wait_for grep -q 'the link is slow, so there is no verdict; what is on its way comes' "$err"
	kill -INT "$TAP"
	ended "$TAP" 5 || { cat "$err"; false; }
	grep -q 'the link is slow: what is still on its way is left out' "$err"
	left_out
	untouched "$TARGET"
}

@test "links: 64 kbit/s: Ctrl-C does not wait for a verdict of 20,000 blocks, and says so" {
	two_hosts
	stepping
	serving_board --listen tcp://192.0.2.1 "$TARGET"
	wait_for is_listening
	slow_link delay=100 segment=500 rate=8000
	watching_host --sysroot / tcp://192.0.2.2:4600
	wait_for is_watching
	step "alloc 20000 40"
	wait_for reports_allocs 20000
	kill -INT "$TAP"
	wait_for gone "$TAP"
	grep -q 'the link is slow: what is still on its way is left out' "$err" || { cat "$err"; false; }
	grep -q 'no leak verdict: scan given up: the link is slow; .* live in 20,000 blocks' "$err"
	is .lost.allocs 0
	untouched "$TARGET"
}

@test "links: 64 kbit/s: after --duration all that is on its way comes, and nothing is lost" {
	two_hosts
	stepping env HEAPTAP_COUNT="$BATS_TEST_TMPDIR/count" LD_PRELOAD="$ORACLE/count.so"
	serving_board --listen tcp://192.0.2.1 "$TARGET"
	wait_for is_listening
	slow_link delay=100 segment=500 rate=8000
	cp "$(count_page "$TARGET")" "$BATS_TEST_TMPDIR/before"
	watching_host --sysroot / -t 4s tcp://192.0.2.2:4600
	wait_for is_watching
	step "shuffle 20000"
	wait_for grep -q 'the client has enough: the probes are out' "$BATS_TEST_TMPDIR/serve.err"
	ended "$TAP" 0 || { cat "$err"; false; }
	grep -q 'the link is slow, so there is no verdict' "$err"
	nothing_lost
	as_counted "$BATS_TEST_TMPDIR/before"
	untouched "$TARGET"
}

@test "links: two hosts; the link stands, then breaks, then works: what was on the way is counted as lost (G7, feature 44)" {
	two_hosts
	stepping env HEAPTAP_COUNT="$BATS_TEST_TMPDIR/count" LD_PRELOAD="$ORACLE/count.so"
	serving_board --listen tcp://192.0.2.1 "$TARGET"
	wait_for is_listening
	slow_link delay=20
	cp "$(count_page "$TARGET")" "$BATS_TEST_TMPDIR/before"
	watching_host --sysroot / tcp://192.0.2.2:4600
	wait_for is_watching
	step "alloc 1000 48"
	kill -HUP "$PROXY"
	# The target runs on although no event reaches the client.
	step "free 400"
	step "burst 20000"
	step "alloc 50 10"
	kill -USR1 "$PROXY"
	wait_for grep -q "connection lost" "$err"
	step "burst 500"
	kill -USR2 "$PROXY"
	wait_for grep -q "connection is back" "$err"
	step "alloc 100 24"
	kill -INT "$TAP"
	ended "$TAP" 5
	seen_and_lost
	[ "$(field .lost.allocs)" -ge 500 ]
	is .scan.definite.blocks 0
	untouched "$TARGET"
}

@test "links: two hosts; the agent serves; the link breaks again and again: seen and lost add up (G7)" {
	[ -x "$O/musl/heaptap-agent" ] || skip "no agent here, as there is no musl-gcc: see make agent-musl"
	two_hosts
	stepping env HEAPTAP_COUNT="$BATS_TEST_TMPDIR/count" LD_PRELOAD="$ORACLE/count.so"
	HEAPTAP=$O/musl/heaptap-agent serving_board --listen tcp://192.0.2.1 "$TARGET"
	wait_for is_listening
	slow_link delay=20
	cp "$(count_page "$TARGET")" "$BATS_TEST_TMPDIR/before"
	watching_host --sysroot / tcp://192.0.2.2:4600
	wait_for is_watching
	for turn in 1 2 3; do
		step "shuffle 5000"
		step "alloc 100 40"
		kill -USR1 "$PROXY"
		wait_for lines "$turn" "connection lost" "$err"
		step "free 50"
		kill -USR2 "$PROXY"
		wait_for lines "$turn" "connection is back" "$err"
	done
	step "alloc 10 77"
	kill -INT "$TAP"
	ended "$TAP" 5 || { cat "$err"; false; }
	[ "$(field .totals.allocs)" -gt 5000 ]
	seen_and_lost
	is .scan.definite.blocks 0
	untouched "$TARGET"
}

@test "links: two hosts; the link stands for ever: the program of serve comes to its end" {
	two_hosts
	serving_board --wait --listen tcp://192.0.2.1 -- "$T/spin"
	wait_for is_listening
	slow_link
	watching_host --no-scan --sysroot / tcp://192.0.2.2:4600
	wait_for is_watching
	wait_for says serve ready
	TARGET=$(pgrep -P "$SERVE" -x spin)
	kill -HUP "$PROXY"
	kill -TERM "$TARGET"
	wait_for gone "$TARGET"
	# and the server, which has nobody to tell it to
	ended "$SERVE" 0
	kill -USR1 "$PROXY"
	wait_for grep -q "connection lost" "$err"
	kill -INT "$TAP"
	ended "$TAP" 5
}

@test "links: two hosts; the link stands: Ctrl-C ends connect with its report (G7)" {
	two_hosts
	stepping
	serving_board --listen tcp://192.0.2.1 "$TARGET"
	wait_for is_listening
	slow_link
	watching_host --sysroot / tcp://192.0.2.2:4600
	wait_for is_watching
	step "alloc 10 40"
	wait_for reports_allocs 10
	kill -HUP "$PROXY"
	kill -INT "$TAP"
	ended "$TAP" 5 || { cat "$err"; false; }
	grep -q 'the other side does not answer: what is still on its way is left out' "$err" || { cat "$err"; false; }
	is .totals.allocs 10
	jq -e .broken_off "$report"
}

@test "links: the clocks of both sides are a day apart: times, growth and the recording are right" {
	unshare --time --monotonic 86400 --fork true 2>/dev/null || skip "no name spaces of time"
	spinning
	serving "$TARGET"
	report=$BATS_TEST_TMPDIR/live.json
	timeout -k 5 300 unshare --time --monotonic 86400 --fork "$HEAPTAP" connect --sysroot / -t 3s -i 300ms \
		-w "$BATS_TEST_TMPDIR/r.heaptap" -o "$BATS_TEST_TMPDIR/%n.json" -o "$report" --force "unix:$SOCKET" \
		2>"$BATS_TEST_TMPDIR/connect.err" || { cat "$BATS_TEST_TMPDIR/connect.err"; false; }
	# Sums, not speeds: an hour would do to find a day.
	jq -e '.duration_ns > 1e9 and .duration_ns < 3600e9
		and (.processes[0].totals.peak_time_ns - .time_ns | fabs) < 3600e9 and .processes[0].growth != null' "$report"
	"$HEAPTAP" report --sysroot / -o "$BATS_TEST_TMPDIR/replayed.json" "$BATS_TEST_TMPDIR/r.heaptap"
	jq -e --slurpfile live "$report" '$live[0] as $l
		| (.duration_ns - $l.duration_ns | fabs) < 3600e9
		and (.processes[0].totals.peak_time_ns - $l.processes[0].totals.peak_time_ns | fabs) < 1e6
		and .processes[0].growth == $l.processes[0].growth' "$BATS_TEST_TMPDIR/replayed.json" ||
		{ jq -c '[.time_ns, .duration_ns, .processes[0].growth, .processes[0].totals.peak_time_ns]' \
			"$report" "$BATS_TEST_TMPDIR/replayed.json"; false; }
	untouched "$TARGET"
}

@test "links: a day apart, what a console records ends when it ended over there" {
	unshare --time --monotonic 86400 --fork true 2>/dev/null || skip "no name spaces of time"
	spinning
	serving "$TARGET"
	XDG_STATE_HOME=$BATS_TEST_TMPDIR HEAPTAP_RUN_DIR=$BATS_TEST_TMPDIR/run timeout -k 5 300 unshare --time --monotonic 86400 --fork \
		"$HEAPTAP" console -q "unix:$SOCKET" -x "record $BATS_TEST_TMPDIR/r.heaptap" -x "monitor 100ms 3" -x record \
		-x quit >"$BATS_TEST_TMPDIR/console.out" 2>&1 || { cat "$BATS_TEST_TMPDIR/console.out"; false; }
	"$HEAPTAP" report -o "$BATS_TEST_TMPDIR/replayed.json" "$BATS_TEST_TMPDIR/r.heaptap"
	jq -e '(.processes | length) == 1 and .duration_ns < 3600e9' "$BATS_TEST_TMPDIR/replayed.json" ||
		{ jq -c '[.duration_ns, .processes[0].totals]' "$BATS_TEST_TMPDIR/replayed.json"; false; }
	untouched "$TARGET"
}

# received: bytes that have come to the host
received() { ip netns exec "$HOST" cat /proc/net/dev | sed 's/:/ /' | awk '$1 ~ /^h/ { print $2 }'; }

@test "links: two hosts: 64 MiB in the memory of the program stay there, only its verdicts travel (S2)" {
	two_hosts
	# Random bytes: no compression makes them small.
	serving_board --wait --listen tcp://192.0.2.1 -- "$(python3 -c 'import sys; print(sys.executable)')" -c 'import os
kept = [os.urandom(1 << 20) for i in range(64)]
os._exit(0)'
	wait_for is_listening
	watching_host --sysroot / tcp://192.0.2.1:4576
	ended "$TAP" 0 || { cat "$err"; false; }
	[ "$(field .totals.live_bytes)" -gt $((64 << 20)) ] || { field .totals; field .command; false; }
	jq -e '.processes[0].scan.reachable.bytes + .processes[0].scan.possible.bytes > 67108864' "$report"
	[ "$(received)" -gt 10000 ]
	[ "$(received)" -lt $((4 << 20)) ] || { echo "$(received) bytes"; false; }
}
