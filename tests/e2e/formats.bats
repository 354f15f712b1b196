#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# Formats of reports: which one is written, and that all of them show the numbers of JSON.

load ../lib/common

setup() { cd "$BATS_TEST_TMPDIR" || return 1; }

# One process with two callers; 1,000 blocks of the first one are freed again. Needs no root.
list_events() {
	awk 'BEGIN {
		print "process 77 prog /nowhere/prog"
		print "map 77 0x400000 0x500000 0x400000 /nowhere/prog"
		print "stack 2 77 complete 0x400100 0x400200 0x400300"
		print "stack 3 77 complete 0x400110 0x400200 0x400300"
		print "alloc 77 1 malloc 0x1000 100 2 1000000000"
		for (i = 1; i <= 1000; i++)
			printf "alloc 77 1 malloc %d %d 2 %d000000\n", 65536 + i * 16, i, 1000 + i
		for (i = 1; i <= 1000; i++)
			printf "free 77 1 free %d 0 %d000000\n", 65536 + i * 16, 2000 + i
		print "alloc 77 1 calloc 0x2000 5000 3 3500000000"
		print "exit 77 0"
	}'
}

# bats test_tags=full
@test "formats: attach to a program that spends its time in probes is told what --backend inline costs" {
	not_by_inline "the report compares BPF with it"
	[ "$(uname -m)" = x86_64 ] || skip "the inline source knows x86_64 only"
	cd "$BATS_TEST_TMPDIR"
	start "$T/turns" 1000000000
	TARGET=$PID
	enough=(-q --no-scan --stop-after 200000 --backend bpf)
	"$HEAPTAP" attach "${enough[@]}" -o r.json -o r.txt "$TARGET"
	jq -e '.cost | .probes_permille > 200 and .call_ns > .inline_call_ns and .inline_call_ns > 0' r.json
	tr "\n" " " <r.txt | tr -s " " | grep -F " probes " | grep -E "for a call, .* of the program.s CPU time, .* with --backend inline"
	# A program that makes few calls.
	"$HEAPTAP" run -q --backend bpf -o few.json -- "$T/leak"
	jq -e '.cost | .events > 0 and (has("call_ns") | not)' few.json
}

# bats test_tags=core
@test "formats: the cost of heaptap itself, and none of a recording" {
	cd "$BATS_TEST_TMPDIR"
	"$HEAPTAP" run -q -b bpf -w r.heaptap -o r.json -o r.txt -- "$T/leak" >out 2>err
	jq -e '.cost.events > 0 and .cost.cpu_ns > 0' r.json
	grep -qE '^  heaptap +[0-9,]+ events, .* of CPU time, .* for an event' <(tr '\n' ' ' <r.txt | sed 's/  heaptap/\n&/')
	"$HEAPTAP" report -q -o again.json r.heaptap
	jq -e 'has("cost") | not' again.json
}

# bats test_tags=anyone
@test "formats: --format list needs no file" {
	"$HEAPTAP" report --format list >list
	[ "$(head -n 1 list | awk '{ print $1, $2 }')" = "text .txt" ]
	grep -q '^json  *\.json  *for scripts' list
	[ "$(awk '{ print $1 }' list | sort | uniq -d)" = "" ]
	"$HEAPTAP" run --format list | cmp - list
}

# bats test_tags=anyone
@test "formats: .gz behind an ending compresses" {
	list_events >events.txt
	"$HEAPTAP" report -q -o r.json -o r.json.gz -o r.folded.gz events.txt
	# Reports of one command are made at the same moment.
	gzip -dc r.json.gz | cmp - r.json
	[ "$(gzip -dc r.folded.gz | wc -l)" -eq 2 ]
	run "$HEAPTAP" report -o r.gz events.txt
	[ "$status" -eq 2 ]
	[[ $output == *'r.gz: unknown ending'* ]]
	# Only heaptrack reads zstd.
	run "$HEAPTAP" report -o r.json.zst events.txt
	[ "$status" -eq 2 ]
	[[ $output == *'r.json.zst: unknown ending'* ]]
}

