#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# Options that change what is traced or shown.

load ../lib/common

# bats test_tags=core
@test "options: --depth cuts stacks and says so" {
	traced -d 3 -- "$T/deep" 30
	jq -e '.processes[0].stacks[] | select(.live_bytes == 60)
		| (.frames | length) == 3 and .complete == false and .truncated == "depth"' "$report"
	traced -d 100 -- "$T/deep" 30
	jq -e '.processes[0].stacks[] | select(.live_bytes == 60)
		| ([.frames[] | select(.function == "recurse")] | length) == 30 and .complete' "$report"
}

@test "options: a stack has up to 127 frames where --depth is not given" {
	traced -- "$T/deep" 300
	jq -e '[.processes[0].stacks[].frames | length] | max == 127' "$report"
}

@test "options: --depth 0 takes no stacks, the numbers stay" {
	traced -d 0 -- "$T/leak" --expect
	as_told calls failed unknown
	is .totals.live_blocks 102
}

# bats test_tags=core
@test "options: --mmap: whole, in part, across, replaced, remapped (B14)" {
	traced --mmap -- "$T/mmap"
	[ "$status" -eq 0 ]
	as_told bytes
}

@test "options: -o -: a program that prints is not in the middle of the report" {
	run --separate-stderr "$HEAPTAP" run -o - --format json -- sh -c 'echo "{}"; exec true'
	[ "$status" -eq 0 ]
	[ "$(jq -rs 'map(.schema) | join(",")' <<<"$output")" = heaptap-report/2 ]
	[[ $'\n'$stderr = *$'\n{}'* && $stderr = *"the program prints to standard error"* ]]
}

@test "options: --mmap: system calls that no function of the C library makes, and brk" {
	[ "${HEAPTAP_BACKEND:-bpf}" = bpf ] || skip "only BPF sees system calls"
	traced --mmap -- "$T/raw_maps"
	[ "$status" -eq 0 ]
	as_told bytes
	# Neither files that the dynamic linker maps nor the memory of the allocator.
	jq -e '[.processes[0].stacks[] | select(.live_bytes > 0)] | length == 6' "$report"
	traced --mmap --backend ptrace -- "$T/raw_maps"
	grep -q "raw system calls and brk are seen by BPF alone" "$err"
}

@test "options: --mmap: a mapping that munmap has split is one block with one verdict" {
	local page
	page=$(getconf PAGESIZE)
	traced --mmap -- "$T/split_map"
	is '.totals.live_blocks' 6
	[ "$(jq -c '.processes[0].scan | [.definite, .indirect, .possible, .reachable] | map([.blocks, .bytes])' "$report")" = "[[1,$((6 * page))],[1,100],[1,$((6 * page))],[3,$((12 * page + 10))]]" ]
	[ "$(jq -c '[.processes[0].stacks[] | select(any(.frames[]; .function == "lost")) | [.definite.blocks, .indirect.blocks]] | sort' "$report")" = '[[0,1],[1,0]]' ]
}

@test "options: without --mmap mappings are no blocks" {
	traced -- "$T/mmap"
	is .totals.allocs 0
}

# bats test_tags=core
@test "options: --alloc: a custom allocator" {
	traced --alloc malloc=my_alloc,free=my_free,arg=2 -- "$T/custom"
	[ "$status" -eq 0 ] || { cat "$err"; return 1; }
	as_told
}

@test "options: --alloc that is wrong" {
	for spec in "" malloc= malloc=my_alloc,arg=x malloc=my_alloc,arg=99 color=blue malloc=my_alloc,object=; do
		run --separate-stderr "$HEAPTAP" run --alloc "$spec" -- "$T/custom"
		[ "$status" -eq 2 ] || { echo "$spec: $status"; return 1; }
	done
}

