#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# The events of a recording as text: a report on them is the report on the recording.

load ../lib/common

setup() { cd "$BATS_TEST_TMPDIR" || return 1; }

# But times, the order of processes and their allocators: a list names both before they begin. Places in files without
# symbols, too: wrappers are found by build IDs, which a list does not have.
# shellcheck disable=SC2016
SAME='del(.backend, '"$OF_THE_RUN"') | .processes[] |= del(.totals.peak_time_ns, .timeline, .verdict, .stacks[].place) | .processes |= sort_by(.pid, .comm) | .processes[1:] |= map(del(.allocators))'

# round_trip RUN-OPTIONS... -- PROGRAM...
round_trip() {
	"$HEAPTAP" run -q --no-scan --force -w r.heaptap -o live.json "$@" >program.out 2>program.err
	"$HEAPTAP" report -q --force -o recorded.json r.heaptap
	"$HEAPTAP" report --events r.heaptap >events.txt
	"$HEAPTAP" report -q --force -o listed.json events.txt
	jq -e '.processes[0].totals.allocs > 0' listed.json
	diff <(jq -S "$SAME" recorded.json) <(jq -S "$SAME" listed.json) >differences || { head -40 differences; return 1; }
	# And once more.
	"$HEAPTAP" report --events events.txt >again.txt
	"$HEAPTAP" report -q --force -o again.json again.txt
	diff <(jq -S "$SAME" recorded.json) <(jq -S "$SAME" again.json) >differences || { head -40 differences; return 1; }
}

# bats test_tags=core,ptrace
@test "events: their list gives the report of the recording: leaks, operators, failures" {
	round_trip -- "$T/leak"
	round_trip -- "$T/operators"
	round_trip -- "$T/own_operators"
	round_trip -- "$T/failed"
}

# bats test_tags=full
@test "events: the same: threads, mappings that change, mmap" {
	round_trip -- "$T/threads" 4 1000
	round_trip -- "$T/dlopen" "$T"
	round_trip --mmap -- "$T/mmap"
}

# bats test_tags=full
@test "events: the same: programs of a shell, by fork and exec" {
	with_bpf_only "--follow"
	round_trip -f -- sh -c 'ls / >/dev/null; (exec ls -l /usr >/dev/null); true'
	for kind in fork exec exit; do
		grep -q "^$kind [0-9]" events.txt
	done
}

# bats test_tags=full
@test "events: the same: exec, names with spaces, a custom allocator" {
	round_trip -- "$T/exec" "$T/exitcodes" exit 0
	grep -q "^exec [0-9]* exitcodes .*/exitcodes [0-9]*$" events.txt
	cp "$T/leak" './le ak\ #1'
	round_trip -- './le ak\ #1'
	grep -q '^process [0-9]* le\\x20ak\\\\\\x20\\x231 ' events.txt
	round_trip --alloc malloc=my_alloc,free=my_free -- "$T/custom"
	grep -q '^function 0 4 my_alloc ' events.txt
}

# bats test_tags=core
@test "events: with losses" {
	not_by_inline "threads wait for heaptap, so that nothing is lost"
	"$HEAPTAP" run -q --no-scan --ring-size 4096 -w r.heaptap -o live.json -- "$T/threads" 8 20000 >out 2>err || [ "$?" -eq 5 ]
	status=0
	"$HEAPTAP" report --events r.heaptap >events.txt || status=$?
	[ "$status" -eq 5 ]
	[ "$(grep '^lost' events.txt | awk '{ n += $3 } END { print n }')" -eq "$(jq '.processes[0].lost.allocs' live.json)" ]
}

# bats test_tags=full
@test "events: a marker is there, and --between works on the list" {
	stepping
	start "$HEAPTAP" attach -w r.heaptap -o whole.json "$TARGET"
	TAP=$PID
	wait_for grep -q 'attached to' "$BATS_TEST_TMPDIR/heaptap.err"
	step "alloc 3 10"
	"$HEAPTAP" mark "$TARGET" "the middle"
	step "alloc 4 10"
	step "threads 3 10"
	kill -INT "$TAP"
	ended "$TAP" 0
	"$HEAPTAP" report --events r.heaptap >events.txt
	grep -q '^mark [0-9]* the\\x20middle$' events.txt
	grep -qx "thread $TARGET $TARGET step" events.txt
	"$HEAPTAP" report -q -o part.json --between "the middle,end" events.txt
	jq -e '[.processes[0].stacks[] | select(.frames[0].function == "step_allocates") | .allocs] == [4]' part.json
}

# bats test_tags=core
@test "events: through a pipe they are listed while the process runs" {
	local list=$BATS_TEST_TMPDIR/list tracer
	stepping
	mkfifo "$BATS_TEST_TMPDIR/pipe"
	"$HEAPTAP" report --events - <"$BATS_TEST_TMPDIR/pipe" >"$list" 2>/dev/null 3>&- &
	STARTED+=("$!")
	"$HEAPTAP" attach --no-scan -w - "$TARGET" >"$BATS_TEST_TMPDIR/pipe" 2>"$BATS_TEST_TMPDIR/heaptap.err" 3>&- &
	tracer=$!
	STARTED+=("$tracer")
	wait_for grep -q 'attached to' "$BATS_TEST_TMPDIR/heaptap.err"
	step "alloc 3 1234"
	wait_for grep -q '^alloc .* malloc 0x[0-9a-f]* 1234 ' "$list"
	kill -0 "$tracer"
	kill -0 "$TARGET"
}

@test "events: 2^63 bytes and more in all are counted (B15)" {
	# Of one block 2^47 - 1 bytes at most are believed, which is all that a process can address.
	awk 'BEGIN {
		print "process 7 big /bin/big started"
		for (i = 0; i < 80000; i++)
			print "alloc 7 7 malloc 0x1000 0xffffffffffff 0\nfree 7 7 free 0x1000 0"
	}' >big.txt
	"$HEAPTAP" report -q -o big.json -o big.report.txt big.txt
	# jq would round it.
	grep -q '"alloc_bytes": *11258999068426160000[,}]' big.json
	grep -qF '(11,258,999,068,426,160,000 B) in 80,000 blocks' big.report.txt
}

@test "events: only on standard output, which may be full" {
	"$HEAPTAP" run -q --no-scan -w r.heaptap -o live.json -- "$T/leak" >program.out
	for wrong in "--between 1s,2s" "-o x.json"; do
		status=0
		# shellcheck disable=SC2086
		"$HEAPTAP" report --events $wrong r.heaptap >out 2>err || status=$?
		[ "$status" -eq 2 ] && [ ! -s out ] && [ "$(wc -l <err)" -eq 1 ]
	done
	status=0
	"$HEAPTAP" report --events r.heaptap >/dev/full 2>err || status=$?
	[ "$status" -eq 5 ]
	grep -q 'standard output: No space left' err
	[ "$(wc -l <err)" -eq 1 ]
}