# bats test_tags=core,anyone
@test "formats: --format: for what is printed, and for files of other names" {
	list_events >events.txt
	"$HEAPTAP" report --format json events.txt | jq -e '.processes[0].totals.live_bytes == 5100'
	"$HEAPTAP" report --format json -o - events.txt | jq -e .schema
	"$HEAPTAP" report -q --format json -o plain -o r.txt events.txt
	jq -e .schema plain
	grep -q '^prog (pid 77)' r.txt
	run --separate-stderr "$HEAPTAP" report --format docx events.txt
	[ "$status" -eq 2 ]
	[[ $stderr == *"docx: no such format"* ]]
	run --separate-stderr "$HEAPTAP" report -o r.docx events.txt
	[ "$status" -eq 2 ]
	[[ $stderr == *".json"*--format* ]]
	echo 'format json' >config
	HEAPTAP_CONFIG=$PWD/config "$HEAPTAP" report events.txt | jq -e .schema
}

# bats test_tags=anyone
@test "formats: JSON: live bytes over time, with the exact peak, also of a span of time" {
	list_events >events.txt
	"$HEAPTAP" report --format json events.txt >r.json
	jq -e '.processes[0] | .totals as $t | .timeline | length > 100 and length <= 1025
		and (map(.max_bytes) | max) == $t.peak_bytes and last.bytes == $t.live_bytes
		and last.blocks == $t.live_blocks and (map(.time_ns) | . == sort)
		and all(.min_bytes <= .bytes and .bytes <= .max_bytes)' r.json
	"$HEAPTAP" report --format json --between 1500ms,end events.txt >part.json
	jq -e '.processes[0] | .totals as $t | .timeline | length > 100 and first.time_ns >= 2500000000
		and (map(.max_bytes) | max) == $t.peak_bytes' part.json
}

# bats test_tags=anyone
@test "formats: --format: run prints on stderr" {
	"$HEAPTAP" run -q --format json -- "$T/leak" 2>err >out
	jq -e .schema err
}

# bats test_tags=anyone
@test "formats: -o: a device is written in place" {
	list_events >events.txt
	"$HEAPTAP" report -o /dev/null events.txt
	[ -c /dev/null ]
	run --separate-stderr "$HEAPTAP" report -o /dev/full events.txt
	[ "$status" -eq 5 ]
	[[ $stderr == *"No space left"* ]]
	"$HEAPTAP" report -o all.json events.txt
	run --separate-stderr bash -c '"$HEAPTAP" diff all.json all.json >/dev/full'
	[ "$status" -eq 5 ]
	[ "$stderr" = "heaptap: diff: standard output: No space left on device" ]
}

@test "formats: a reader that goes away ends the report without a message" {
	{
		list_events
		awk 'BEGIN {
			for (i = 0; i < 3000; i++)
				printf "stack %d 77 complete 0x400100 0x%x\nalloc 77 1 malloc %d 8 %d 4000000000\n",
					i + 10, 4195328 + i, 9437184 + i * 16, i + 10
		}'
	} | grep -v ^exit >events.txt
	for args in "--format json" "-n 0" --events; do
		# shellcheck disable=SC2086
		"$HEAPTAP" report $args events.txt 2>err | head -n 1 >first
		[ -s first ]
		[ ! -s err ] || { echo "$args"; cat err; return 1; }
	done
	"$HEAPTAP" help run 2>err | true
	[ ! -s err ]
}

