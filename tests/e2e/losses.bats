#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# When events are lost, the report says how many: seen + lost = true, for allocs and frees apart.

load ../lib/common

# adds_up OLDER_PAGE...: seen + lost = what the oracle counted
adds_up() {
	local count=$BATS_TEST_TMPDIR/count.json
	"$ORACLE/count-read" "$(count_page "$(field .pid)")" "$@" >"$count"
	jq -n -r --slurpfile r "$report" --slurpfile c "$count" '
		def differ($what; $have; $want): select($have != $want) | "\($what): report \($have), oracle \($want)";
		$r[0].processes[0] as $p | $c[0].totals as $o
		| differ("allocs + failed + lost"; $p.totals.allocs + $p.totals.failed_allocs + $p.lost.allocs; $o.allocs + $o.failed_allocs),
		  differ("frees + unknown + lost"; $p.totals.frees + $p.totals.unknown_frees + $p.lost.frees; $o.frees + $o.unknown_frees)
		' >"$BATS_TEST_TMPDIR/differences"
	cat "$BATS_TEST_TMPDIR/differences"
	[ ! -s "$BATS_TEST_TMPDIR/differences" ]
}

lost_something() { jq -e '.processes[0].lost | .allocs > 0 and .frees > 0' "$report" >/dev/null; }

# drowned PROGRAM...: run with a ring that is far too small
drowned() {
	not_by_inline "threads wait for heaptap, so that nothing is lost"
	counted -q --ring-size 4096 -- "$@"
	# 5: the result cannot be trusted. run gives the program's status.
	[ "$status" -eq 0 ] || { echo "status $status"; cat "$err"; return 1; }
	lost_something || { echo "nothing was lost: the test tests nothing"; return 1; }
	adds_up
}

# bats test_tags=full
@test "losses: a ring of one page, 8 threads (F1)" { drowned "$T/threads" 8 20000; }

# bats test_tags=full
@test "losses: nothing is called leaked that was merely lost (F1)" {
	counted -q --ring-size 4096 -- "$T/threads" 8 20000
	jq -e '[.processes[0].stacks[].definite.blocks // 0] | add // 0 | . == 0' "$report"
}

# bats test_tags=full
@test "losses: run says that its status does not tell them (F1)" {
	not_by_inline "threads wait for heaptap, so that nothing is lost"
	traced -q -- "$T/leak"
	[ ! -s "$err" ]
	losing allocs -q --ring-size 4K -d 0 -- "$T/threads" 8 20000
	[ "$status" -eq 0 ]
	grep -q "run: events were lost" "$err"
}

# bats test_tags=full
@test "losses: the text report shows them (F1)" {
	not_by_inline "threads wait for heaptap, so that nothing is lost"
	cd "$BATS_TEST_TMPDIR"
	"$HEAPTAP" run -q --ring-size 4096 -o r.json -o r.txt -- "$T/threads" 8 20000 >out 2>err
	lost=$(jq '.processes[0].lost.allocs' r.json)
	[ "$lost" -gt 0 ]
	tr -d , <r.txt | grep -i lost | grep -qw "$lost"
}

# bats test_tags=full
@test "losses: the collector is stopped for 5 s (A8, F1)" {
	stepping env HEAPTAP_COUNT="$BATS_TEST_TMPDIR/count" LD_PRELOAD="$ORACLE/count.so"
	cp "$(count_page "$TARGET")" "$BATS_TEST_TMPDIR/before"
	attached --ring-size 65536 "$TARGET"
	kill -STOP "$TAP"
	step "threads 8 10000"
	sleep 5 # nothing waits for this: it is how long the collector stands
	kill -CONT "$TAP"
	step "burst 100"
	kill -INT "$TAP"
	wait_for gone "$TAP"
	status=0
	wait "$TAP" || status=$?
	[ "$status" -eq 0 ] || [ "$status" -eq 5 ]
	lost_something
	adds_up "$BATS_TEST_TMPDIR/before"
	untouched "$TARGET"
}

