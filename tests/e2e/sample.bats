#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# --sample: estimates by sampled blocks.

load ../lib/common
load ../lib/console
load ../lib/remote
load ../lib/screen

setup_file() {
	[ "$(uname -m)" = x86_64 ] || skip "the inline source knows x86_64 only"
}

setup() {
	STARTED=()
	cd "$BATS_TEST_TMPDIR" || return
}

teardown() {
	end_screen
	end_started
}

# near NAME SEEN TRUE NUMBER: within six standard deviations of what NUMBER samples tell
near() {
	awk -v name="$1" -v seen="$2" -v is="$3" -v n="$4" 'BEGIN {
		most = 6 / sqrt(n) * is
		if (seen < is - most || seen > is + most) { print name ": " seen ", not " is; exit 1 } }'
}

# estimates SOURCE ROUNDS: of the program with known numbers, by this source
estimates() {
	local rounds=$2
	"$HEAPTAP" run --force --backend "$1" --sample 16K -o r.json -o r.txt -- "$T/sampled" "$rounds" >out 2>err
	report=r.json
	[ "$(jq -r .backend r.json)" = "$1" ]
	[ "$(field .lost.allocs)" -eq 0 ]
	[ "$(field .estimated)" = true ]
	[ "$(jq .sample_bytes r.json)" -eq 16384 ]
	# Each function has bytes for so many samples.
	near malloc "$(field .functions.malloc)" $((rounds * 105 / 100)) $((rounds * 1000 / 16384))
	near calloc "$(field .functions.calloc)" $rounds $((rounds * 800 / 16384))
	near realloc "$(field .functions.realloc)" $((rounds * 3)) $((rounds * 1200 / 16384))
	near posix_memalign "$(field .functions.posix_memalign)" $rounds $((rounds * 1000 / 16384))
	near bytes "$(field .totals.alloc_bytes)" $((rounds * 4100)) $((rounds * 4000 / 16384))
	near leaked "$(field .scan.definite.bytes)" $((rounds / 20 * 2000)) $((rounds * 100 / 16384))
	tr '\n' ' ' <r.txt | tr -s ' ' | grep -qE "^leaks .* in .* blocks by the allocator's books; ~100 % of it from remember"
	grep -q '^  sampled  *about one block in 16,384 B\|^  sampled  *about one block in 16.0 KiB' r.txt
}

@test "sample: calls, bytes and a leak are estimated without a bias, and marked as estimates" {
	estimates inline 100000
}

@test "sample: by BPF and by ptrace estimates have no bias, and a line says that each call is stopped" {
	estimates bpf 50000
	grep -q '^heaptap: run: --sample by BPF: each call is stopped all the same' err
	estimates ptrace 5000
	grep -q '^heaptap: run: --sample by ptrace: each call is stopped all the same' err
}

@test "sample: totals and callers have an interval" {
	"$HEAPTAP" run -q -v --backend inline --sample 16K -o r.json -o r.txt -o r.csv -- "$T/sampled" 50000 >out 2>&1
	for key in alloc_bytes live_bytes peak_bytes; do
		[ "$(jq ".processes[0].totals | .low.$key < .$key and .$key < .high.$key" r.json)" = true ]
	done
	[ "$(jq '.processes[0].stacks[0] | .low.alloc_bytes < .alloc_bytes and .alloc_bytes < .high.alloc_bytes' r.json)" = true ]
	python3 -c 'import csv, sys
rows = [r for r in csv.DictReader(open("r.csv")) if int(r["live_bytes"])]
assert rows and all(int(r["live_low"]) < int(r["live_bytes"]) < int(r["live_high"]) for r in rows)'
	grep -qE '^  allocated  *~[0-9.]+ MiB \([0-9.]+ to [0-9.]+ MiB\) in ~' r.txt
	grep -qE '^#[0-9]+  *~[0-9.]+ [KM]iB \([0-9.]+ ([KM]iB )?to [0-9.]+ [KM]iB\) \(' r.txt
	grep -qE '^#1  *~[0-9.]+ MiB leaked \([0-9.]+ to [0-9.]+ MiB\) in ~' r.txt
}

