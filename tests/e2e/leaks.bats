#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# Leak verdicts: what a program says of its own blocks, what memcheck says of them, and a target that goes on as before.

load ../lib/common

# judged: each "expect definite|indirect|possible|reachable" line in $out holds in the report
judged() {
	local wrong=0 lines=0 word kind blocks bytes function have
	while read -r word kind blocks bytes function; do
		case "$word $kind" in "expect definite" | "expect indirect" | "expect possible" | "expect reachable") ;; *) continue ;; esac
		lines=$((lines + 1))
		have="$(of_function "$function" "$kind.blocks") $(of_function "$function" "$kind.bytes")"
		equal "$kind blocks and bytes of $function" "$have" "$blocks $bytes"
	done <"$out"
	[ "$lines" -gt 0 ] || { echo "the program told nothing"; return 1; }
	return "$wrong"
}

# told_kinds HOW STATUS: the program ends so, and every verdict is as it says
told_kinds() {
	traced -- "$T/leak_kinds" "$1"
	[ "$status" -eq "$2" ] || { cat "$err"; return 1; }
	nothing_lost
	judged
	is .scan.unsure.blocks 0
	is .scan.skipped_bytes 0
	is .scan.partial false
}

# sums FILE: "definite B N indirect ..." of the report
sums() { jq -r '.processes[0].scan | [("definite", "indirect", "possible", "reachable") as $k | $k, .[$k].bytes, .[$k].blocks] | map(tostring) | join(" ")' "$report"; }

# sums_of_memcheck PROGRAM...: the same by valgrind, which calls glibc's tables of threads possibly lost
sums_of_memcheck() {
	valgrind --run-libc-freeres=no --run-cxx-freeres=no --leak-check=full --show-leak-kinds=all \
		--leak-check-heuristics=all --log-file="$BATS_TEST_TMPDIR/memcheck" \
		"$@" >/dev/null 2>&1 3>&- || true
	awk '{ gsub(",", "") }
		/ bytes in [0-9]+ blocks are / { bytes = $2; blocks = $5; is_possible = /possibly lost/ }
		/ (allocate_dtv|_dl_allocate_tls) / && is_possible { table_bytes += bytes; table_blocks += blocks; is_possible = 0 }
		/ly lost: |still reachable: / { kind = /still/ ? "reachable" : /possib/ ? "possible" : /indirect/ ? "indirect" : "definite"
			sum[kind] = $4; nr[kind] = $7; is_told = 1 }
		END { if (!is_told) exit
			sum["possible"] -= table_bytes; nr["possible"] -= table_blocks
			sum["reachable"] += table_bytes; nr["reachable"] += table_blocks
			n = split("definite indirect possible reachable", kinds, " ")
			for (i = 1; i <= n; i++) printf "%s%s %d %d", (i > 1 ? " " : ""), kinds[i], sum[kinds[i]], nr[kinds[i]]
			print "" }' "$BATS_TEST_TMPDIR/memcheck"
	grep -q 'LEAK SUMMARY' "$BATS_TEST_TMPDIR/memcheck" || echo "definite 0 0 indirect 0 0 possible 0 0 reachable 0 0"
}

# of_memcheck KIND FILE: blocks of this kind
blocks_in() { sed -E "s/.*$1 [0-9]+ ([0-9]+).*/\1/" <<<"$2"; }

has_note() {
	jq -r '.processes[0].notes[]' "$report" | grep -qE -- "$1" || { echo "notes: $(field .notes)"; return 1; }
	is .scan null
}

# patient [OPTIONS] PID...: attached, with a verdict however slow the machine is
patient() { attached --max-pause 60s "$@"; }

# ---- right verdicts ----

# bats test_tags=core,ptrace,inline
@test "leaks: run: every kind, at exit" { told_kinds exit 0; }
# bats test_tags=full
@test "leaks: run: every kind, at _exit (B18)" { told_kinds _exit 3; }
# bats test_tags=full
@test "leaks: run: every kind, at abort" { told_kinds abort 134; }
# bats test_tags=full
@test "leaks: run: every kind, at a deadly signal" { told_kinds segv 139; }
# bats test_tags=full
@test "leaks: run: every kind, at SIGKILL" { told_kinds kill 137; }

# bats test_tags=full
@test "leaks: run: pointers that the frames of exit() cover are no roots" {
	local how
	for how in return exit abort handler; do
		traced -- "$T/leak_exit" "$how"
		nothing_lost
		judged || { echo "at the end by $how"; return 1; }
	done
}

# bats test_tags=full
@test "leaks: run: old pointers below the stack pointer hold a block only in leaf functions" {
	[ "$(uname -m)" = x86_64 ] || skip "no red zone on this CPU"
	local how
	for how in caller leaf; do
		traced -- "$T/red_zone" "$how"
		[ "$status" -eq 143 ] || { cat "$err"; return 1; }
		nothing_lost
		judged || { echo "in a $how"; return 1; }
	done
}

# bats test_tags=full
@test "leaks: run: old pointers in buffers of streams hold no block, and the program's own buffers do" {
	local how
	for how in _exit exit; do
		traced -- "$T/leak_stream" "$how" </dev/null
		nothing_lost
		judged || { echo "at the end by $how"; return 1; }
	done
}

# The library lies below the C library, so that it is found first.
# bats test_tags=full
@test "leaks: run: a library that is called libc-client.so is not taken for the C library" {
	local lib=$BATS_TEST_TMPDIR/libc-client.so how
	[ "$(getconf GNU_LIBC_VERSION 2>/dev/null)" ] || skip "the C library is not glibc"
	cp "$T/plug_leak.so" "$lib"
	for how in _exit exit; do
		LD_PRELOAD="libc.so.6:$lib" traced -- "$T/leak_stream" "$how" </dev/null
		nothing_lost
		judged || { echo "at the end by $how"; return 1; }
	done
}

# bats test_tags=core
@test "leaks: run and attach: signal stacks and io_uring requests, which only the kernel knows, hold their blocks" {
	local target status=0
	with_bpf_only "the kernel lists both to BPF programs"
	"$T/requests" >"$BATS_TEST_TMPDIR/trial" || status=$?
	[ "$status" -ne 99 ] || skip "no io_uring here"
	for target in signal_stack requests; do
		traced -- "$T/$target"
		judged
		[[ $(cat "$out") =~ reachable ]]
		nothing_lost
		kinds "$target"
		patient "$TARGET"
		built
		detach
		judged
		nothing_lost
		tell
		ended "$TARGET" 0
	done
}