@test "losses: where events were lost, no rule of --fail-on passes (F1, T6)" {
	local rule
	not_by_inline "threads wait for heaptap, so that nothing is lost"
	for rule in definite errors growth:1%; do
		traced --ring-size 4K -d 0 --fail-on "$rule" -- "$T/threads" 8 20000
		[ "$(field .lost.allocs)" -gt 0 ] || skip "nothing was lost here"
		[ "$status" -eq 6 ]
		grep -qx 'heaptap: run: --fail-on: no verdict: events were lost' "$err"
		no_line passed "$err"
	done
	stepping
	attached --fail-on definite --ring-size 4096 "$TARGET"
	kill -STOP "$TAP"
	step "burst 10000"
	kill -CONT "$TAP"
	kill -INT "$TAP"
	ended "$TAP" 5
	no_line passed "$err"
}

# bats test_tags=core
# bats test_tags=core,ptrace,inline
@test "losses: attach with losses ends with status 5" {
	stepping
	attached --ring-size 4096 "$TARGET"
	kill -STOP "$TAP"
	step "burst 10000"
	kill -CONT "$TAP"
	kill -INT "$TAP"
	ended "$TAP" 5
	# No all-clear for blocks that nobody saw.
	jq -e '.processes[0] | .lost.allocs > 0 and (.verdict | contains(" seen since the attach"))' "$report"
}

@test "losses: calls that were not seen mean status 5, calls that never return do not (B9, F1)" {
	local status=0
	cd "$BATS_TEST_TMPDIR"
	traced -q -w jumps -- "$T/longjmp"
	[ "$status" -eq 0 ]
	"$HEAPTAP" report -o jumps.json jumps
	jq -e '.processes[0].lost | .other > 0 and .allocs + .frees == 0' jumps.json
	printf 'process 77 prog /p\nlost 77 0 0 0 1\n' >unseen
	"$HEAPTAP" report unseen >unseen.txt || status=$?
	[ "$status" -eq 5 ]
}

@test "losses: a stack takes the room in the ring that it needs: 128 of 11 frames fit into 64 KiB" {
	[ "${HEAPTAP_BACKEND:-}" != ptrace ] || skip "ptrace has no ring"
	stepping
	attached --ring-size 64K "$TARGET"
	kill -STOP "$TAP"
	step "paths 7"
	kill -CONT "$TAP"
	detach
	is .totals.allocs 128
	nothing_lost
	jq -e '[.processes[0].stacks[] | select(.allocs == 1)] | length == 128' "$report"
}

@test "losses: full disk (F3)" {
	mkdir "$BATS_TEST_TMPDIR/small"
	mount -t tmpfs -o size=4k none "$BATS_TEST_TMPDIR/small" || skip "cannot mount a tmpfs here"
	run --separate-stderr "$HEAPTAP" run -o "$BATS_TEST_TMPDIR/small/r.json" -- "$T/leak"
	umount "$BATS_TEST_TMPDIR/small"
	[[ $stderr == *"No space left"* ]]
	[ "$output" = "served 200 requests" ]
}

# bats test_tags=full
@test "losses: stdout closed or full (F3)" {
	spinning
	status=0
	"$HEAPTAP" attach -t 100ms "$TARGET" >/dev/full 2>"$BATS_TEST_TMPDIR/err" 3>&- || status=$?
	[ "$status" -ne 0 ]
	grep -q 'No space left' "$BATS_TEST_TMPDIR/err"
	"$HEAPTAP" attach -t 100ms "$TARGET" >&- 2>"$BATS_TEST_TMPDIR/err" 3>&- || true
	untouched "$TARGET"
}

# bats test_tags=full
@test "losses: a file size limit (F3)" {
	run --separate-stderr bash -c "ulimit -f 1; '$HEAPTAP' run -o '$BATS_TEST_TMPDIR/r.json' -- '$T/leak'"
	[ "$output" = "served 200 requests" ]
	[[ $stderr == *"too large"* ]]
}