@test "sample: a distance of 1 byte traces all blocks" {
	report=r.json
	for source in inline bpf ptrace; do
		"$HEAPTAP" run -q --force --backend $source --sample 1 -o r.json -- "$T/sampled" 2000 >out 2>&1
		"$HEAPTAP" run -q --force --backend $source --no-check -o exact.json -- "$T/sampled" 2000 >out 2>&1
		for key in .functions .totals.allocs .totals.alloc_bytes .totals.live_blocks; do
			[ "$(jq ".processes[0]$key" r.json)" = "$(jq ".processes[0]$key" exact.json)" ]
		done
		[ "$(field .estimated)" = null ]
	done
}

# bats test_tags=full
@test "sample: 10,000 threads alive at once lose no call (A18)" {
	for distance in 1 64K; do
		"$HEAPTAP" run --force --backend inline --no-scan --sample $distance -o r.json -- "$T/storm" 0 10000 >out 2>err
		report=r.json
		[ "$(field '.lost | .allocs + .frees + .other')" -eq 0 ]
		[ $distance != 1 ] || [ "$(of_function long_thread allocs)" -ge $((10000 - $(field .lost.stacks))) ]
	done
}

@test "sample: a distance of 64 GiB samples nothing, and says so" {
	report=r.json
	for source in inline bpf ptrace; do
		"$HEAPTAP" run -q --force --backend $source --sample 64G -o r.json -o r.txt -- "$T/sampled" 100 >out 2>&1
		[ "$(field .samples.seen)" -eq 0 ]
		tr '\n' ' ' <r.txt | tr -s ' ' | grep -q "^leaks .* by the allocator's books; none of these blocks was sampled"
	done
}

@test "sample: with auto the distance grows with the calls, and sums stay right" {
	rounds=100000
	"$HEAPTAP" run -q --backend inline --no-scan --sample auto -o r.json -- "$T/sampled" $rounds >out 2>&1
	report=r.json
	[ "$(field .lost.allocs)" -eq 0 ]
	[ "$(field .estimated)" = true ]
	distance=$(jq .sample_bytes r.json)
	[ "$distance" -gt $((512 * 1024)) ]
	[ $((distance & (distance - 1))) -eq 0 ]
	seen=$(field .samples.seen)
	near bytes "$(field .totals.alloc_bytes)" $((rounds * 4100)) "$seen"
	near malloc "$(field .functions.malloc)" $((rounds * 105 / 100)) $((seen / 4))
}

# with_child SOURCE ROUNDS: a child has the samples of its parent, and its own
with_child() {
	local rounds=$2
	report=r.json
	"$HEAPTAP" run -q --force --backend "$1" --sample 16K -o r.json -- "$T/sampled" "$rounds" fork >out 2>&1
	"$HEAPTAP" run -q -f --backend "$1" --sample 16K --force -o r.json -o r.txt -- "$T/sampled" "$rounds" fork >out 2>&1
	[ "$(jq '.processes | length' r.json)" -eq 2 ]
	[ "$(jq '[.processes[].lost.allocs] | add' r.json)" -eq 0 ]
	tr "\n" " " <r.txt | grep -qE "^leaks [0-9].* in 2 of 2 processes; ~"
	# The child has the sums of its parent, and its own.
	near child "$(jq '.processes[1].totals.alloc_bytes' r.json)" $((rounds * 9200)) $((rounds * 9000 / 16384))
	[ "$(jq '.processes[1].totals.alloc_bytes' r.json)" -gt $((rounds * 7000)) ]
	# Two leaks are live in the child, and some blocks that are kept, and none that it had from its parent and released.
	near live "$(jq '.processes[1].totals.live_bytes' r.json)" $((rounds / 10 * 2000 + 64 * 1000)) $((rounds / 10 * 2000 / 16384))
}

@test "sample: a process where no code can be is sampled by BPF" {
	mkfifo line
	exec 7<>line
	start "$T/confined" no-fork <line
	target=$PID
	wait_for says confined ready
	start "$HEAPTAP" attach --max-pause 60s --sample 16K -o r.json -o r.txt "$target"
	tap=$PID
	wait_for grep -q attached heaptap.err
	echo go >&7
	wait_for says confined lost
	kill -INT "$tap"
	ended "$tap" 0
	report=r.json
	[ "$(jq -r .backend r.json)" = bpf ]
	[ "$(field .lost.allocs)" -eq 0 ]
	near bytes "$(field .totals.alloc_bytes)" 40000000 $((40000000 / 16384))
	tr '\n' ' ' <r.txt | tr -s ' ' | grep -qE "^leaks .* by the allocator's books.* from lose \(confined.c:[0-9]+\)"
	untouched "$target"
	exec 7>&-
}