@test "options: --nocpp counts the malloc inside" {
	HEAPTAP_TARGET_HOLD=1 traced --nocpp -- "$T/operators"
	[ "$status" -eq 0 ]
	jq -e '.processes[0].functions | keys | any(startswith("operator")) | not' "$report"
	jq -e '.processes[0] | .functions.malloc >= 29' "$report"
	as_told live unknown failed
}

@test "options: --omit: no events from this library" {
	traced --omit plug_own.so -- "$T/dlopen" "$T"
	[ "$(of_function plug_own_allocates allocs)" -eq 0 ]
	[ "$(of_function plug_allocates allocs)" -eq 50 ]
	fails grep -e '--omit' "$err"
}

# bats test_tags=full
@test "options: --omit: a link, a relative path and a link beside the library; a name of no file" {
	local name dir=$BATS_TEST_TMPDIR/d
	mkdir "$dir"
	cp "$T/dlopen" "$T"/plug*.so "$dir"
	ln -s plug_own.so "$dir/beside.so"
	ln -s "$dir/plug_own.so" "$BATS_TEST_TMPDIR/link.so"
	cd "$dir"
	for name in "$BATS_TEST_TMPDIR/link.so" ./plug_own.so ../link.so beside.so; do
		traced --omit "$name" --omit libnone.so -- "$dir/dlopen" "$dir"
		[ "$(of_function plug_own_allocates allocs)" -eq 0 ]
		[ "$(of_function plug_allocates allocs)" -eq 50 ]
		[ "$(grep -c -e '--omit' "$err")" -eq 1 ]
		grep -q -e '--omit: libnone.so: no file of this name is mapped' "$err"
	done
}

@test "options: --omit libc.so.6: operators that call its malloc are seen by themselves" {
	traced --omit libc.so.6 -- "$T/operators"
	[ "$status" -eq 0 ]
	nothing_lost
	[ "$(calls_of malloc)" -eq 0 ]
	as_told calls live allocs failed unknown
}

# bats test_tags=core
@test "options: -o by its ending, several at once, 0600" {
	cd "$BATS_TEST_TMPDIR"
	"$HEAPTAP" run -q -o a.json -o b.txt -- "$T/leak" 2>err
	jq -e .schema a.json
	grep -q load_settings b.txt
	[ "$(stat -c %a a.json b.txt | sort -u)" = 600 ]
}

@test "options: -o with %p" {
	cd "$BATS_TEST_TMPDIR"
	"$HEAPTAP" run -q -o 'r-%p.json' -- "$T/leak" 2>err
	[ "$(jq '.processes[0].pid' r-*.json)" -eq "$(ls r-*.json | tr -dc 0-9)" ]
}

@test "options: -o with %p: a process that executes a program has one file" {
	cd "$BATS_TEST_TMPDIR"
	"$HEAPTAP" run -q -f -o all.json -o 'r-%p-%n.json' -- perl -e 'exec @ARGV' "$T/leak" 2>err
	# Another test may trace by inline now.
	fails grep -v 'a heaptap with --backend inline traces it' err
	[ "$(find . -name 'r-*' | wc -l)" -eq 1 ]
	[ "$(jq -c '[.processes[] | [.exe, .totals.allocs]]' r-*.json)" = "$(jq -c '[.processes[] | [.exe, .totals.allocs]]' all.json)" ]
	[ "$(jq '.processes | length' r-*.json)" -eq 2 ]
}

@test "options: -o - is text on stdout" {
	run --separate-stderr "$HEAPTAP" run -o - -- "$T/leak"
	[ "$status" -eq 0 ]
	[[ $output == *load_settings* ]]
}