# bats test_tags=full
@test "leaks: attach: io_uring requests that cannot be listed are said once for a process, not at each verdict" {
	local status=0
	"$T/requests" >"$BATS_TEST_TMPDIR/trial" || status=$?
	[ "$status" -ne 99 ] || skip "no io_uring here"
	kinds requests
	"$O/tests/targets/nobpf" EPERM bpf "$HEAPTAP" attach -q -b ptrace --max-pause 60s --scan -i 200ms -o "$BATS_TEST_TMPDIR/%n.json" \
		"$TARGET" 2>"$BATS_TEST_TMPDIR/tap.err" 3>&- &
	STARTED+=($!)
	wait_for test -s "$BATS_TEST_TMPDIR/1.json"
	built
	wait_for test -s "$BATS_TEST_TMPDIR/6.json"
	[ "$(grep -c 'its io_uring requests cannot be listed' "$BATS_TEST_TMPDIR/tap.err")" -eq 1 ]
	tell
	ended "$TARGET" 0
}

# bats test_tags=full
@test "leaks: run: descriptors of ended threads hold no argument, and no result that was fetched" {
	local nr
	for nr in 1 5 100; do
		traced -- "$T/leak_arg" "$nr"
		nothing_lost
		judged || { echo "with $nr threads"; return 1; }
	done
}

# find_jemalloc: the path of the 64-bit library in $JEMALLOC; without it the test is skipped
find_jemalloc() {
	JEMALLOC=$(ldconfig -p | awk '$1 ~ /^libjemalloc/ && $0 ~ /x86-64|AArch64/ { print $NF; exit }')
	[ -n "$JEMALLOC" ] || skip "libjemalloc is not installed"
}

@test "leaks: run: jemalloc: its caches, its own memory and what it has free hold no lost block" {
	local nr
	find_jemalloc
	for nr in 1 100 1000; do
		LD_PRELOAD=$JEMALLOC traced -- "$T/leak_cached" "$nr"
		nothing_lost
		judged || { echo "with $nr blocks"; return 1; }
	done
}

# bats test_tags=full
@test "leaks: run: jemalloc: an address that a thread keeps for look-ups holds no lost block" {
	find_jemalloc
	LD_PRELOAD=$JEMALLOC traced -- "$T/leak_gib"
	[ "$status" -eq 0 ] || { cat "$err"; return 1; }
	nothing_lost
	judged
}

@test "leaks: run: what a vector register still holds at the exit is no root" {
	traced -- "$T/leak_vector"
	[ "$status" -eq 0 ]
	nothing_lost
	judged
}

# Data that only look like jemalloc's tree say nothing of free memory: gdb by chance had such, in libpython's.
# With "many" the search for the root took hours.
# bats test_tags=full
@test "leaks: run: what looks like jemalloc's tree, but has no whole root, frees no page" {
	local kind
	for kind in short mixed many; do
		traced -- "$T/like_jemalloc" "$kind"
		[ "$status" -eq 0 ] || { cat "$err"; return 1; }
		nothing_lost
		judged || { echo "with a $kind root"; return 1; }
	done
}

@test "leaks: jemalloc: a tree of three levels says what is free, too (T8)" {
	local kind
	for kind in wide wide-old; do
		traced -- "$T/like_jemalloc" "$kind"
		judged
	done
}

@test "leaks: mimalloc: the address of the first block of a page in the books holds no block (T8)" {
	traced -- "$T/like_mimalloc" traced
	is .scan.definite.blocks 1
}

# bats test_tags=full
@test "leaks: run: GLib: objects behind private data, and pointers in 32 bits in hash tables, are held" {
	local program kind blocks function wrong=0
	export G_SLICE=always-malloc
	for program in glib_objects glib_objects-nopie; do
		"$T/$program" >/dev/null || { [ $? -eq 77 ] && skip "libgobject-2.0.so.0 is not installed"; return 1; }
		traced -- "$T/$program"
		nothing_lost
		[ "$(grep -c '^expect' "$out")" -eq 3 ]
		while read -r _ kind blocks function; do
			equal "$program: $kind blocks of $function" "$(of_function "$function" "$kind.blocks")" "$blocks"
		done < <(grep '^expect' "$out")
	done
	return "$wrong"
}

# every_kind_of VARIANT...: those that were built have the right verdicts
every_kind_of() {
	local v tried=0 FIXED_ADDRESSES
	FIXED_ADDRESSES=$(addresses_can_be_fixed)
	for v in "$@"; do
		[ -x "$T/leak_kinds$v" ] || { echo "# leak_kinds$v was not built" >&3; continue; }
		tried=$((tried + 1))
		traced -- "$T/leak_kinds$v" _exit
		[ "$status" -eq 3 ]
		nothing_lost
		judged || { echo "of leak_kinds$v"; return 1; }
	done
	[ "$tried" -gt 0 ]
}

# bats test_tags=ptrace
@test "leaks: run: every kind, 32 bits" {
	not_by_inline "32-bit programs are refused"
	needs_target leak_kinds-32
	every_kind_of -32 -32-static
}

# bats test_tags=full
@test "leaks: run: every kind, static, position-dependent, stripped, musl" {
	local v FIXED_ADDRESSES
	every_kind_of -static -static-pie -nopie -musl -musl-static
	FIXED_ADDRESSES=$(addresses_can_be_fixed)
	# Without names: the same sums.
	traced -- "$T/leak_kinds" _exit
	v=$(sums)
	traced -- "$T/leak_kinds-stripped" _exit
	[ "$(sums)" = "$v" ]
}

# bats test_tags=full
@test "leaks: run: C++: strings, maps, arrays, second base classes" {
	traced -- "$T/leak_cpp"
	[ "$status" -eq 0 ]
	judged
}

@test "leaks: run: sums over stacks are the sums of the scan, and all live blocks have a verdict" {
	traced -- "$T/leak_kinds"
	jq -e '.processes[0] as $p | $p.scan as $s
		| all(("definite", "indirect", "possible", "reachable", "unsure");
			. as $k | ([$p.stacks[][$k].blocks] | add) == $s[$k].blocks and ([$p.stacks[][$k].bytes] | add) == $s[$k].bytes)
		and ([$s.definite, $s.indirect, $s.possible, $s.reachable, $s.unsure | .blocks] | add) == $p.totals.live_blocks
		and ([$p.stacks[].indirect_through.bytes] | add) == $s.indirect.bytes' "$report"
	[ "$(of_function list_head indirect_through.blocks)" -eq 9 ]
}

# bats test_tags=full
@test "leaks: attach: a process that ends is judged at its end, as under run" {
	local how
	with_bpf_only "a process that calls _exit() is waited for by BPF"
	unset HEAPTAP_NO_CODE
	for how in "bpf" "inline" "bpf -f" "inline -f"; do
		# serve does not follow children by inline.
		! by_connect || [ "$how" != "inline -f" ] || continue
		kinds
		# shellcheck disable=SC2086
		patient -b $how "$TARGET"
		built
		tell
		ended "$TARGET" 3
		ended "$TAP" 0
		judged || { echo "by $how"; return 1; }
		is .scan.partial true
		is .exit.code 3
	done
}