# Each block is elsewhere in the table of sampled blocks, which would have each of its pages in use.
@test "sample: a few live blocks use a few pages, and many are released as they should be" {
	cat >few.py <<'END'
import re
kept = []
for i in range(20000):
    kept = kept[-20:] + [bytearray(60000 + i * 7 % 60000)]
parts = re.findall(r'rw-p .*heaptap-inline.*\nSize:.*\n(?:.*\n)*?Rss: +(\d+)', open('/proc/self/smaps').read())
print(parts[-1])
kept = [bytearray(100000) for i in range(3000)]
kept = []
END
	env -u PYTHONMALLOC "$HEAPTAP" run -q --backend inline --no-scan --sample 64K -o r.json -- /usr/bin/python3 few.py >out
	[ "$(cat out)" -le 64 ]
	[ "$(jq '.processes[0] | .lost.allocs == 0 and .totals.allocs > 20000 and .totals.live_blocks < 300' r.json)" = true ]
}

@test "sample: a forked child lives; with --follow it has its own samples" {
	with_child inline 20000
}

@test "sample: a forked child by BPF and by ptrace" {
	with_child bpf 20000
	with_child ptrace 4000
}

# realloc of this allocator jumps to another function that heaptap watches.
@test "sample: mimalloc's functions that call each other count once" {
	library=$(echo /usr/lib/*/libmimalloc.so.2*)
	library=${library%% *}
	[ -f "$library" ] || skip "no mimalloc here"
	rounds=50000
	report=r.json
	"$HEAPTAP" run -q --backend inline --sample 16K -o r.json -- env LD_PRELOAD="$library" "$T/sampled" $rounds >out 2>&1
	near malloc "$(jq '.processes[-1].functions.malloc' r.json)" $((rounds * 105 / 100)) $((rounds * 1000 / 16384))
	near realloc "$(jq '.processes[-1].functions.realloc' r.json)" $((rounds * 3)) $((rounds * 1200 / 16384))
}

resident() { awk '{ print $2 * 4096 }' "/proc/$1/statm"; }

# holds PID BYTES: so much of the process is resident
holds() { [ "$(resident "$1")" -ge "$2" ]; }

@test "sample: system samples all chosen processes at once, also later ones" {
	export HEAPTAP_RUN_DIR=$BATS_TEST_TMPDIR/run
	swell=swell-$$
	cp "$T/swell" "$swell"
	for ((i = 0; i < 2; i++)); do
		start "./$swell" 65536 20
		pids[i]=$PID
		wait_for says "$swell" ready
	done
	start "$HEAPTAP" system --json -n 0 --backend inline --sample 4K --comm "$swell" --spare none -o '%p-%n.json'
	tap=$PID
	wait_for grep -q '^heaptap: system: 2 processes are traced' heaptap.err
	start "./$swell" 65536 20
	pids[2]=$PID
	wait_for grep -q '^heaptap: system: 3 processes are traced' heaptap.err
	for pid in "${pids[@]}"; do
		wait_for holds "$pid" $(($(resident "$pid") + 1500000))
	done
	kill -INT "$tap"
	ended "$tap" 0
	for pid in "${pids[@]}"; do
		untouched "$pid"
		report=$(ls -1 "$pid"-*.json | tail -n 1)
		[ "$(jq .sample_bytes "$report")" -eq 4096 ]
		[ "$(field .estimated)" = true ]
		[ "$(field .lost.allocs)" -eq 0 ]
		# Blocks that are so much larger than the distance are all there.
		[ "$(field .scan.definite.bytes)" -ge 1000000 ]
		[ $(($(field .totals.alloc_bytes) % 65536)) -eq 0 ]
	done
}

@test "sample: many processes are left at once, each as it was" {
	export HEAPTAP_RUN_DIR=$BATS_TEST_TMPDIR/run
	swell=swell-$$
	pids=()
	cp "$T/swell" "$swell"
	for ((i = 0; i < 9; i++)); do
		start "./$swell" 65536 20
		pids+=("$PID")
	done
	start "$HEAPTAP" system -v --json -n 0 --no-scan --backend inline --sample 4K --comm "$swell" --spare none
	tap=$PID
	wait_for grep -q '^heaptap: system: 9 processes are traced' heaptap.err
	kill -INT "$tap"
	ended "$tap" 0
	grep 'the code is out of [1-9] of 9 processes at once' heaptap.err
	for pid in "${pids[@]}"; do
		untouched "$pid"
		fails grep heaptap-code "/proc/$pid/maps"
	done
}

# few PID KIND: a process and its helpers have at most 20 such descriptors open
few() {
	local dirs=("/proc/$1/fd") child
	for child in $(pgrep -P "$1"); do dirs+=("/proc/$child/fd"); done
	[ "$(find "${dirs[@]}" -lname "$2" | wc -l)" -le 20 ]
}

@test "sample: processes that have ended leave no descriptors and no probes with heaptap" {
	export HEAPTAP_RUN_DIR=$BATS_TEST_TMPDIR/run
	swell=swell-$$
	cp "$T/swell" "$swell"
	start "$HEAPTAP" system --json -n 0 --no-scan --backend inline --sample 4K --comm "$swell" --spare none
	tap=$PID
	for ((round = 1; round <= 6; round++)); do
		pids=()
		for ((i = 0; i < 8; i++)); do
			start "./$swell" 65536 20
			pids+=("$PID")
		done
		for pid in "${pids[@]}"; do
			wait_for grep -q heaptap-code "/proc/$pid/maps"
		done
		kill "${pids[@]}"
	done
	wait_for few "$tap" 'anon_inode:*pidfd*'
	wait_for few "$tap" 'anon_inode:bpf_link'
	kill -INT "$tap"
	ended "$tap" 0
}

# by_itself PROGRAM SOURCE OPTION...: a program that samples its blocks itself is seen by its notes alone, without a bias
by_itself() {
	local rounds=100000 program=$T/$1 source=$2 bytes lost
	shift 2
	"$HEAPTAP" run --force "$@" --sample 64K -o r.json -- "$program" $rounds >out 2>err
	grep -q 'samples its blocks itself and tells of them (otel_memory): nothing else is placed in it' err
	read -r bytes lost < <(tail -n 1 out)
	report=r.json
	[ "$(jq -r .backend r.json)" = "$source" ]
	[ "$(field .estimated)" = true ]
	[ "$(jq .sample_bytes r.json)" -eq 16384 ]
	[ "$(jq -c '.processes[0].functions | keys' r.json)" = '["otel_memory:alloc","otel_memory:free"]' ]
	near bytes "$(field .totals.alloc_bytes)" "$bytes" $((bytes / 16384))
	near leaked "$(field .scan.definite.bytes)" "$lost" $((lost / 16384))
	lost_by_books r.json "$lost"
}

@test "sample: a program that samples its blocks itself gets no other probes, and no code" {
	by_itself own_sampler bpf
	by_itself own_sampler-guarded bpf
	by_itself own_sampler ptrace --backend ptrace
}

@test "sample: attach to a program that samples while it is listened to; it stops when nobody does" {
	export HEAPTAP_RUN_DIR=$BATS_TEST_TMPDIR/run
	mkfifo line
	exec 7<>line
	start "$T/own_sampler-guarded" 100000 wait end <line
	target=$PID
	wait_for says own_sampler-guarded ready
	start "$HEAPTAP" attach --max-pause 60s --sample auto -o r.json -o r.txt "$target"
	tap=$PID
	wait_for grep -q attached heaptap.err
	echo go >&7
	wait_for grep -q '^[0-9]' own_sampler-guarded.out
	kill -INT "$tap"
	ended "$tap" 0
	read -r bytes lost < <(tail -n 1 own_sampler-guarded.out)
	report=r.json
	near leaked "$(field .scan.definite.bytes)" "$lost" $((lost / 16384))
	# All of it is in blocks, of which a few were seen.
	tr '\n' ' ' <r.txt | tr -s ' ' | grep -qE 'more than at the attach: ~[0-9.]+ MiB in blocks'
	untouched "$target"
	echo end >&7
	ended "$target" 0
	exec 7>&-
}

# The kernel makes no second link at a guarded note without the place of its semaphore.
@test "sample: a child of a program that is listened to loses the breakpoints at guarded notes (A16)" {
	mkfifo line
	exec 7<>line
	start "$T/own_sampler-guarded" 1000 wait fork <line
	target=$PID
	wait_for says own_sampler-guarded ready
	start "$HEAPTAP" attach --sample auto -o r.json "$target"
	tap=$PID
	wait_for grep -q attached heaptap.err
	echo go >&7
	wait_for grep -q '^[0-9]' own_sampler-guarded.out
	child=$(tr -d " " <"/proc/$target/task/$target/children")
	wait_for has_own_code "$child" || { echo "code of the child differs: $(text_differs "$child")"; return 1; }
	has_probes "$target"
	kill -INT "$tap"
	ended "$tap" 0
	untouched "$target"
	echo end >&7
	ended "$target" 0
	exec 7>&-
}

# of_the_report REPORT: without what may differ later
of_the_report() { jq -S "del(.backend, $OF_THE_RUN) | .processes[] |= del(.totals.peak_time_ns, .timeline, .resident)" "$1"; }

@test "sample: a recording says what the live report says, also through a list of events" {
	"$HEAPTAP" run -q --backend inline --sample 16K -w r.heaptap -o live.json -- "$T/sampled" 20000 >out 2>&1
	"$HEAPTAP" report -q -o later.json -o later.txt r.heaptap
	of_the_report live.json >live
	of_the_report later.json >later
	diff live later
	[ "$(jq .sample_bytes later.json)" -eq 16384 ]
	[ "$(jq -r '.processes[0].scan.books.allocator' later.json)" = glibc ]
	grep -qE '^  allocated  *~[0-9.]+ MiB \([0-9.]+ to [0-9.]+ MiB\) in ~' later.txt
	"$HEAPTAP" report --events r.heaptap >events
	"$HEAPTAP" report -q -o listed.json events
	for key in .functions .totals.alloc_bytes .totals.live_blocks .estimated; do
		[ "$(jq ".processes[0]$key" listed.json)" = "$(jq ".processes[0]$key" live.json)" ]
	done
	# Another one in parts that can be read alone: what is live has the weight that it had.
	"$HEAPTAP" run -q --no-scan --backend inline --sample 4K -w 'p%n.heaptap' --record-size 64K -o live.json --force -- \
		"$T/sampled" 20000 >out 2>&1
	last=$(printf '%s\n' p*.heaptap | sort -V | tail -n 1)
	[ "$last" != p1.heaptap ]
	"$HEAPTAP" report -q -o later.json --force "$last"
	for key in live_blocks live_bytes; do
		[ "$(jq ".processes[0].totals.$key" later.json)" = "$(jq ".processes[0].totals.$key" live.json)" ]
	done
}

@test "sample: what needs all blocks cannot be had of a recording" {
	"$HEAPTAP" run -q --no-scan --backend inline --sample 16K -w r.heaptap -- "$T/sampled" 100 >out 2>&1
	run "$HEAPTAP" report --check r.heaptap
	[ "$status" -eq 2 ]
	[[ $output = *"r.heaptap: blocks are sampled: releases are checked only where all blocks are traced"* ]]
	run "$HEAPTAP" report -o r.heaptrack r.heaptap
	[ "$status" -eq 2 ]
	[[ $output = *"r.heaptap: blocks are sampled: the format heaptrack lists all events"* ]]
	run "$HEAPTAP" console --sample 64K r.heaptap
	[ "$status" -eq 2 ]
	[[ $output = *"console: --sample: r.heaptap: a recording has what was recorded"* ]]
}

@test "sample: the console shows estimates, records them, and refuses what needs each call" {
	start "$T/swell" 65536 5
	target=$PID
	wait_for says swell ready
	asking -q --backend inline --sample 4K "$target"
	ask "record r.heaptap"
	ask "wait blocks>=30"
	ask "top 1"
	grep -qE ' ~[0-9.]+ [KM]iB +~[0-9]+ ' <<<"$output"
	ask "monitor 100ms 1"
	grep -qE 'live ~[0-9.]+ [KM]iB in ~[0-9]+ blocks' <<<"$output"
	ask "log malloc"
	has "log: most calls are not seen where blocks are sampled"
	ask "break malloc"
	has "break: most calls are not seen where blocks are sampled"
	ask record
	leave 2
	untouched "$target"
	"$HEAPTAP" report -q -o r.json r.heaptap
	[ "$(jq .sample_bytes r.json)" -eq 4096 ]
	[ "$(jq '.processes[0].totals.live_bytes >= 30 * 65536' r.json)" = true ]
}

# bats test_tags=full
@test "sample: top marks its numbers as estimates" {
	with_tmux
	start "$T/swell" 65536 20
	target=$PID
	on_screen 120x30 "$HEAPTAP" top --backend inline --sample 4K "$target"
	shows '^ live  *~[0-9.]* [KM]iB in ~[0-9,]* blocks  *~+[0-9]'
	shows '^ *~[0-9.]* [KM]iB .*swell_forgets'
	keys q
	left 0
	untouched "$target"
}

@test "sample: serve samples, connect shows estimates, and refuses what needs all blocks" {
	serving --backend inline --sample 16K --wait -- "$T/sampled" 20000
	"$HEAPTAP" connect -q -o r.json -w r.heaptap "unix:$SOCKET" >out 2>err
	ended "$SERVE" 0
	report=r.json
	[ "$(jq .sample_bytes r.json)" -eq 16384 ]
	[ "$(field .estimated)" = true ]
	[ "$(field .lost.allocs)" -eq 0 ]
	near bytes "$(field .totals.alloc_bytes)" $((20000 * 4100)) $((20000 * 4000 / 16384))
	near malloc "$(field .functions.malloc)" 21000 $((20000 * 1000 / 16384))
	"$HEAPTAP" report -q -o later.json r.heaptap
	[ "$(jq .processes[0].totals.alloc_bytes later.json)" = "$(field .totals.alloc_bytes)" ]
	run "$HEAPTAP" connect --sample 16K "unix:$SOCKET"
	[ "$status" -eq 2 ]
	# The books are on the other side.
	serving --backend inline --sample 16K --wait -- "$T/planted" 20000
	"$HEAPTAP" connect -q -o r.json --force "unix:$SOCKET" >out 2>err
	ended "$SERVE" 0
	read -r _ bytes <"$BATS_TEST_TMPDIR/serve.out"
	lost_by_books r.json "$bytes"
	near lost "$(jq '.processes[-1].scan.definite.bytes' r.json)" "$bytes" $((bytes / 16384))
	[ "$(jq '.processes[-1].scan.books.allocator' r.json)" = '"glibc"' ]
	serving --backend inline --sample 16K --wait -- "$T/sampled" 2000
	run "$HEAPTAP" connect --check "unix:$SOCKET"
	[ "$status" -ne 0 ]
	[[ $output = *"the other side samples blocks: releases are checked only where all blocks are traced"* ]]
}

@test "sample: serve and recordings by BPF and ptrace" {
	local source rounds
	for source in bpf ptrace; do
		rounds=$([ $source = bpf ] && echo 20000 || echo 2000)
		serving --backend $source --sample 16K --wait -- "$T/sampled" "$rounds"
		"$HEAPTAP" connect -q --force -o r.json -w r.heaptap "unix:$SOCKET" >out 2>err
		ended "$SERVE" 0
		report=r.json
		[ "$(field .estimated)" = true ]
		[ "$(field .lost.allocs)" -eq 0 ]
		near bytes "$(field .totals.alloc_bytes)" $((rounds * 4100)) $((rounds * 4000 / 16384))
		"$HEAPTAP" report -q --force -o later.json r.heaptap
		[ "$(jq .processes[0].totals.alloc_bytes later.json)" = "$(field .totals.alloc_bytes)" ]
	done
}

@test "sample: where it cannot be, one line says so" {
	run "$HEAPTAP" run --sample 64K --mmap -- true
	[ "$status" -eq 2 ]
	[[ $output = *"--sample: mappings are not sampled: leave out --mmap"* ]]
}

# lost_by_books REPORT TRUE: the books have so many bytes of lost blocks, nearly, and the samples tell the same
lost_by_books() {
	jq -e '.processes[-1].scan.books' "$1" >/dev/null || { jq '.processes[-1] | .scan, .notes' "$1"; return 1; }
	awk -v seen="$(jq '.processes[-1].scan.books | .definite.bytes + .indirect.bytes' "$1")" -v is="$2" 'BEGIN {
		# A block has up to a tenth more bytes than were asked for; old pointers hold some of them.
		if (seen < is * 0.9 || seen > is * 1.12) { print "books: " seen ", not " is; exit 1 } }'
}

@test "sample: blocks that only lost blocks lead to are lost, by the books of glibc and jemalloc" {
	jemalloc=$(echo /usr/lib/*/libjemalloc.so.2)
	[ -f "$jemalloc" ] || skip "no jemalloc here"
	for preload in "" "$jemalloc"; do
		"$HEAPTAP" run -q --force --backend inline --sample 16K -o r.json -o r.txt -- env LD_PRELOAD="$preload" \
			"$T/planted" 20000 >out 2>&1
		read -r _ bytes <out
		lost_by_books r.json "$bytes"
		near lost "$(jq '.processes[-1].scan.definite.bytes' r.json)" "$bytes" $((bytes / 16384))
		[ "$(jq '.processes[-1].scan.books.allocator' r.json)" = "$([ "$preload" ] && echo '"jemalloc"' || echo '"glibc"')" ]
		tr '\n' ' ' <r.txt | tr -s ' ' | grep -qE "^leaks [0-9.]+ MiB in [0-9,]+ blocks by the allocator's books; ~9[0-9] % of it from remember \(planted.c:[0-9]+\)"
	done
}