# bats test_tags=full
@test "options: --sort and --top" {
	for key in live-bytes live-blocks total-bytes total-blocks average peak temporary; do
		traced -s "$key" -- "$T/leak"
		[ "$status" -eq 0 ] || { cat "$err"; return 1; }
		case $key in
		live-bytes) f=.live_bytes ;; live-blocks) f=.live_blocks ;; total-bytes) f=.alloc_bytes ;;
		total-blocks) f=.allocs ;; average) f='.alloc_bytes / .allocs' ;; peak) f=.peak_bytes ;; temporary) f=.temporary ;;
		esac
		jq -e "[.processes[0].stacks[] | $f] | . == (sort | reverse)" "$report" || { echo "not sorted by $key"; return 1; }
	done
	run --separate-stderr "$HEAPTAP" run -n 1 -- "$T/leak"
	[[ $stderr == *open_session* && $stderr != *load_settings* ]]
}

@test "options: --interval: N reports, each right" {
	cd "$BATS_TEST_TMPDIR"
	start "$HEAPTAP" run -q -i 300ms -o 'r%n.json' -- "$T/spin" 5
	wait_for test -s r3.json
	kill -TERM "$PID"
	ended "$PID" 0
	for f in r*.json; do
		jq -e '.processes[0] | .totals.allocs - .totals.frees == .totals.live_blocks' "$f" || { echo "$f"; return 1; }
	done
	jq -s -e '[.[] | .processes[0].totals.allocs] | . == sort' r1.json r2.json r3.json
}

# bats test_tags=full
@test "options: --stop-after ends tracing after so many allocations" {
	traced --stop-after 10 --no-scan -- "$T/order"
	[ "$status" -eq 0 ] || { cat "$err"; return 1; }
	[ "$(field .totals.allocs)" -ge 10 ]
	spinning 2
	attached --stop-after 1000 --no-scan "$TARGET"
	ended "$TAP" 0
	[ "$(field .totals.allocs)" -ge 1000 ]
	is_running "$TARGET"
}

# Events come in by thousands at a time. Two threads at full speed free what they allocate: no block is a leak.
# bats test_tags=full
@test "options: --stop-after leaves out what comes after the last allocation" {
	local cases=(bpf ptrace) verdict
	[ -z "${HEAPTAP_BACKEND:-}" ] || cases=("$HEAPTAP_BACKEND")
	[ "$(uname -m)" != x86_64 ] || cases+=(inline)
	cd "$BATS_TEST_TMPDIR"
	for backend in "${cases[@]}"; do
		spinning 0 2
		for verdict in --scan --no-scan; do
			echo "$backend $verdict"
			attached -b "$backend" --stop-after 1000 $verdict --force -w r.tap "$TARGET"
			wait_for gone "$TAP"
			is .totals.allocs 1000
			is .lost.allocs 0
			[ "$verdict" = --no-scan ] || is .scan.definite.blocks 0
			"$HEAPTAP" report -q --force -o recorded.json r.tap
			jq -s -e '[.[].processes[0].totals | del(.peak_time_ns)] | .[0] == .[1]' "$report" recorded.json
		done
		kill "$TARGET"
		ended "$TARGET" 0
	done
}

# The program ends while heaptap lets go of it: its status is not lost, and heaptap does not wait for ever.
# bats test_tags=full
@test "options: --stop-after with a program that is about to end" {
	local LIMIT_S=60
	for try in 1 2 3; do
		traced --stop-after 1 -- "$T/exitcodes" exit 4
		[ "$status" -eq 4 ] || { echo "try $try: status $status"; cat "$err"; return 1; }
		traced --stop-after 1 -- "$T/exitcodes" signal 11
		[ "$status" -eq 139 ] || { echo "try $try: status $status"; cat "$err"; return 1; }
	done
}

# bats test_tags=full
@test "options: --duration ends by itself" {
	spinning
	run "$HEAPTAP" attach -q -t 1s -o "$BATS_TEST_TMPDIR/r.json" "$TARGET"
	[ "$status" -eq 0 ]
	jq -e '.processes[0].totals.allocs > 0' "$BATS_TEST_TMPDIR/r.json"
	untouched "$TARGET"
}

