#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# A recording gives the report that was written live; what breaks it costs no more than what is broken.

load ../lib/common

setup() { cd "$BATS_TEST_TMPDIR" || return 1; }

# Both reports without what may differ: a recording names no census of its process.
# shellcheck disable=SC2016
SAME='del(.backend, '"$OF_THE_RUN"') | .processes[] |= del(.totals.peak_time_ns, .timeline, .resident) |
	.processes[].verdict |= (. // "" | sub(" .older ones: heaptap scan [0-9]+."; ""))'

# same_report LIVE REPLAYED
same_report() {
	jq -S "$SAME" "$1" >live.txt
	jq -S "$SAME" "$2" >replayed.txt
	diff live.txt replayed.txt >differences || { head -40 differences; return 1; }
}

# recorded RUN-OPTIONS... -- PROGRAM...: run and recorded; live.json, r.heaptap, replayed.json
recorded() {
	"$HEAPTAP" run -q -w r.heaptap -o live.json "$@" >program.out 2>program.err
	"$HEAPTAP" report -q -o replayed.json r.heaptap
}

# same_for RUN-OPTIONS... -- PROGRAM...
same_for() {
	recorded "$@"
	jq -e '.processes[0].totals.allocs > 0' live.json
	same_report live.json replayed.json
}

# bats test_tags=core
@test "recording: the report equals the live one: kinds of leaks" {
	same_for -- "$T/leak_kinds"
	jq -e '.processes[0].scan.definite.blocks > 0' replayed.json
}

# bats test_tags=full
@test "recording: the report equals the live one: C++ and its operators" { same_for -- "$T/operators"; }

# bats test_tags=full
@test "recording: the report equals the live one: threads" { same_for -- "$T/threads" 8 2000; }

# bats test_tags=full
@test "recording: the report equals the live one: failing calls, sizes at the limit" { same_for -- "$T/failed"; }

@test "recording: the report equals the live one: mmap" { same_for --mmap -- "$T/mmap"; }

# bats test_tags=full
@test "recording: the report equals the live one: dlopen" { same_for -- "$T/dlopen" "$T"; }

# bats test_tags=full
@test "recording: the report equals the live one: a custom allocator" {
	same_for --alloc malloc=my_alloc,free=my_free -- "$T/custom"
}

# bats test_tags=core
@test "recording: the report equals the live one: exec, one report for each image" {
	recorded -- "$T/exec" "$T/exitcodes" exit 0
	jq -e '.processes | length == 2' live.json
	same_report live.json replayed.json
}

# bats test_tags=full
@test "recording: the report equals the live one: without stacks" { same_for -d 0 -- "$T/leak"; }

# bats test_tags=full
@test "recording: the report equals the live one: what others wrote" {
	same_for -- perl -e 'push @a, {x => $_} for 1..2000'
	rm -f r.heaptap ./*.json
	same_for -- sh -c 'exec ls -l /usr/bin'
}

@test "recording: the report equals the live one: with losses (F1)" {
	not_by_inline "its threads wait for room in their rings"
	recorded --ring-size 4096 -- "$T/threads" 8 20000 || [ "$?" -eq 5 ]
	jq -e '.processes[0].lost.allocs > 0' live.json
	same_report live.json replayed.json
}

# bats test_tags=full
@test "recording: attach: the report equals the live one, the last of three" {
	spinning
	start "$HEAPTAP" attach -q --max-pause 60s -w r.heaptap -i 300ms --scan -o live%n.json "$TARGET"
	wait_for test -s live2.json
	kill -INT "$PID"
	ended "$PID" 0
	"$HEAPTAP" report -q -o replayed.json r.heaptap
	last=$(find . -name 'live*.json' | sort -V | tail -1)
	same_report "$last" replayed.json
}

@test "recording: another format, and the exit status of a trusted one" {
	recorded -- "$T/leak"
	"$HEAPTAP" report -q r.heaptap >text
	grep -q '^leak (pid' text
	"$HEAPTAP" report -q - <r.heaptap >text2
	cmp text text2
}

is_larger() { [ -e "$1" ] && [ "$(stat -c %s "$1")" -gt "$2" ]; }

# bats test_tags=full
@test "recording: heaptap is killed: what is older than a second is there (F7)" {
	spinning
	start "$HEAPTAP" attach -q -w r.heaptap "$TARGET"
	# The recording is written once a second.
	wait_for is_larger r.heaptap 10000
	kill -KILL "$PID"
	wait_for gone "$PID"
	status=0
	"$HEAPTAP" report -o r.json r.heaptap 2>err || status=$?
	[ "$status" -eq 5 ]
	grep -q 'r.heaptap: chunk [0-9]*, at byte [0-9]*: it breaks off .*: the report covers only the events before it$' err
	jq -e '.broken_off and (.processes[0].ended | not)' r.json
	"$HEAPTAP" report r.heaptap >text 2>err || [ "$?" -eq 5 ]
	grep -q '^  traced .* what came later is not known$' text
	jq -e '.processes[0].totals.allocs > 100' r.json
}

# bats test_tags=core
@test "recording: cut off anywhere: a report on what is there, status 5, one message (F4)" {
	recorded -- "$T/threads" 8 20000
	size=$(stat -c %s r.heaptap)
	[ "$size" -gt 200000 ]
	for len in 0 1 7 8 15 16 20 36 40 100 $((size / 2)) $((size - 1)); do
		head -c "$len" r.heaptap >cut.heaptap
		status=0
		"$HEAPTAP" report cut.heaptap >out 2>err || status=$?
		[ "$status" -eq 5 ] || [ "$status" -eq 4 ] || { echo "status $status at $len"; return 1; }
		[ "$(wc -l <err)" -eq 1 ] || { cat err; return 1; }
	done
	[ "$status" -eq 5 ]
}

@test "recording: what is none is refused in one line (F4)" {
	: >empty.heaptap
	head -c 100 /dev/zero >zero.heaptap
	truncate -s 1T sparse.heaptap
	mkdir dir.heaptap
	echo '{ "schema": "heaptap-report/2" }' >json.heaptap
	for f in empty zero sparse dir missing json; do
		status=0
		timeout 60 "$HEAPTAP" report "$f.heaptap" >out 2>err || status=$?
		[ "$status" -eq 4 ] || { echo "status $status for $f"; return 1; }
		[ "$(wc -l <err)" -eq 1 ] || { cat err; return 1; }
		[ ! -s out ]
	done
	grep -q 'json.heaptap: is no report of heaptap$' err
	recorded -- "$T/leak"
	printf '\x63' | dd of=r.heaptap bs=1 seek=8 conv=notrunc status=none
	"$HEAPTAP" report r.heaptap 2>err || status=$?
	[ "$status" -eq 4 ]
	grep -q 'r.heaptap: its first 16 bytes are damaged' err
}

# waits_for_pipe PID: it has read what is in the pipe, and waits for more
waits_for_pipe() { grep -q pipe_read "/proc/$1/wchan"; }

# bats test_tags=full
@test "recording: from a pipe that is slow (F4)" {
	recorded -- "$T/leak"
	mkfifo fifo
	start "$HEAPTAP" report -q -o piped.json fifo
	exec 7>fifo
	head -c 100 r.heaptap >&7
	wait_for waits_for_pipe "$PID"
	tail -c +101 r.heaptap >&7
	exec 7>&-
	ended "$PID" 0
	same_report replayed.json piped.json
}

# bats test_tags=full
@test "recording: a full disk ends it, not the trace (F3)" {
	mkdir small
	mount -t tmpfs -o size=64k none small || skip "tmpfs cannot be mounted"
	status=0
	"$HEAPTAP" run -o live.json -w small/r.heaptap -- "$T/threads" 4 20000 >out 2>err || status=$?
	cp small/r.heaptap . || true
	umount small
	[ "$status" -eq 0 ] || { cat err; return 1; }
	grep -q '^heaptap: record: small/r.heaptap: No space left on device: the recording ends here' err
	! grep -q 'events were lost' err || jq -e '[.processes[0].lost[]] | add > 0' live.json
	jq -e '.processes[0].totals.allocs > 10000' live.json
	"$HEAPTAP" report -q -o part.json r.heaptap 2>err || status=$?
	[ "$status" -eq 5 ]
	[ "$(wc -l <err)" -eq 1 ] || { cat err; return 1; }
	jq -e '.processes[0].totals.allocs > 100' part.json
}

# bats test_tags=full
@test "recording: a file size limit ends it, not the trace (F3)" {
	status=0
	(
		ulimit -f 40
		exec "$HEAPTAP" run -w r.heaptap -- "$T/threads" 4 20000 >out 2>err
	) || status=$?
	[ "$status" -eq 0 ] || { cat err; return 1; }
	grep -q '^heaptap: record: r.heaptap: File too large: the recording ends here' err
	"$HEAPTAP" report -q -o part.json r.heaptap 2>err || status=$?
	[ "$status" -eq 5 ]
	[ "$(wc -l <err)" -eq 1 ] || { cat err; return 1; }
}

# bats test_tags=full
@test "recording: a pipe whose reader goes away, and /dev/full, end it, not the trace (F3)" {
	mkfifo fifo.heaptap
	(exec head -c 10 <fifo.heaptap >/dev/null) &
	"$HEAPTAP" run -o live.json -w fifo.heaptap -- "$T/threads" 4 20000 >out 2>err
	grep -q 'Broken pipe: the recording ends here' err
	jq -e '.processes[0].totals.allocs > 10000' live.json
	spinning
	attached -w /dev/full "$TARGET"
	# The recording is written once a second.
	wait_for grep -q '/dev/full: No space left on device' "$err"
	kill -INT "$TAP"
	ended "$TAP" 5
}

@test "recording: another user's pipe is not written to without --force" {
	mkdir -m 1777 shared
	mkfifo -m 666 shared/r.heaptap
	chown nobody shared/r.heaptap
	(exec timeout 60 cat <shared/r.heaptap >caught) &
	status=0
	"$HEAPTAP" run -w shared/r.heaptap -- true >out 2>err || status=$?
	[ "$status" -eq 2 ] || { echo "status $status"; cat err; return 1; }
	grep -q "another user's pipe is not written to without --force" err
	[ ! -s caught ]
	"$HEAPTAP" run -q --force -w shared/r.heaptap -- true 2>err || { cat err; return 1; }
	wait_for test -s caught
}

# bats test_tags=full
@test "recording: - and /dev/stdout are standard output, /dev/fd/N is a descriptor" {
	local name
	cd "$BATS_TEST_TMPDIR"
	for name in - /dev/stdout; do
		"$HEAPTAP" attach -t 100ms -w "$name" $$ 2>err | "$HEAPTAP" report -o report.json --force - || { cat err; return 1; }
		[ "$(jq '.processes[0].pid' report.json)" = $$ ]
		[ ! -e ./- ]
		run "$HEAPTAP" run -w "$name" -- true
		[ "$status" -eq 2 ]
		[[ $output == *"standard output belongs to the program"* ]]
	done
	"$HEAPTAP" run -q -w /dev/fd/7 -- "$T/leak" --expect 7>out.heaptap >told 2>err
	"$HEAPTAP" report -o report.json --force out.heaptap
	report=report.json out=told as_told live
	run "$HEAPTAP" run -w /dev/fd/99 -- true
	[ "$status" -eq 2 ]
	run "$HEAPTAP" attach -t 100ms -w - -o - $$
	[ "$status" -eq 2 ]
}

@test "recording: existing files, links and folders are not written to" {
	echo precious >r.heaptap
	ln -s r.heaptap link.heaptap
	for f in r.heaptap link.heaptap . missing/x.heaptap %q.heaptap; do
		status=0
		"$HEAPTAP" run -w "$f" -- true >out 2>err || status=$?
		[ "$status" -eq 2 ] || { echo "status $status for $f"; cat err; return 1; }
		[ "$(wc -l <err)" -eq 1 ] || { cat err; return 1; }
	done
	[ "$(cat r.heaptap)" = precious ]
	"$HEAPTAP" run -q --force -w r.heaptap -- true 2>err
	[ "$(stat -c %a r.heaptap)" = 600 ]
	SUDO_UID=12345 SUDO_GID=54321 "$HEAPTAP" run -q -w 'p%p-%n.heaptap' -- true 2>err
	[ "$(stat -c %u:%g p*-1.heaptap)" = 12345:54321 ]
}

# bats test_tags=full
@test "recording: files that are not the recorded ones give no names (D2)" {
	cp "$T/leak" leak
	recorded -- ./leak
	jq -e '[.processes[0].stacks[].frames[].function] | index("main")' replayed.json
	cp "$T/threads" leak
	"$HEAPTAP" report -q -o other.json r.heaptap
	jq -e '[.processes[0].stacks[].frames[] | select(.module | endswith("/leak")) | .function] | all(. == null)' other.json
	jq -e '.stale_modules == 1' other.json
	mkdir -p root/somewhere
	cp "$T/leak" root/somewhere/leak
	cp "$T/leak" root/leak
	"$HEAPTAP" report -q --sysroot root -o names.json r.heaptap
	jq -e '[.processes[0].stacks[].frames[].function] | index("main")' names.json
}

@test "recording: in parts, each readable alone: the last one holds what is live" {
	"$HEAPTAP" run -q --no-scan -w 'r%n.heaptap' --record-size 64K -o live.json -- "$T/threads" 4 40000 >out 2>err
	last=$(find . -name 'r*.heaptap' | sort -V | tail -1)
	[ "$last" != ./r1.heaptap ]
	for f in r*.heaptap; do
		"$HEAPTAP" report -q -o "$f.json" "$f"
		jq -e '.processes[0].totals.unknown_frees == 0 and .processes[0].lost.other == 0' "$f.json"
	done
	callers='[.processes[0].stacks[] | select(.live_blocks > 0) | {function, live_blocks, live_bytes, frames}] | sort_by(.frames | tostring)'
	diff <(jq -S "$callers" live.json) <(jq -S "$callers" "$last.json")
	status=0
	"$HEAPTAP" run -w one.heaptap --record-size 64K -- true 2>err || status=$?
	[ "$status" -eq 2 ]
	grep -q 'needs %n or %t' err
}

# bats test_tags=full
@test "recording: --keep: the last parts stay; without parts it is an error" {
	"$HEAPTAP" run -q --no-scan -w 'r%n.heaptap' --record-size 64K --keep 2 -- "$T/threads" 4 40000 >out 2>err
	find . -name 'r*.heaptap' | sort -V >files
	cat files
	[ "$(wc -l <files)" -eq 2 ]
	fails grep -qx ./r1.heaptap files
	"$HEAPTAP" report -q -o last.json "$(tail -1 files)"
	jq -e '.processes[0].totals.unknown_frees == 0' last.json
	run -2 "$HEAPTAP" run --keep 2 -w one.heaptap -o one.json -- true
	[ "$output" = "heaptap: --keep: needs --output with %n or %t in its name, or --record-size or --record-time" ]
	# A config file is for all commands.
	echo 'keep 2' >conf
	"$HEAPTAP" run -q --config conf -o one.json -- true
}

# bats test_tags=core
@test "diff: what a second run holds more, less, by caller; of recordings and of reports" {
	"$HEAPTAP" run -q -w a.heaptap -o a.json -- "$T/leak" >/dev/null
	"$HEAPTAP" run -q -w b.heaptap -o b.json -- "$T/leak_kinds" >/dev/null
	"$HEAPTAP" diff --json a.heaptap b.heaptap >recordings.json
	"$HEAPTAP" diff --json a.json b.json >reports.json
	"$HEAPTAP" diff --json b.json a.heaptap >back.json
	same='del(.["a", "b"]["file", "duration_ns"])'
	diff <(jq "$same" recordings.json) <(jq "$same" reports.json)
	live() { jq '[.processes[].totals.live_bytes] | add' "$1"; }
	[ "$(jq '[.callers[].live_bytes] | add' reports.json)" -eq $(($(live b.json) - $(live a.json))) ]
	[ "$(jq '[.callers[].live_bytes] | add' back.json)" -eq $(($(live a.json) - $(live b.json))) ]
	[ "$(jq '.b.totals.live_bytes' reports.json)" -eq "$(live b.json)" ]
	leaked() { jq '[.processes[].scan | .definite.bytes + .indirect.bytes] | add' "$1"; }
	[ "$(jq '.b.totals.leaked_bytes' reports.json)" -eq "$(leaked b.json)" ]
	"$HEAPTAP" diff -n 0 a.json b.json >text
	[ "$(grep -c '^#' text)" -eq "$(jq '.callers | map(select(.live_bytes != 0)) | length' reports.json)" ]
	"$HEAPTAP" diff a.json a.heaptap | grep -qx 'No caller changed.'
}

@test "diff: what is no report is refused in one line (F5)" {
	"$HEAPTAP" run -q -w a.heaptap -o a.json -- "$T/leak" >/dev/null
	echo '{"schema": "other/1", "processes": []}' >other.json
	head -c 3000 a.json >cut.json
	echo '{}' >nothing.json
	printf '{"a":%s' "$(printf '[%.0s' $(seq 1000))" >deep.json
	printf '\x89HTAP' >short.heaptap
	for f in other.json cut.json nothing.json deep.json short.heaptap missing.json .; do
		status=0
		"$HEAPTAP" diff a.json "$f" >out 2>err || status=$?
		[ "$status" -eq 4 ] || { echo "status $status for $f"; return 1; }
		[ "$(wc -l <err)" -eq 1 ] || { cat err; return 1; }
		[ ! -s out ]
	done
}

@test "recording: of a program that cannot be started: it says that heaptap gave up" {
	status=0
	"$HEAPTAP" run -q -w r.heaptap -- ./nothing 2>err || status=$?
	[ "$status" -eq 127 ]
	status=0
	"$HEAPTAP" report r.heaptap >out 2>err || status=$?
	[ "$status" -eq 4 ]
	[ "$(cat err)" = "heaptap: report: r.heaptap: its recording was broken off: heaptap gave up" ]
}