# killed BACKEND SIGNAL [OPTIONS]: a signal ends a process that heaptap has attached to
killed() {
	kinds
	patient -b "$1" "${@:3}" "$TARGET"
	built
	[ $# -le 2 ] || wait_for has_lost
	kill "-$2" "$TARGET"
	ended "$TARGET" $((128 + $2))
	ended "$TAP" 0
	is .exit.signal "$2"
}

# has_lost: the report of now has blocks that are lost
has_lost() { jq -e '.processes[0].scan.definite.blocks > 0' "$report"; }

# bats test_tags=full
@test "leaks: attach by ptrace: a process that ends, by itself or by a signal, is judged at its end" {
	local signal
	for signal in 15 9 11; do
		killed ptrace "$signal"
		judged || { echo "by signal $signal"; return 1; }
	done
	kinds
	patient -b ptrace "$TARGET"
	built
	tell
	ended "$TARGET" 3
	ended "$TAP" 0
	judged
	is .exit.code 3
}

# Where the kernel has no probes of its own functions, nothing can be done, and the report says so.
@test "leaks: attach: a process that a signal ends has its verdict, or its report says that it has none" {
	local backend signal name=([15]=SIGTERM [9]=SIGKILL [11]=SIGSEGV)
	with_bpf_only "the kernel's own functions have probes by BPF"
	unset HEAPTAP_NO_CODE
	for backend in bpf inline; do
		for signal in 15 9 11; do
			killed "$backend" "$signal"
			if [ -e /sys/bus/event_source/devices/kprobe ]; then
				judged || { echo "by $backend, signal $signal"; return 1; }
			else
				[[ $(field .verdict) == "no leak verdict: ended by ${name[signal]}, and its last state was not judged (--backend ptrace judges it); "*" live in "* ]]
				is .scan null
			fi
		done
	done
	[ ! -e /sys/bus/event_source/devices/kprobe ] || return 0
	killed bpf 9 --scan -i 300ms
	[[ $(field .verdict) == "no leak verdict: ended by SIGKILL, "*"; the verdict before that: leaks 1,442 B in 10 blocks, and with them 848 B in 13; "* ]]
}

# bats test_tags=ptrace
@test "leaks: attach: heaptap cannot look at a process that ends: it ends all the same" {
	kinds
	patient "$TARGET"
	built
	kill -STOP "$TAP"
	tell
	ended "$TARGET" 3
	kill -CONT "$TAP"
	ended "$TAP" 0
	is .scan null
}

# bats test_tags=ptrace
@test "leaks: attach: every kind" {
	kinds
	patient "$TARGET"
	built
	detach
	judged
	is .scan.partial true
	untouched "$TARGET"
	tell
	ended "$TARGET" 3
}

# copied_by WAY: the verdicts come from a copy that is made this way, and nothing is left of it
copied_by() {
	[ "$(uname -m)" = x86_64 ] || skip "processes are copied on x86_64 only"
	kinds
	patient "${@:2}" --snapshot "$1" "$TARGET"
	built
	detach
	! grep "no $1: .*this CPU or kernel cannot do it" "$err" || skip "this kernel cannot do it"
	judged
	is .scan.copied true
	is .scan.partial true
	[ -z "$(cat "/proc/$TARGET/task/$TARGET/children")" ]
	no_line '^VmFlags:.* uw' "/proc/$TARGET/smaps"
	no_line userfaultfd <(ls -l "/proc/$TARGET/fd")
	untouched "$TARGET"
	tell
	ended "$TARGET" 3
}

# bats test_tags=ptrace,inline,full
@test "leaks: attach --snapshot fork: every kind, read from a copy; the target has no child afterwards (A12)" {
	copied_by fork
}

@test "leaks: attach --snapshot precopy: every kind, copied while it runs; the target is not watched afterwards (A12)" {
	copied_by precopy
}

# bats test_tags=full
@test "leaks: attach --backend ptrace --snapshot fork: the thread that traces it lets it fork (A4, A12)" {
	copied_by fork --backend ptrace
}

# bats test_tags=full
@test "leaks: attach --backend ptrace --snapshot precopy: every kind (A4, A12)" {
	copied_by precopy --backend ptrace
}

# bats test_tags=full
@test "leaks: attach --follow --snapshot fork: the copy is no child that is followed" {
	copied_by fork --follow
	[ "$(jq '.processes | length' "$report")" -eq 1 ]
	is .lost.other 0
}

# run_copied_by WAY [OPTIONS]: a program that heaptap started is asked for a verdict while it runs, from a copy
run_copied_by() {
	[ "$(uname -m)" = x86_64 ] || skip "processes are copied on x86_64 only"
	out=$BATS_TEST_TMPDIR/leak_kinds.out err=$BATS_TEST_TMPDIR/bash.err report=$BATS_TEST_TMPDIR/asked.json
	mkfifo "$BATS_TEST_TMPDIR/lines"
	start bash -c "exec '$HEAPTAP' run ${*:2} --snapshot $1 --max-pause 60s -o '$BATS_TEST_TMPDIR/last.json' -- \
		'$T/leak_kinds' wait <'$BATS_TEST_TMPDIR/lines' >'$out'"
	TAP=$PID
	exec 7>"$BATS_TEST_TMPDIR/lines"
	wait_for grep -qs ready "$out"
	built
	TARGET=$(pgrep -P "$TAP" -x leak_kinds)
	"$HEAPTAP" scan -o "$report" "$TARGET"
	! grep "no $1: .*this CPU or kernel cannot do it" "$err" || skip "this kernel cannot do it"
	judged
	is .scan.copied true
	[ -z "$(cat "/proc/$TARGET/task/$TARGET/children")" ]
	no_line '^VmFlags:.* uw' "/proc/$TARGET/smaps"
	no_line userfaultfd <(ls -l "/proc/$TARGET/fd")
	tell
	ended "$TAP" 3
	report=$BATS_TEST_TMPDIR/last.json
	judged
	[ "$(jq '.processes | length' "$report")" -eq 1 ]
}

# bats test_tags=full
@test "leaks: run --snapshot fork: a verdict while the program runs, read from a copy (A12)" { run_copied_by fork; }
# bats test_tags=full
@test "leaks: run --snapshot precopy: a verdict while the program runs, copied ahead (A12)" { run_copied_by precopy; }
# bats test_tags=full
@test "leaks: run --follow --snapshot fork: the copy is no child (A12)" { run_copied_by fork --follow; }
# bats test_tags=full
@test "leaks: run --backend ptrace --follow --snapshot fork: the guardian lets it fork (A12)" {
	run_copied_by fork --backend ptrace --follow
}
# bats test_tags=full
@test "leaks: run --backend ptrace --follow --snapshot precopy: a verdict while the program runs (A12)" {
	run_copied_by precopy --backend ptrace --follow
}

# bats test_tags=full
@test "leaks: --snapshot of a program whose seccomp filter kills for the call: it stands instead (E6)" {
	local way backend
	[ "$(uname -m)" = x86_64 ] || skip "processes are copied on x86_64 only"
	start "$T/confined" no-fork
	TARGET=$PID
	wait_for says confined ready
	for backend in bpf ptrace; do
		for way in fork precopy; do
			patient --backend "$backend" --snapshot "$way" "$TARGET"
			detach
			untouched "$TARGET"
		done
	done
	# The tracer of the last one could not suspend the filter.
	by_connect || grep -q "no precopy: a seccomp filter forbids it, and heaptap may not suspend the filter" "$err"
}

@test "leaks: --max-memory: no verdict that takes more, and a line says so before" {
	not_by_connect "the memory of connect is not that of the scan"
	traced --max-memory 10M -- "$T/leak"
	[ "$status" -eq 0 ]
	grep -q "no verdict: it takes about .* of heaptap's memory, and --max-memory leaves [0-9.]* MiB" "$err"
	has_note 'scan given up: it takes more memory than --max-memory allows'
	traced --max-memory 1G -- "$T/leak"
	[ "$(field .scan.definite.blocks)" -gt 0 ]
}

# bats test_tags=full
@test "leaks: memcheck gives the same sums" {
	local program
	for program in leak leak_kinds leak_cpp; do
		traced -- "$T/$program"
		equal "sums of $program" "$(sums)" "$(sums_of_memcheck "$T/$program")"
		[ "${wrong:-0}" -eq 0 ]
	done
}

# bats test_tags=full
@test "leaks: memcheck, stack by stack" {
	local program
	command -v perl >/dev/null || skip "perl is not installed"
	perl -MJSON::PP -e1 2>/dev/null || skip "perl has no JSON::PP"
	for program in leak leak_kinds leak_cpp; do
		run env HEAPTAP="$HEAPTAP" "$ROOT/tests/leaks/memcheck.pl" -v "$T/$program"
		echo "$output"
		[ "$status" -eq 0 ]
		[[ $output == *' 0 differ'* ]]
	done
}

# bats test_tags=full
@test "leaks: real programs have no definite leak that memcheck does not see" {
	local program command have want
	cd "$BATS_TEST_TMPDIR"
	for program in "perl -e 'print join(\",\", map { \$_ * 2 } 1 .. 1000)'" \
		"python3 -S -c 'print(sorted({str(i): i for i in range(2000)})[:3])'" \
		"sqlite3 :memory: 'create table t(a); insert into t values(1),(2); select sum(a) from t;'" \
		"git -C $ROOT log --oneline -50" "sed -n 1,50p $ROOT/README.md" "bash -c 'a=(1 2 3); for i in \${a[@]}; do echo \$i; done'"; do
		command=${program%% *}
		command -v "$command" >/dev/null || { echo "# $command is not installed: left out" >&3; continue; }
		eval "traced -- $program"
		[ "$status" -eq 0 ] || { cat "$err"; return 1; }
		have=$(sums)
		[ "$(blocks_in definite "$have")" -gt 0 ] || continue
		want=$(eval "sums_of_memcheck $program")
		[ "$(blocks_in definite "$have")" -le "$(blocks_in definite "$want")" ] || { echo "$program: $have; memcheck: $want"; return 1; }
	done
}

# bats test_tags=core,ptrace,inline
@test "leaks: exit of a program with many threads" {
	traced -- "$T/threads" 200 50
	[ "$status" -eq 0 ]
	is .notes '[]'
	is .scan.unstopped_threads 0
}

# ---- when ----

@test "leaks: --no-scan: no verdict, no note" {
	traced --no-scan -- "$T/leak_kinds"
	is .scan null
	is .notes '[]'
}

# bats test_tags=full
@test "leaks: each report of --interval has one with --scan, else the last alone" {
	spinning
	attached -i 100ms --max-pause 60s --scan -o "$BATS_TEST_TMPDIR/each.%n.json" "$TARGET"
	wait_for test -s "$BATS_TEST_TMPDIR/each.3.json"
	detach
	jq -e '.processes[0].scan != null' "$BATS_TEST_TMPDIR"/each.*.json
	attached -i 100ms --max-pause 60s -o "$BATS_TEST_TMPDIR/last.%n.json" "$TARGET"
	wait_for test -s "$BATS_TEST_TMPDIR/last.3.json"
	detach
	jq -se '(map(.processes[0].scan != null) | .[-1] and (.[0:-1] | any | not)) and length > 1' "$BATS_TEST_TMPDIR"/last.*.json
	untouched "$TARGET"
}

# bats test_tags=full
@test "leaks: run: verdicts while the program runs, and it goes on" {
	local n
	out=$BATS_TEST_TMPDIR/leak_kinds.out
	mkfifo "$BATS_TEST_TMPDIR/lines"
	start bash -c "exec '$HEAPTAP' run --scan --max-pause 60s -i 200ms -o '$BATS_TEST_TMPDIR/r.%n.json' -- '$T/leak_kinds' wait \
		<'$BATS_TEST_TMPDIR/lines' >'$out'"
	exec 7>"$BATS_TEST_TMPDIR/lines"
	wait_for grep -qs ready "$out"
	built
	# One report may be under way; the next one is of what was built.
	n=$(find "$BATS_TEST_TMPDIR" -name 'r.*.json' | wc -l)
	report=$BATS_TEST_TMPDIR/r.$((n + 2)).json
	wait_for test -e "$report"
	judged
	tell
	ended "$PID" 3
}

# lost_before_exec: the first process has lost all that it lost before its exec, and nothing else
lost_before_exec() {
	nothing_lost
	jq -e '.processes[0].scan.definite == { blocks: 4, bytes: 350 }' "$report"
}

# bats test_tags=core,ptrace,inline
@test "leaks: a program has a verdict before exec replaces it, and its successor has one" {
	local kind
	traced -f -- "$T/exec_leak" "$T/leak"
	lost_before_exec
	jq -e '.processes | length == 2 and .[0].replaced and .[1].scan != null' "$report"
	# From another thread, by fexecve(), by execveat().
	for kind in -t -f -a; do
		traced -f -- "$T/exec_leak" "$kind" "$T/exec_leak" "$T/exitcodes" exit 3
		# By connect the status is that of the first program.
		by_connect || [ "$status" -eq 3 ]
		lost_before_exec || { echo "$kind"; return 1; }
		jq -e '.processes[1].scan.definite.blocks == 4' "$report"
	done
	# No probe sees a bare system call.
	traced -f -- "$T/exec_leak" -s "$T/exitcodes" exit 3
	by_connect || [ "$status" -eq 3 ]
	by_connect || jq -e '.processes[0].notes[0] == "no leak verdict: it became another program (--follow judges it before, where it can)"' "$report"
	# Blocks that are gone fail no rule.
	traced -f --fail-on leaks -- "$T/exec_leak" "$T/nothing"
	[ "$status" -eq 0 ]
}

# The verdicts of exec calls that fail are none of the end.
# bats test_tags=ptrace,inline
@test "leaks: exec calls that fail, and those of children, change no verdict of the process" {
	local kind
	for kind in -c -v; do
		traced -f -- "$T/exec_leak" "$kind" "$T/exec_leak" "$T/exitcodes" exit 0
		[ "$status" -eq 0 ]
		nothing_lost
		jq -e '[.processes[] | select(.comm == "exec_leak") | .scan.definite.blocks] == [4, 4]' "$report"
	done
}

# executing LETTERS [OPTIONS]: attach to exec_leak, which then loses blocks and becomes another program
executing() {
	coproc EXECUTING { exec "$T/exec_leak" "-w$1" "$T/exitcodes" exit 3 3>&-; }
	TARGET=$EXECUTING_PID
	STARTED+=("$TARGET")
	read -r -t 120 _ <&"${EXECUTING[0]}"
	attached "${@:2}" "$TARGET"
	echo >&"${EXECUTING[1]}"
	ended "$TARGET" 3
	ended "$TAP" 0
}

# judged_before_exec LETTERS OPTIONS: such a process has its verdict. Where nobody traces it, it waits for a moment only,
# on a CPU that heaptap may need: then the report says that it has none.
judged_before_exec() {
	local i
	for i in {1..20}; do
		executing "$@"
		nothing_lost
		jq -e '.processes | length == 2 and .[0].replaced and .[1].exit == { code: 3 }' "$report"
		! lost_before_exec || return 0
		jq -c "[.processes[]|[.pid,.verdict,.notes,.scan.definite]]" "$report"
		jq -e '.processes[0].notes == ["no leak verdict: it became another program (--follow judges it before, where it can)"]' "$report"
	done
	echo "no verdict in $i traces: $*"
	return 1
}

# bats test_tags=core,ptrace,inline
@test "leaks: attach: a followed program has a verdict before exec replaces it" {
	local kind
	for kind in '' t f a; do
		judged_before_exec "$kind" -f
	done
	# The source is an option of serve.
	! by_connect || return 0
	unset HEAPTAP_NO_CODE
	for kind in -bbpf -binline -bptrace -bauto; do
		judged_before_exec '' -f "$kind"
	done
	executing '' -b ptrace
	lost_before_exec
}

# bats test_tags=ptrace,inline
@test "leaks: without --follow, there is a verdict before an exec by ptrace alone, and exec calls of children change none" {
	traced -- "$T/exec_leak" -c "$T/exitcodes" exit 0
	jq -e '.processes[0].scan.definite.blocks == 4' "$report"
	traced -- "$T/exec_leak" -v "$T/exitcodes" exit 0
	jq -e '.processes[0] | .totals.allocs == 6 and .lost.other == 0 and .scan.definite.blocks == 4' "$report"
	traced -b bpf -- "$T/exec_leak" "$T/leak"
	jq -e '.processes[0].notes[0] == "no leak verdict: it became another program (--follow judges it before, where it can)"' "$report"
	traced -b ptrace -- "$T/exec_leak" "$T/leak"
	lost_before_exec
}

# ---- suppressions, findings ----

# bats test_tags=core
@test "leaks: suppressions that the program has in itself for LeakSanitizer" {
	[ "$(uname -m)" = x86_64 ] || skip "the function is read on x86_64 only"
	traced -w "$BATS_TEST_TMPDIR/r.heaptap" -- "$T/own_rules"
	judged
	is .scan.suppressed.blocks 5
	"$HEAPTAP" report -q -o "$BATS_TEST_TMPDIR/r.json" "$BATS_TEST_TMPDIR/r.heaptap"
	jq -e '.processes[0].scan.suppressed.blocks == 5' "$BATS_TEST_TMPDIR/r.json"
	traced --no-default-suppressions -- "$T/own_rules"
	is .scan.suppressed.blocks 0
	is .scan.definite.blocks 6
}

# lost_by_unknown: each block that the program did not declare to be no leak, and no other, is lost
lost_by_unknown() {
	judged
	is .scan.definite.blocks 3
	is .scan.definite.bytes 3090
	is .scan.indirect.blocks 0
}

# lost_by_known: how many of the declared blocks are lost
lost_by_known() {
	jq '[.processes[0].stacks[] | select(any(.frames[]; .function == "known")) | .definite.blocks + .indirect.blocks] | add // 0' "$report"
}

# bats test_tags=core
@test "leaks: blocks that the program declares to be no leaks (__lsan_ignore_object, __lsan_disable)" {
	traced -- "$T/ignores"
	lost_by_unknown
	traced --backend ptrace -- "$T/ignores"
	lost_by_unknown
	traced --no-default-suppressions -- "$T/ignores"
	is .scan.definite.blocks 6
	is .scan.indirect.blocks 1
	gcc -g -O1 -fsanitize=leak -DHAS_LSAN "-I$ROOT" -pthread -o "$BATS_TEST_TMPDIR/ignores" "$ROOT/tests/targets/ignores.c" 2>"$BATS_TEST_TMPDIR/why" ||
		skip "gcc cannot link -fsanitize=leak: $(head -1 "$BATS_TEST_TMPDIR/why")"
	traced -- "$BATS_TEST_TMPDIR/ignores"
	[ "$(lost_by_known)" -eq 0 ]
	traced --no-default-suppressions -- "$BATS_TEST_TMPDIR/ignores"
	[ "$(lost_by_known)" -gt 0 ]
}

# bats test_tags=full
@test "leaks: --suppressions, --ignore, the config file: left out and counted" {
	local rules=$BATS_TEST_TMPDIR/rules
	printf 'leak:lose_plain\n{\n  list\n  Memcheck:Leak\n  fun:calloc\n  fun:list_head\n  ...\n}\n' >"$rules"
	traced --suppressions "$rules" --ignore 'sharing_h.ad' -- "$T/leak_kinds"
	is .scan.definite.blocks 2
	is .scan.indirect.blocks 3
	is .scan.suppressed.blocks 18
	[ "$(of_function lose_plain suppressed.bytes)" -eq 500 ]
	echo "ignore lose_plain" >"$BATS_TEST_TMPDIR/config"
	traced --config "$BATS_TEST_TMPDIR/config" -- "$T/leak_kinds"
	is .scan.suppressed.blocks 5
	run "$HEAPTAP" run --suppressions "$rules" -- "$T/leak_kinds"
	[[ $output == *'suppressed: 15 blocks'* ]]
	echo "{" >"$rules"
	run "$HEAPTAP" run --suppressions "$rules" -- "$T/leak_kinds"
	[ "$status" -eq 2 ]
}

# bats test_tags=full
@test "leaks: --gen-suppressions writes what suppresses them all, for heaptap and for valgrind" {
	local rules=$BATS_TEST_TMPDIR/rules
	"$HEAPTAP" run --gen-suppressions -o "$rules.txt" -o "$rules.supp" -- "$T/leak_kinds" >/dev/null
	sed -n '/^{/,/^}/p' "$rules.txt" >"$rules"
	# The file of rules has these, and no more than the answer beside them; a report is refused and told of it.
	[ "$(sed 1d "$rules.supp")" = "$(<"$rules")" ]
	grep -q '^# PID [0-9]*: leaks ' "$rules.supp"
	run -2 "$HEAPTAP" run --suppressions "$rules.txt" -- true
	[[ $output == *"$rules.txt:1: no file of rules alone, as heaptap -o FILE.supp writes it" ]]
	traced --suppressions "$rules.supp" -- "$T/leak_kinds"
	is .scan.definite.blocks 0
	is .scan.indirect.blocks 0
	is .scan.possible.blocks 0
	run valgrind --leak-check=full --error-exitcode=9 --suppressions="$rules.supp" "$T/leak"
	[[ $output != *'Fatal error in suppressions'* ]]
}

# bats test_tags=full
@test "leaks: of a cycle the block leads that was allocated first, also within a millisecond" {
	local server
	traced -- "$T/cycles"
	[ "$status" -eq 0 ]
	[ "$(of_function make_old definite.blocks)" -eq 40 ]
	[ "$(of_function make_young indirect.blocks)" -eq 40 ]
	# Over a connection the other side finds the verdict.
	mkdir -m 700 "$BATS_TEST_TMPDIR/sock"
	start "$HEAPTAP" serve --wait --listen "unix:$BATS_TEST_TMPDIR/sock/s" -- "$T/cycles"
	server=$PID
	wait_for grep -qs 'heaptap connect' "$BATS_TEST_TMPDIR/heaptap.err"
	"$HEAPTAP" connect -q --sysroot / --force -o "$report" "unix:$BATS_TEST_TMPDIR/sock/s"
	wait_for gone "$server"
	[ "$(of_function make_old definite.blocks)" -eq 40 ]
	[ "$(of_function make_young indirect.blocks)" -eq 40 ]
}

@test "leaks: --fail-on and --error-exitcode" {
	local found=99
	! by_connect || found=1 # as attach
	traced --fail-on definite -- "$T/leak_kinds"
	[ "$status" -eq "$found" ]
	traced --error-exitcode 7 -- "$T/leak_kinds" _exit
	[ "$status" -eq 7 ]
	traced --fail-on definite:1M --error-exitcode 7 -- "$T/leak_kinds" _exit
	[ "$status" -eq 3 ]
	traced --fail-on definite:2290 -- "$T/leak_kinds"
	[ "$status" -eq "$found" ]
	traced --fail-on definite:2291 -- "$T/leak_kinds"
	[ "$status" -eq 0 ]
	traced --fail-on definite -- "$T/nothing"
	[ "$status" -eq 0 ]
	traced --fail-on definite --ignore main --ignore thread_main -- "$T/leak_kinds"
	[ "$status" -eq 0 ]
	run "$HEAPTAP" run --fail-on everything -- "$T/leak_kinds"
	[ "$status" -eq 2 ]
}

# bats test_tags=core
@test "leaks: attach: --fail-on ends with 1" {
	kinds
	patient --fail-on definite "$TARGET"
	built
	kill -INT "$TAP"
	ended "$TAP" 1
}

# bats test_tags=core
@test "leaks: the text report: leaks first, worst first" {
	run --separate-stderr "$HEAPTAP" run -n 2 -- "$T/leak_kinds"
	[[ $stderr == 'leaks 1,442 B in 10 blocks, and with them 848 B in 13,'$'\n''    the largest part from sharing_head (leak_kinds.c:'*')'$'\n''leak_kinds (pid '* ]]
	[[ $stderr == *'Top 2 of 6 callers with leaks'*'Possibly leaked (-v lists the callers)'*'Still in use: top 2 of '*' callers by live bytes'*'1,442 B in 10 blocks definite, 848 B in 13 blocks indirect'* ]]
	run --separate-stderr "$HEAPTAP" run -s leaked-bytes -n 0 -- "$T/leak_kinds"
	[[ $stderr != *'by live bytes'* ]]
	[[ $stderr == *'48 B leaked in 1 block, and with it another 432 B in 9 blocks'* ]]
}

# bats test_tags=full
@test "leaks: the text report: the verdict comes first, also behind wrappers and with several processes" {
	local text=$BATS_TEST_TMPDIR/r.txt
	"$HEAPTAP" run -q -o "$text" -- bash -c "exec bash -c 'exec \"$T/leak_kinds\"'" >/dev/null
	unbroken <"$text" | grep -q '^leaks 1,442 B in 10 blocks, and with them 848 B in 13, the largest part from sharing_head (leak_kinds.c:[0-9]*) leak_kinds (pid '
	[ "$(grep -c '^#1 ' "$text")" -eq 1 ]
	tail -3 "$text" | head -1 | grep -q '^2 programs that became another one; -v has their details$'
	"$HEAPTAP" run -q --force -v -o "$text" -- bash -c "exec '$T/leak_kinds'" >/dev/null
	[ "$(grep -c '^#1 ' "$text")" -eq 2 ]
	"$HEAPTAP" run -q --force -f -o "$text" -- bash -c "'$T/leak_kinds'; '$T/nothing'; true" >/dev/null
	head -2 "$text" | unbroken | grep -Eq '^leaks [0-9.,]+ K?i?B in [0-9,]+ blocks(, and with (it|them) .*)?, in [1-3] of 3 processes; .* live '
}

@test "leaks: the first example of heaptap-leaks(7) is what a reader gets" {
	local text=$BATS_TEST_TMPDIR/r.txt line nr=0
	"$HEAPTAP" run -q -n 1 -o "$text" -- "$T/leak" >/dev/null
	while IFS= read -r line; do
		grep -qxF -- "$line" "$ROOT/man/heaptap-leaks.7" || { echo "not in the manual: $line"; return 1; }
		nr=$((nr + 1))
	done < <(sed -n '1,2p;5p;7,8p' "$text")
	[ "$nr" -eq 5 ]
}

# bats test_tags=full
@test "leaks: ruby, which drops its objects at its end: the report says so, unless ruby was killed or runs" {
	local library=$BATS_TEST_TMPDIR/libruby-9.9.so.9.9
	objcopy "$T/libinfo.so" "$library"
	LD_PRELOAD=$library "$HEAPTAP" run -q -o "$BATS_TEST_TMPDIR/r.txt" -o "$BATS_TEST_TMPDIR/r.json" -- "$T/leak_kinds" >/dev/null
	head -3 "$BATS_TEST_TMPDIR/r.txt" | grep -q '^ruby leaves what its objects held when it ends: see RUBY in heaptap-leaks(7)$'
	[ "$(grep -c 'ruby leaves' "$BATS_TEST_TMPDIR/r.txt")" -eq 1 ]
	[ "$(jq '[.processes[0].notes[] | select(startswith("ruby leaves"))] | length' "$BATS_TEST_TMPDIR/r.json")" -eq 1 ]
	man "$ROOT/man/heaptap-leaks.7" | grep -q '^RUBY$'
	LD_PRELOAD=$library kinds
	patient -o "$BATS_TEST_TMPDIR/a.txt" "$TARGET"
	built
	kill -INT "$TAP"
	ended "$TAP" 0
	head -1 "$BATS_TEST_TMPDIR/a.txt" | grep -q '^leaks '
	fails grep -q 'ruby leaves' "$BATS_TEST_TMPDIR/a.txt"
}

@test "leaks: --fail-on says at the end what it found" {
	run --separate-stderr "$HEAPTAP" run -q -o "$BATS_TEST_TMPDIR/r.txt" --fail-on definite:1K --fail-on errors -- "$T/leak_kinds"
	[ "$status" -eq 99 ]
	[ "${stderr_lines[-1]}" = 'heaptap: run: FAILED: leaks 1,442 B in 10 blocks, and with them 848 B in 13 (--fail-on definite, limit 1,024 B); 0 wrong releases (--fail-on errors)' ]
	run --separate-stderr "$HEAPTAP" run -o "$BATS_TEST_TMPDIR/s.txt" --fail-on definite:1M -- "$T/leak_kinds"
	[ "$status" -eq 0 ]
	[ "${stderr_lines[-1]}" = 'heaptap: run: passed: leaks 1,442 B in 10 blocks, and with them 848 B in 13 (--fail-on definite, limit 1.00 MiB)' ]
}

# bats test_tags=full
@test "leaks: what an allocator loses itself is suppressed, unless --no-default-suppressions is given" {
	local lib
	lib=$(ldconfig -p | awk '/libtcmalloc_minimal.so.4 / { print $NF; exit }')
	[ -n "$lib" ] || skip "libtcmalloc_minimal is not installed"
	run --separate-stderr env LD_PRELOAD="$lib" "$HEAPTAP" run --fail-on definite -- "$T/nothing"
	[ "$status" -eq 0 ]
	[[ $stderr == 'no leaks'*'suppressed: 1 block (8 B)'* ]]
	run --separate-stderr env LD_PRELOAD="$lib" "$HEAPTAP" run --no-default-suppressions --fail-on definite -- "$T/nothing"
	[ "$status" -eq 99 ]
	[[ $stderr == *'MallocExtension::Register'* ]]
}

# bats test_tags=full
@test "leaks: the loader's own list of mapped objects is suppressed, unless --no-default-suppressions is given" {
	local imports='import bz2, ctypes, decimal, lzma, sqlite3, ssl'
	python3 -c "$imports" || skip "this python3 lacks modules"
	run --separate-stderr "$HEAPTAP" run --no-default-suppressions -v -- python3 -c "$imports"
	[[ $stderr == *_dl_find_object_update* ]] || skip "no dl_find_object here (glibc before 2.35), or a loader without symbols"
	[[ $stderr == *'possibly leaked'* ]]
	run --separate-stderr "$HEAPTAP" run -v -- python3 -c "$imports"
	[[ $stderr != *_dl_find_object_update* ]]
	[[ $stderr == *'suppressed: '* ]]
}

# ---- a service ----

# redis: a server with plug_leak.so in it, under load; its pid is in $TARGET
redis() {
	local socket=$BATS_TEST_TMPDIR/redis
	command -v redis-server >/dev/null || skip "redis-server is not installed"
	command -v redis-benchmark >/dev/null || skip "redis-benchmark is not installed"
	start env LD_PRELOAD="$T/plug_leak.so" "$@" redis-server --port 0 --unixsocket "$socket" --save "" --dir "$BATS_TEST_TMPDIR"
	TARGET=$PID
	wait_for redis-cli -s "$socket" ping
	start redis-benchmark -s "$socket" -q -n 100000000 -r 20000 -t set,lpush,hset,sadd
}

has_found() { jq -se 'any(.[].processes[0].scan; .definite.blocks > 0)' "$BATS_TEST_TMPDIR"/r.*.json >/dev/null 2>&1; }

# In the first report, where the machine lets the leaking thread run often enough.
# bats test_tags=full
@test "leaks: redis under load with a planted leak: found, nothing else" {
	local last
	redis HEAPTAP_PLUG_LEAK=1
	patient --scan -i 3s -o "$BATS_TEST_TMPDIR/r.%n.json" "$TARGET"
	wait_for has_found
	detach
	last=$(ls -v "$BATS_TEST_TMPDIR"/r.*.json | tail -1)
	for report in "$BATS_TEST_TMPDIR"/r.*.json; do
		# Where heaptap is slow, Ctrl-C breaks the last verdict off, which is said.
		if [ "$report" = "$last" ] && [ "$(field .scan)" = null ]; then
			has_note '^scan given up: tracing ended meanwhile'
			continue
		fi
		is .notes '[]'
		[ "$(of_function plug_keeps definite.blocks)" -eq 0 ]
		[ "$(of_function plug_forgets definite.blocks)" -eq "$(field .scan.definite.blocks)" ]
	done
	untouched "$TARGET"
}

# bats test_tags=full
@test "leaks: redis under load without it: nothing definite" {
	redis NOTHING=1
	run "$HEAPTAP" attach -q --scan --max-pause 60s -i 1s -t 5s -o "$BATS_TEST_TMPDIR/r.%n.json" "$TARGET"
	jq -se 'all(.[].processes[0]; .scan.definite.blocks == 0 and .notes == [])' "$BATS_TEST_TMPDIR"/r.*.json
	untouched "$TARGET"
}

# ---- bad moments ----

@test "leaks: --max-pause 1us: no verdict, a note, the target goes on (H5)" {
	kinds
	attached --max-pause 1us "$TARGET"
	built
	detach
	has_note 'scan given up: .*longer than 1 us'
	by_connect || grep -q "PID $TARGET: no verdict, and not stopped for one: that would take about .*; --max-pause .* allows it" "$err"
	untouched "$TARGET"
	tell
	ended "$TARGET" 3
}

# mapped HOW: bigmap under run, then attached to while it stands; verdicts as it says
mapped() {
	traced -- "$T/bigmap" "$1"
	[ "$status" -ne 77 ] || skip "$(cat "$out")"
	judged
	is .notes '[]'
	mkfifo "$BATS_TEST_TMPDIR/lines"
	out=$BATS_TEST_TMPDIR/bigmap.out
	start bash -c "exec '$T/bigmap' $1 wait <'$BATS_TEST_TMPDIR/lines' >'$out'"
	TARGET=$PID
	exec 7>"$BATS_TEST_TMPDIR/lines"
	wait_for grep -qs ready "$out"
	patient --force "$TARGET"
	built
	detach
	judged
	untouched "$TARGET"
	tell
	ended "$TARGET" 0
}

# bats test_tags=full
@test "leaks: memory that userfaultfd never fills: verdicts, and nobody waits for it (H1)" { mapped uffd; }

# bats test_tags=full
@test "leaks: 1 TiB mapped, little of it touched: verdicts within the pause (H6)" { mapped huge; }

# bats test_tags=full
@test "leaks: another tracer is named (A11)" {
	with_bpf_only "ptrace does not even attach then, see ptrace.bats"
	command -v gdb >/dev/null || skip "gdb is not installed"
	spinning
	attached --max-pause 2s "$TARGET"
	start gdb -q -batch -p "$TARGET" -ex 'shell touch '"$BATS_TEST_TMPDIR/traced"'; sleep 60'
	wait_for test -e "$BATS_TEST_TMPDIR/traced"
	detach
	has_note "traced by gdb \(PID [0-9]+\)"
	kill -KILL "$PID"
	wait_for gone "$PID"
	by_inline || return 0
	# gdb held the threads, so the code stays until the next heaptap.
	grep -q 'the probes stay in it, without effect: its threads cannot be stopped' "$err"
	"$HEAPTAP" attach -q --no-scan -t 100ms -o "$BATS_TEST_TMPDIR/next.json" "$TARGET"
	untouched "$TARGET"
}

@test "leaks: a stopped target stays stopped (A12)" {
	spinning
	patient "$TARGET"
	kill -STOP "$TARGET"
	detach
	jq -e '.processes[0].scan != null' "$report"
	[ "$(sed -n 's/^State:\t\(.\).*/\1/p' "/proc/$TARGET/status")" = T ]
	kill -CONT "$TARGET"
	wait_for untouched "$TARGET"
}

# bats test_tags=rounds,full
@test "leaks: the target is killed at a random moment of a scan: no verdict or one from before (A2)" {
	local i
	for ((i = 0; i < HEAPTAP_ROUNDS; i++)); do
		spinning
		attached --scan -i 100ms "$TARGET"
		sleep "0.$((RANDOM % 3))$((RANDOM % 10))"
		kill -KILL "$TARGET"
		ended "$TAP" 0 || { cat "$err"; return 1; }
		jq -e '.processes[0] | .scan == null or .scan.definite.blocks >= 0' "$report"
	done
}

# bats test_tags=rounds,full
@test "leaks: heaptap is killed at a random moment of a scan: the target runs on (A3)" {
	local i
	spinning
	for ((i = 0; i < HEAPTAP_ROUNDS; i++)); do
		attached --scan -i 100ms "$TARGET"
		sleep "0.$((RANDOM % 3))$((RANDOM % 10))"
		kill -KILL "$TAP"
		wait "$TAP" || true
		wait_for untouched "$TARGET"
	done
}

# bats test_tags=rounds,full
@test "leaks: heaptap run is killed while it copies its program: the program goes on with its own registers (A3)" {
	local i way
	for ((i = 0; i < HEAPTAP_ROUNDS; i++)); do
		way=fork
		[ $((i % 2)) -eq 0 ] || way=precopy
		start "$HEAPTAP" run --snapshot "$way" --scan -i 100ms -o "$BATS_TEST_TMPDIR/%n.json" --force -- "$T/steady"
		TAP=$PID
		wait_for test -s "$BATS_TEST_TMPDIR/2.json"
		TARGET=$(pgrep -P "$TAP" -x steady)
		STARTED+=("$TARGET")
		grep -h '"copied"' "$BATS_TEST_TMPDIR"/*.json >>"$BATS_TEST_TMPDIR/copied"
		sleep "0.$((RANDOM % 3))$((RANDOM % 10))"
		kill -KILL "$TAP"
		wait "$TAP" || true
		wait_for untouched "$TARGET"
		works "$TARGET"
		kill -TERM "$TARGET"
		wait_for gone "$TARGET"
		grep -qx right "$BATS_TEST_TMPDIR/heaptap.out"
		rm -f "$BATS_TEST_TMPDIR"/*.json
	done
	# Now and then a thread can carry out no call.
	grep -q true "$BATS_TEST_TMPDIR/copied" || skip "this machine makes no copies"
}

# bats test_tags=ptrace,full
@test "leaks: lost frees: what was alive is unsure, not leaked (F1)" {
	losing frees --ring-size 4K -d 0 -- "$T/threads" 8 20000
	is .scan.definite.blocks 0
}

@test "leaks: glibc's tables of threads that live, or were joined, are no leaks; those of forgotten threads may be" {
	getconf GNU_LIBC_VERSION >/dev/null 2>&1 || skip "not glibc here"
	traced -v -o "$BATS_TEST_TMPDIR/tables.txt" -- "$T/tables"
	grep -qx 'tables 8 forgotten 2' "$out"
	jq -e '[.processes[0].stacks[] | select([.frames[].function | strings | test("pthread_create")] | any)]
		| map(.live_blocks) | add == 8' "$report"
	is .scan.definite.blocks 0
	is .scan.possible.blocks 2
	is .scan.unsure.blocks 0
}

# bats test_tags=ptrace,inline,full
@test "leaks: --blocks: leaked blocks of each caller; --contents: what is in them" {
	not_by_connect "contents of memory stay on their machine"
	traced --blocks 2 --contents 32 -o "$BATS_TEST_TMPDIR/text.txt" -o "$BATS_TEST_TMPDIR/l.blocks.json" -- "$T/leak"
	sed -n '/^Leaked blocks$/,/^$/p' "$BATS_TEST_TMPDIR/text.txt" >"$BATS_TEST_TMPDIR/section"
	cat "$BATS_TEST_TMPDIR/section"
	[ "$(grep -c '^  malloc < copy_name < open_session$' "$BATS_TEST_TMPDIR/section")" -eq 1 ]
	[ "$(grep -cE '^    0x[0-9a-f]+ +24 B  indirect' "$BATS_TEST_TMPDIR/section")" -eq 2 ]
	# copy_name() has written a name there.
	[ "$(grep -cE '^      0000  75 73 65 72 .*  user[0-9]+\.' "$BATS_TEST_TMPDIR/section")" -eq 2 ]
	grep -oE '0x[0-9a-f]+' "$BATS_TEST_TMPDIR/section" | while read -r addr; do
		jq -e --arg a "$addr" 'any(.processes[0].blocks[]; .address == $a and (.verdict == "definite" or .verdict == "indirect"))' \
			"$BATS_TEST_TMPDIR/l.blocks.json" >/dev/null
	done
	traced -o "$BATS_TEST_TMPDIR/none.txt" -- "$T/leak"
	fails grep -q '^Leaked blocks' "$BATS_TEST_TMPDIR/none.txt"
}

@test "leaks: a program that has no block at its end has its verdict without a stop" {
	not_by_connect "the books are on the other side"
	traced -- true
	[ "$status" -eq 0 ]
	is .scan.definite.blocks 0
	is .scan.pause_ns 0
}