# unread ARGS...: heaptap with a standard output that nobody reads any more; its status in $status, messages in $output
unread() {
	output=$(python3 -c '
import os, subprocess, sys
reader, writer = os.pipe()
os.close(reader)
sys.exit(subprocess.run(sys.argv[1:], stdin=subprocess.DEVNULL, stdout=writer, timeout=120).returncode)
' "$HEAPTAP" "$@" 2>&1) && status=0 || status=$?
}

# bats test_tags=full
@test "formats: whatever prints ends without a message when nobody reads it" {
	local args
	spinning
	list_events >events.txt
	"$HEAPTAP" report -q -o a.json events.txt
	mkdir series
	cp a.json series/a.json
	cp a.json series/b.json
	for args in "report events.txt" "report --format json events.txt" "report --format csv events.txt" \
		"report --format pprof events.txt" "report --events events.txt" "report --format list" "diff a.json a.json" \
		"diff --json a.json a.json" "report series" "help run" "--version" "completion bash" "doctor" "doctor $TARGET" \
		"scan $TARGET" "console -q -x report events.txt" "console -q -x status -x report $TARGET" \
		"attach -q -t 100ms $TARGET"; do
		# shellcheck disable=SC2086
		unread $args
		[ "$status" -eq 5 ] && [ -z "$output" ] || { echo "$args: $status: $output"; return 1; }
	done
	untouched "$TARGET"
}

@test "formats: system ends without a message when nobody reads it" {
	not_by_inline "system has no inline source"
	unread system -q -t 100ms
	[ "$status" -eq 5 ] && [ -z "$output" ] || { echo "$status: $output"; return 1; }
}

# bats test_tags=full
@test "formats: reports in turn end when nobody reads them any more" {
	spinning
	start bash -c '"$HEAPTAP" attach -q -i 100ms "$1" | head -n 1' - "$TARGET"
	wait_for gone "$PID"
	is_running "$TARGET"
	[ ! -s bash.err ] || { cat bash.err; return 1; }
	# A file still takes reports.
	start bash -c '"$HEAPTAP" attach -q -i 100ms -o - -o "r%n.txt" "$1" | head -n 1' - "$TARGET"
	wait_for test -s r9.txt
	kill -TERM "$(pgrep -P "$PID" -f attach)"
	ended "$PID" 0
}

# all_formats REPORT KIND...: r.json and each other format of REPORT (a recording or a list); a file for each of these kinds
# where a format has one kind
all_formats() {
	local kind
	"$HEAPTAP" report -q --force -o r.json -o r.csv -o r.speedscope.json -o r.massif "$1"
	for kind in "${@:2}"; do
		"$HEAPTAP" report -q --force -s "$kind" -o "$kind.folded" -o "$kind.dot" "$1"
	done
}

# same_sums FILE...: as the JSON report r.json says
same_sums() {
	local file kind number
	python3 "$ROOT/tests/lib/formats.py" r.json "$@" >sums || return 1
	while read -r file kind number; do
		grep -qx "r.json $kind $number" sums || { echo "$file: $kind $number"; grep "^r.json $kind" sums; return 1; }
	done <sums
	# Each file has some sum.
	[ "$(cut -d ' ' -f 1 sums | sort -u | wc -l)" -eq $(($# + 1)) ] || { cat sums; return 1; }
}

ALL="r.csv r.speedscope.json r.massif"

# bats test_tags=core
@test "formats: each has the sums of JSON: a recording with a verdict" {
	"$HEAPTAP" run -q -w r.heaptap -o /dev/null -- "$T/leak_kinds" >out 2>err
	all_formats r.heaptap live-bytes live-blocks total-bytes total-blocks leaked-bytes leaked-blocks peak temporary
	[ "$(jq '[.processes[0].stacks[].definite.bytes] | add' r.json)" -gt 0 ]
	# shellcheck disable=SC2086
	same_sums $ALL live-bytes.folded live-blocks.folded total-bytes.folded total-blocks.folded leaked-bytes.folded \
		leaked-blocks.folded peak.folded temporary.folded live-bytes.dot total-bytes.dot leaked-bytes.dot \
		peak.dot live-blocks.dot total-blocks.dot leaked-blocks.dot temporary.dot
	# And as the run itself writes them.
	"$HEAPTAP" run -q --force -o r.json -o r.csv -o r.speedscope.json -o r.massif \
		-o live-bytes.folded -o live-bytes.dot -- "$T/leak_kinds" >out 2>err
	# shellcheck disable=SC2086
	same_sums $ALL live-bytes.folded live-bytes.dot
}

# bats test_tags=full
@test "formats: each has the sums of JSON: several processes, nothing judged" {
	"$HEAPTAP" run -q -f --no-scan -w r.heaptap -o /dev/null -- "$T/fork" 3 >out 2>err
	all_formats r.heaptap live-bytes total-bytes leaked-bytes peak
	[ "$(jq '.processes | length' r.json)" -gt 1 ]
	same_sums r.csv r.speedscope.json live-bytes.folded total-bytes.folded peak.folded live-bytes.dot
	[ "$(cut -d ';' -f 1 total-bytes.folded | sort -u | wc -l)" -gt 1 ]
	cmp leaked-bytes.folded live-bytes.folded
	# A file of massif has one process.
	"$HEAPTAP" report -o all.massif r.heaptap 2>err
	grep -q 'massif: a file holds one process' err
	grep -q '^desc: .* other processes are not in this file' all.massif
	"$HEAPTAP" report -q -o 'each-%p.massif' r.heaptap 2>err
	[ "$(find . -name 'each-*' | wc -l)" -eq "$(jq '.processes | length' r.json)" ]
	[ ! -s err ]
	# Programs that a process executes one after the other have one PID.
	"$HEAPTAP" run -q --no-scan -o 'programs-%p.massif' -- "$T/exec" "$T/leak" >out 2>err
	grep -q 'massif: a file holds one program, here the one of PID [0-9]* with the highest peak' err
	fails grep %p err
	grep -q '^desc: .*; 1 other programs of it are not in this file$' programs-*.massif
	grep -q '^cmd: .*/leak$' programs-*.massif
}

@test "formats: each has the sums of JSON: nothing is live, everything is freed" {
	{ list_events | grep -v '^alloc .* 0x\|^exit'; } >events.txt
	all_formats events.txt live-bytes total-bytes peak leaked-blocks
	[ "$(jq '.processes[0].totals.live_blocks' r.json)" -eq 0 ]
	# shellcheck disable=SC2086
	same_sums $ALL total-bytes.folded peak.folded peak.dot
	# As in the text, what was ever allocated stands for what is live.
	cmp live-bytes.folded total-bytes.folded
	cmp leaked-blocks.dot total-bytes.dot
}

# bats test_tags=core
@test "formats: diff reads reports whose keys come in any order, and compressed ones" {
	local f
	for f in leak leak_kinds; do
		"$HEAPTAP" run -q -o $f.json -o $f.json.gz -- "$T/$f" >out 2>err
		mkdir -p sorted packed
		jq -S . $f.json >sorted/$f.json
		mv $f.json.gz packed/$f.json
	done
	"$HEAPTAP" diff -n 0 leak.json leak_kinds.json | tail -n +2 >plain
	[ "$(wc -l <plain)" -gt 20 ]
	# jq sorts keys, and the tables come first.
	diff plain <(cd sorted && "$HEAPTAP" diff -n 0 leak.json leak_kinds.json | tail -n +2)
	diff plain <(cd packed && "$HEAPTAP" diff -n 0 leak.json leak_kinds.json | tail -n +2)
}

# stripped FILE: the report without the names of its frames, as an agent writes it
stripped() {
	command jq 'del(.sources, .functions) | .frames |= map(select(.inlined | not) | del(.function, .line))
		| .processes[].stacks |= map(del(.place))' "$1"
}

@test "formats: report names a JSON report without names, with the files of --sysroot, and only the right ones" {
	mkdir root
	cp "$T/leak" "$T/leak_kinds" .
	"$HEAPTAP" run -q -o whole.json -- ./leak >out 2>err
	# The rest of an inlined call has the place of it, so without any here each frame stays.
	command jq -e '[.frames[] | select(.inlined)] == []' whole.json
	stripped whole.json >bare.json
	run ! grep -q main bare.json
	mv leak root/
	"$HEAPTAP" report -q --sysroot root -o named.json -o named.txt bare.json
	told() { jq -S '.processes[0] | [.pid, .totals, .functions, .stacks]' "$1"; }
	diff <(told whole.json) <(told named.json)
	[ "$(head -1 named.txt)" = "$(jq -r '.processes[0].verdict' whole.json)" ]
	grep -q '^leak (pid .*); .* allocated in .* blocks$' named.txt
	grep -q '^#1 .* leaked in .*, by calloc from open_session (leak.c:' named.txt
	"$HEAPTAP" report -q --sysroot root -o again.json named.json
	diff <(told whole.json) <(told again.json)
	# Another file of that name: said by its path, and no name is taken from it.
	mv leak_kinds root/leak
	"$HEAPTAP" report -q --sysroot root -o wrong.json bare.json 2>err
	grep -q "$PWD/leak: .* (its build ID differs): no names from it" err
	jq -e '[.processes[0].stacks[].frames[] | select(.module | endswith("/leak")) | .function] | all(. == null)' wrong.json
	jq -e '.stale_modules == 1' wrong.json
	run -2 "$HEAPTAP" report -o page.html bare.json
	[[ $output == *'can be written as .json and .txt only'* ]]
}

@test "formats: --libraries lists the code of a process with addresses and build IDs" {
	stepping
	attached --libraries -w r.heaptap -o r.txt "$TARGET"
	step "alloc 1 10"
	detach
	# start and path of each mapping of code, but for the one of the kernel
	awk '$2 ~ /x/ && $6 ~ "^/" { sub(/-.*/, "", $1); print "0x" $1, $6 }' "/proc/$TARGET/maps" >mapped
	listed() { jq -r '.processes[0].libraries[] | select(.path[:1] == "/") | "\(.start) \(.path)"' "$1"; }
	diff mapped <(listed "$report")
	[ "$(wc -l <mapped)" -ge 3 ]
	id=$(readelf -n "$T/step" | awk '/Build ID/ { print $3 }')
	jq -e --arg id "$id" --arg path "$(realpath "$T/step")" \
		'[.processes[0].libraries[] | select(.path == $path and .build_id == $id)] | length > 0' "$report"
	tr -s '\n ' ' ' <r.txt | grep -q " 0x[0-9a-f]*-0x[0-9a-f]* [^ ]*/step, build ID $id "
	"$HEAPTAP" report -q --libraries -o recorded.json r.heaptap
	diff mapped <(listed recorded.json)
	"$HEAPTAP" report -q -o plain.json r.heaptap
	jq -e '.processes[0] | has("libraries") | not' plain.json
	# The process of a recording is of another time.
	jq -e '.processes[0].verdict | test("since the attach .older ones: heaptap scan")' "$report"
	jq -e '.processes[0].verdict | test("since the attach;")' plain.json
}

@test "formats: callers by file: the sums are those of the process, in text and JSON" {
	"$HEAPTAP" run -q -o r.json -o r.txt -- "$T/dlopen" "$T" >out 2>err
	jq -e '.processes[0] | (.modules | length) > 2
		and ([.modules[].live.bytes] | add) == .totals.live_bytes
		and ([.modules[].live.blocks] | add) == .totals.live_blocks
		and ([.modules[].allocated.bytes] | add) == .totals.alloc_bytes
		and ([.modules[].allocated.blocks] | add) == .totals.allocs
		and ([.modules[].at_peak_bytes] | add) == .totals.peak_bytes
		and ([.modules[].leaked.bytes] | add) == ([.stacks[] | .definite.bytes + .indirect.bytes] | add)
		and ([.modules[].callers] | add) == (.stacks | length)
		and ([.modules[].live.bytes] | . == (sort | reverse))' r.json
	[ "$(jq '[.processes[0].modules[] | select(.module | endswith("plug_alloc.so")).allocated.blocks] | add' r.json)" -eq \
		"$(jq '[.processes[0].stacks[] | select(.frames[0].module // "" | endswith("plug_alloc.so")).allocs] | add' r.json)" ]
	grep -q '^  modules  .* (.* %)' r.txt
	# One file alone says nothing.
	"$HEAPTAP" run -q -o one.txt -- "$T/leak" >out 2>err
	run ! grep -q '^  modules' one.txt
}

@test "formats: threads have names, in reports, lists of blocks, recordings and over a connection" {
	stepping
	attached -w r.heaptap -o r.txt -o b.blocks.json -o b.blocks.csv "$TARGET"
	step "worker 1000 reader"
	step "worker 2000 <b>writer"
	step "alloc 1 10"
	detach
	named() { jq -c '.processes[0].threads | map([.name, .allocated.blocks]) | sort' "$1"; }
	[ "$(named "$report")" = '[["<b>writer",1],["reader",1],["step",3]]' ]
	grep -q '^  threads  *<b>writer tid [0-9]* 2.* (.* %), 2.* live' r.txt
	jq -e '[.processes[0].blocks[] | {(.size | tostring): .thread}] | add | [.["1000"], .["2000"], .["10"]]
		== ["reader", "<b>writer", "step"]' b.blocks.json
	grep -q ',2000,.*,"<b>writer"$' b.blocks.csv
	"$HEAPTAP" report -q -o recorded.json r.heaptap
	[ "$(named recorded.json)" = "$(named "$report")" ]
	"$HEAPTAP" report --events r.heaptap | grep -q '^thread [0-9]* [0-9]* reader$'
}

# bats test_tags=full
@test "formats: threads: what each allocated adds up to the process, in text and JSON" {
	"$HEAPTAP" run -q --no-scan -w r.heaptap -o r.json -o r.txt -- "$T/threads" 4 1000 >out 2>err
	jq -e '.processes[0] | (.threads | length) >= 5 and (.threads | map(.tid) | . == unique or (sort == unique))
		and ([.threads[].allocated.bytes] | add) == .totals.alloc_bytes
		and ([.threads[].allocated.blocks] | add) == .totals.allocs
		and ([.threads[] | select(.allocated.blocks >= 1000)] | length) >= 4
		and ([.threads[].live.bytes] | add) == .totals.live_bytes and ([.threads[].live.blocks] | add) == .totals.live_blocks
		and all(.threads[]; .live.blocks <= .allocated.blocks)' r.json
	grep -q '^  threads  .*tid [0-9]* .* (.* %), .* live' r.txt
	# A recording has the same.
	"$HEAPTAP" report -q -o recorded.json r.heaptap
	diff <(jq '.processes[0].threads | sort_by(.tid)' r.json) <(jq '.processes[0].threads | sort_by(.tid)' recorded.json)
	"$HEAPTAP" run -q --no-scan -o one.txt -- "$T/leak" >out 2>err
	run ! grep -q '^  threads' one.txt
	# A thread of this program allocated one block of 111 bytes and keeps it.
	"$HEAPTAP" run -q -o kinds.json -- "$T/leak_kinds" >out 2>err
	jq -e '.processes[0].threads | map(select(.allocated.bytes == 111)) | map(.live.bytes, .live.blocks) == [111, 1]' kinds.json
}

@test "formats: folded: from the outermost function to the allocator" {
	"$HEAPTAP" run -q --no-scan -o r.folded -o r.json -- "$T/leak" >out 2>err
	grep -q '^_start;.*main;.*load_settings;malloc [0-9]*$' r.folded || { cat r.folded; return 1; }
	"$HEAPTAP" run -q --no-scan -d 2 --force -o r.folded -- "$T/deep" 30 >out 2>err
	grep -q '^\[cut: depth\];recurse;' r.folded || { cat r.folded; return 1; }
}

@test "formats: massif: ms_print shows the peak and the end" {
	command -v ms_print >/dev/null || skip "ms_print is not installed"
	"$HEAPTAP" run -q -o r.massif -o r.json -- "$T/leak" >out 2>err
	ms_print r.massif >printed
	grep -q 'Detailed snapshots: \[.*(peak)' printed
	grep -q 'load_settings (leak.c:' printed || grep -q 'load_settings (.*leak.c:' printed
	list_events >events.txt
	"$HEAPTAP" report -q -o e.massif events.txt
	ms_print e.massif >printed
	grep -q '98.04% (5,000B) 0x110' printed
	echo 'process 77 prog /nowhere/prog' >none.txt # and no event
	"$HEAPTAP" report -q -o none.massif none.txt
	ms_print none.massif | grep -q 'Number of snapshots: 1$'
}

# bats test_tags=full
@test "formats: dot: Graphviz draws it, however many functions there are" {
	command -v dot >/dev/null || skip "dot is not installed"
	awk 'BEGIN {
		print "process 77 prog /nowhere/prog"
		print "map 77 0x400000 0x500000 0x400000 /nowhere/prog"
		for (i = 0; i < 1000; i++) {
			printf "stack %d 77 complete 0x%x 0x%x 0x400100\n", i + 10, 4195328 + i, 4260864 + int(i / 10)
			printf "alloc 77 1 malloc %d %d %d 4000000000\n", 9437184 + i * 16, i + 1, i + 10
		}
	}' >events.txt
	"$HEAPTAP" report -q -o r.dot events.txt
	[ "$(grep -c 'tooltip' r.dot)" -eq 80 ]
	[ "$(grep -c -e '->' r.dot)" -le 160 ]
	grep -q '80 of 1101 functions are shown' r.dot
	dot -Tsvg r.dot >r.svg 2>err
	[ ! -s err ]
	grep -q '</svg>' r.svg
}

@test "formats: a caller has the same id in each run and each format, and no reader rounds it" {
	local i
	for i in 1 2; do
		"$HEAPTAP" run -q --check -o r$i.json -o r$i.csv -w r$i.heaptap -- "$T/misuse" >out 2>err || true
		jq -c '.processes[0] | (.errors[] | [.kind, .alloc_stack, .free_stack]), (.stacks[] | [.id, .function, .frames[0].offset])' \
			r$i.json | sort >ids$i
	done
	[ "$(wc -l <ids1)" -gt 8 ]
	diff ids1 ids2
	# The source itself numbers stacks by their addresses, which differ.
	run ! cmp -s <("$HEAPTAP" report --events r1.heaptap | grep ^stack | cut -d ' ' -f 2 | sort) \
		<("$HEAPTAP" report --events r2.heaptap | grep ^stack | cut -d ' ' -f 2 | sort)
	jq -e '.processes[0] | .changed_ids == 0 and (.stacks | map(.id) | length == (unique | length) and all(test("^[0-9a-f]{16}$")))' r1.json
	diff <(jq -r '.processes[0].stacks[].id' r1.json | sort) \
		<(python3 -c 'import csv, sys; [print(r["id"]) for r in csv.DictReader(open(sys.argv[1]))]' r1.csv | sort)
}

# bats test_tags=full
@test "formats: JSON has no number that a reader would round" {
	"$HEAPTAP" run -q --check -w misuse.heaptap -o /dev/null -- "$T/misuse" >out 2>err || true
	"$HEAPTAP" run -q -f -w fork.heaptap -o /dev/null -- "$T/fork" 3 >out 2>err
	for f in misuse fork; do
		"$HEAPTAP" report -q --force -o r.json -o r.speedscope.json -o r.sarif $f.heaptap
		"$HEAPTAP" diff --json r.json r.json >d.json
		# Readers such as JavaScript keep 53 bits.
		python3 -c '
import json, sys
def numbers(item):
    if isinstance(item, (dict, list)):
        for part in item.values() if isinstance(item, dict) else item:
            yield from numbers(part)
    elif isinstance(item, int):
        yield item
for path in sys.argv[1:]:
    largest = max(numbers(json.load(open(path))))
    print(path, largest)
    assert 0 < largest < 2 ** 53, path
' r.json r.speedscope.json r.sarif d.json
	done
}

# with_hostile_names: a report of a program with such a name in all formats, with symbols and without
with_hostile_names() {
	local name
	name=$(printf 'evil\033[31m;"\\<&\nname,%%#\303')
	cp "$T/leak" "./$name"
	"$HEAPTAP" run -q -w r.heaptap -o /dev/null -- "./$name" >out 2>err
	strip -s -o "./bare" "$T/leak"
	mv ./bare "./$name"
	all_formats r.heaptap live-bytes
}

@test "formats: hostile names break no format" {
	with_hostile_names
	# shellcheck disable=SC2086
	same_sums $ALL live-bytes.folded live-bytes.dot
	# shellcheck disable=SC2086
	run ! grep -q -a -e "$(printf '\033')" -e "$(printf '\r')" $ALL live-bytes.folded live-bytes.dot
}

# bats test_tags=full
@test "formats: dot: Graphviz draws hostile names" {
	command -v dot >/dev/null || skip "dot is not installed"
	with_hostile_names
	dot -Tsvg live-bytes.dot >r.svg
}

@test "formats: heaptap is killed before its report has a name: no file stays (F7)" {
	local dir=$BATS_TEST_TMPDIR/reports
	mkdir "$dir"
	strace -qq -o /dev/null -e inject=linkat,renameat,renameat2:error=EIO:signal=KILL \
		"$HEAPTAP" run -q -o "$dir/report.txt" -- true || [ $? -eq 137 ]
	[ -z "$(ls -A "$dir")" ] || { ls -lA "$dir"; false; }
}

@test "formats: a report that is replaced is whole, and has the same name" {
	local dir=$BATS_TEST_TMPDIR/reports
	mkdir "$dir"
	for i in 1 2; do
		"$HEAPTAP" run -q --force -o "$dir/report.json" -- true
		jq -e .schema "$dir/report.json"
		[ "$(ls -A "$dir")" = report.json ]
		[ "$(stat -c %a "$dir/report.json")" = 600 ]
	done
}