# The report counts from the moment when the probes are in.
# bats test_tags=full
@test "options: --duration: the whole time is traced, by each source" {
	local cases=(bpf ptrace)
	[ -z "${HEAPTAP_BACKEND:-}" ] || cases=("$HEAPTAP_BACKEND")
	[ "$(uname -m)" != x86_64 ] || cases+=(inline)
	cd "$BATS_TEST_TMPDIR"
	for backend in "${cases[@]}"; do
		spinning
		"$HEAPTAP" attach -q --no-scan -b "$backend" -t 100ms -o "attach.$backend.json" "$TARGET"
		"$HEAPTAP" run -q --no-scan -b "$backend" -t 100ms -o "run.$backend.json" -- sleep 1
		untouched "$TARGET"
	done
	spinning
	# Commands that never come, and no end of them.
	mkfifo commands
	"$HEAPTAP" console -q --no-scan -t 100ms -o console.json "$TARGET" <>commands
	for f in *.json; do
		jq -e '.duration_ns >= 100000000' "$f" || { echo "$f"; return 1; }
	done
}

@test "options: text and JSON show the same numbers" {
	cd "$BATS_TEST_TMPDIR"
	"$HEAPTAP" run -q -n 0 -o r.json -o r.txt -- "$T/leak" 2>err
	for key in allocs frees live_blocks live_bytes; do
		n=$(jq -r ".processes[0].totals.$key" r.json)
		tr -d , <r.txt | grep -qw "$n" || { echo "$key $n is not in the text"; return 1; }
	done
}

@test "options: --sysroot and --debug-path: names from elsewhere" {
	cd "$BATS_TEST_TMPDIR"
	objcopy --only-keep-debug "$T/leak" leak.debug
	id=$(readelf -n "$T/leak" | sed -n 's/.*Build ID: //p')
	mkdir -p "debug/.build-id/${id:0:2}"
	mv leak.debug "debug/.build-id/${id:0:2}/${id:2}.debug"
	objcopy --strip-all "$T/leak" stripped
	report=r.json
	"$HEAPTAP" run -q --debug-path debug -o r.json -- ./stripped 2>err >out
	[ "$(of_function load_settings live_blocks)" -eq 12 ]
}

# bats test_tags=core
@test "options: help, --version, doctor" {
	run "$HEAPTAP" --version
	[ "$status" -eq 0 ]
	[[ $output =~ [0-9]+\.[0-9]+\.[0-9]+ ]]
	for command in "" run attach report doctor; do
		run "$HEAPTAP" help $command
		[ "$status" -eq 0 ] || { echo "help $command: $output"; return 1; }
		[ "${#output}" -gt 100 ]
	done
	run "$HEAPTAP" help
	[ "$(wc -L <<<"$output")" -le 100 ] # fits a terminal
	run "$HEAPTAP" doctor
	[ "$status" -eq 0 ]
	"$HEAPTAP" doctor --json | jq -e type
	spinning
	run "$HEAPTAP" doctor "$TARGET"
	[ "$status" -eq 0 ]
	untouched "$TARGET"
}

# bats test_tags=core,anyone
@test "options: the manual has the options of the program, and a page for each command" {
	local command
	mkdir "$BATS_TEST_TMPDIR/man"
	"$ROOT/man/options.sh" "$HEAPTAP" "$BATS_TEST_TMPDIR/man"
	diff -r -x options.sh "$ROOT/man" "$BATS_TEST_TMPDIR/man" || { echo "type make manual"; return 1; }
	for command in $("$HEAPTAP" help | sed -nE 's/^  ([a-z]+) .*/\1/p'); do
		case $command in demo | completion | help) continue ;; esac
		grep -q "heaptap.*-$command" "$ROOT/man/heaptap.1"
		[ -s "$ROOT/man/heaptap-$command.1" ]
	done
	[ "$(wc -w <"$ROOT/man/heaptap.1")" -le 2500 ]
}