@test "sample: an attach says how much of the leak is younger" {
	mkfifo orders
	"$T/planted" 40000 wait <orders >out &
	PID=$!
	exec 8>orders
	wait_for grep -q half out
	"$HEAPTAP" attach --max-pause 60s --backend inline --sample 16K -o r.json -o r.txt "$PID" >log 2>&1 &
	tracer=$!
	wait_for grep -q attached log
	echo go >&8
	wait_for grep -qE '^[0-9]+ [0-9]+$' out
	kill -INT "$tracer"
	wait "$tracer"
	echo go >&8
	wait "$PID"
	exec 8>&-
	read -r _ bytes <<<"$(tail -1 out)"
	lost_by_books r.json "$bytes"
	near lost "$(jq '.processes[0].scan.definite.bytes' r.json)" $((bytes / 2)) $((bytes / 32768))
	tr '\n' ' ' <r.txt | tr -s ' ' | grep -qE "^leaks .* by the allocator's books, ~[3-6][0-9] % of it since the attach; ~[3-6][0-9] % of it from remember"
}

@test "sample: without books of the allocator the report says so" {
	"$HEAPTAP" run -q --backend inline --sample 64 -o r.json -o r.txt -- "$T/custom" >out 2>&1
	[ "$(jq '.processes[0].scan | has("books") and .books == null' r.json)" = true ]
	grep -q '^  judged  *by sampled blocks alone' r.txt
}

@test "sample: diff takes growth within the noise of samples for none" {
	"$HEAPTAP" run -q --backend inline --sample 16K -o old.json -- "$T/sampled" 20000 >out 2>&1
	command jq '.processes[0].stacks |= map(if .live_bytes then .live_bytes = (.live_bytes * 1.05 | floor) else . end)' \
		old.json >new.json
	command jq '.processes[0].stacks |= map(del(.low, .high))' new.json >exact.json
	run "$HEAPTAP" diff --fail-on growth:1% old.json new.json
	[ "$status" -eq 0 ]
	[[ $output = *"holds ~"*" more (within the noise of samples)"* ]]
	command jq '.processes[0].stacks |= map(del(.low, .high))' old.json >exact_old.json
	run "$HEAPTAP" diff --fail-on growth:1% exact_old.json exact.json
	[ "$status" -ne 0 ]
	command jq ".processes[0].stacks |= map(if .live_bytes then .live_bytes *= 3 else . end)" old.json >most.json
	run "$HEAPTAP" diff --fail-on growth:1% old.json most.json
	[ "$status" -ne 0 ]
}
