#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# --backend inline: code inside the target, which is as before afterwards.

load ../lib/common

setup_file() {
	[ "$(uname -m)" = x86_64 ] || skip "the inline source knows x86_64 only"
}

# first_jump PID: the address of the first jump (0xe9) in mapped code that is not what the file says, in a copy of the
# code, or in the file's own pages where another program has breakpoints
first_jump() {
	local place
	place=$(text_differs "$1" | sed -n 's/.*, at \(0x[0-9a-f]*\), is 0351,.*/\1/p;T;q')
	[ -n "$place" ] || { text_differs "$1" >&2; return 1; }
	echo $((place))
}

# poke PID ADDRESS HEX: write one byte to its memory
poke() {
	python3 -c 'import sys
with open(f"/proc/{sys.argv[1]}/mem", "r+b", 0) as memory:
    memory.seek(int(sys.argv[2]))
    memory.write(bytes.fromhex(sys.argv[3]))' "$@"
}

equals_oracle() {
	counted -q --backend inline -- "$@"
	[ "$status" -eq 0 ] || { echo "status $status"; cat "$err"; return 1; }
	nothing_lost
	as_counted
	[ "$(jq -r .backend "$report")" = inline ]
}

# bats test_tags=core,full
@test "inline: run, realloc in all forms" { equals_oracle "$T/order"; }

# bats test_tags=full
@test "inline: run, 8 threads" { equals_oracle "$T/threads" 8 20000; }
# bats test_tags=full
@test "inline: run, 2000 threads" { equals_oracle "$T/threads" 2000 20; }
# bats test_tags=full
@test "inline: run, 5000 threads" { equals_oracle "$T/threads" 5000 20; }
# bats test_tags=full
@test "inline: run, all operators" { equals_oracle "$T/operators"; }
# bats test_tags=full
@test "inline: run, exceptions out of operator new" { equals_oracle "$T/exceptions"; }
# bats test_tags=full
@test "inline: run, signal handlers that allocate" { equals_oracle "$T/signals"; }
# The handler's stack is above the interrupted call, which has not ended, whatever the stack pointers say.
@test "inline: run, a handler on a higher stack interrupts malloc and allocates" {
	traced -q --backend inline -- "$T/altstack"
	[ "$status" -eq 0 ] || { echo "status $status"; cat "$err" "$out"; return 1; }
	grep -qx "expect calls malloc 100" "$out"
	# A call that seems to have ended is counted as lost.
	is " | .functions.malloc + .lost.other" 100
}

# The first call to return is not the one that began last.
@test "inline: run, an allocator that goes on with another coroutine (B9, C2)" {
	traced -q --backend inline -- "$T/coroutines" yield
	[ "$status" -eq 0 ] || { echo "status $status"; cat "$err" "$out"; return 1; }
	grep -qx "status 0" "$out"
}

# heaptap does not know this stack yet, and its end is below the data of the thread.
@test "inline: run, a new thread on a stack of its own whose frames lead into a guard page (C2, C4)" {
	traced -q --backend inline -- "$T/coroutines" guard
	[ "$status" -eq 0 ] || { echo "status $status"; cat "$err" "$out"; return 1; }
	grep -qx "status 0" "$out"
	nothing_lost
	is ' | any(.stacks[]; any(.frames[]; .function == "on_top"))' true
}

# bats test_tags=full
@test "inline: run, threads that are cancelled" { equals_oracle "$T/cancel"; }
# bats test_tags=full
@test "inline: run, a large C++ program" { equals_oracle llvm-nm "$(command -v llvm-nm)"; }

# Operators new that end in functions which they jump to, behind branches that leave no room for a jump (jemalloc,
# mimalloc), or whose last instruction is that of other operators, too (tcmalloc).
# bats test_tags=full
@test "inline: run, operators of jemalloc, mimalloc and tcmalloc" {
	local name file nr=0
	for name in libjemalloc libmimalloc libtcmalloc libtcmalloc_minimal; do
		file=$(ldconfig -p | awk -v name="$name.so" 'index($1, name) == 1 { print $NF; exit }')
		[ -n "$file" ] || continue
		LD_PRELOAD=$file HEAPTAP_TARGET_HOLD=1 traced -q --backend inline -- "$T/operators"
		[ "$status" -eq 0 ] || { echo "$name: status $status"; cat "$err"; return 1; }
		nothing_lost
		as_told live allocs failed unknown || { echo "$name"; return 1; }
		nr=$((nr + 1))
	done
	[ "$nr" -gt 0 ] || skip "none is installed"
}

# same_counts PROGRAM...: what must be the same by all sources, by BPF and by inline
same_counts() {
	local source
	for source in bpf inline; do
		traced -q --no-scan --backend "$source" -- "$@"
		[ "$(jq -r .backend "$report")" = "$source" ]
		jq -S '[.processes[] | .totals.allocs, .totals.frees, .totals.live_blocks, .totals.failed_allocs,
			.functions, .lost, .exit]' "$report" >"$BATS_TEST_TMPDIR/$source.counts"
	done
	is " | .totals.allocs > 0" true
	diff "$BATS_TEST_TMPDIR/bpf.counts" "$BATS_TEST_TMPDIR/inline.counts" || { echo "$*"; return 1; }
}

# bats test_tags=full
@test "inline: the counts of BPF: programs linked in all ways" {
	local variant
	for variant in "" -static -static-pie -nopie -stripped -musl -musl-static; do
		[ -x "$T/leak_kinds$variant" ] || { echo "# leak_kinds$variant is not built here" >&3; continue; }
		same_counts "$T/leak_kinds$variant"
		same_counts "$T/failed$variant"
	done
}

# Functions that begin with a call, end in padding, or have no room where they return.
@test "inline: the counts of BPF: functions that are hard to change" {
	same_counts "$T/own_operators"
}

# Functions of one or two bytes: a short jump leads to padding near them.
# bats test_tags=full
@test "inline: the counts of BPF: functions that are too short for a jump" {
	same_counts "$T/short"
	traced -q --backend inline -- "$T/short"
	nothing_lost
	as_told allocs live
}

# bats test_tags=full
@test "inline: attach to functions that are too short for a jump, and detach" {
	start "$T/short" wait
	TARGET=$PID
	wait_for says short ready
	attached --backend inline --no-scan "$TARGET"
	has_probes "$TARGET"
	kill -USR1 "$TARGET"
	wait_for says short "live 3"
	detach
	untouched "$TARGET"
	has_no_memory "$TARGET" || { cat "/proc/$TARGET/maps"; return 1; }
	is .totals.allocs 12
	is .totals.frees 9
	nothing_lost
}

# Functions that walk their own call stack, so return addresses must stay, and have no room for jumps where they return.
# bats test_tags=full
@test "inline: an allocator that would see what is changed is left to BPF, and the report says so" {
	same_counts "$T/asks_stack"
	by_bpf
	grep -E "(malloc|free): a jump leads to where it returns, or no room is there: all calls .* seen by BPF" "$err"
	grep -q "malloc saw" "$out"
}

by_bpf() { is '.notes | map(select(test("breakpoints have seen all of its calls"))) | length' 1; }

# bats test_tags=full
@test "inline: a library that comes later and cannot be changed: BPF goes on where our code has stopped" {
	same_counts "$T/dlopen" "$T" rounds 3 short
	traced --backend inline -- "$T/dlopen" "$T" rounds 3 short
	[ "$status" -eq 0 ] || { echo "status $status"; cat "$err"; return 1; }
	nothing_lost
	as_told allocs live
	by_bpf
	jq -e '[.processes[0].stacks[].truncated] | length > 0 and all(. == null)' "$report"
	grep -q "plug_short.so: PID .*: free: it is too short: all calls" "$err"
}

# The rings would take up addresses that the limit leaves to the program. The shell has set it while it was traced.
@test "inline: a program whose memory is limited is left to BPF (E5)" {
	traced --backend inline -- bash -c 'ulimit -v 200000; exec "$@"' bash "$T/order"
	[ "$status" -eq 0 ] || { echo "status $status"; cat "$err"; return 1; }
	nothing_lost
	jq -e '.processes[1].notes | any(test("breakpoints have seen all of its calls"))' "$report"
	grep -q "its memory is limited (RLIMIT_AS or RLIMIT_DATA): all calls .* seen by BPF" "$err"
}

@test "inline: a program whose limit leaves much memory is not left to BPF (E5)" {
	traced --backend inline -- bash -c 'ulimit -v 2000000; exec "$@"' bash "$T/order"
	[ "$status" -eq 0 ] || { echo "status $status"; cat "$err"; return 1; }
	nothing_lost
	jq -e '[.processes[].notes[]? | select(test("breakpoints have seen all of its calls"))] == []' "$report"
}

@test "inline: a program whose files are limited is left to BPF" {
	traced --backend inline -- bash -c 'ulimit -f 400; exec "$@"' bash "$T/order"
	[ "$status" -eq 0 ] || { echo "status $status"; cat "$err"; return 1; }
	nothing_lost
	grep -q "the size of its files is limited (RLIMIT_FSIZE): all calls .* seen by BPF" "$err"
}

# bats test_tags=full
@test "inline: a program that cannot be changed executes one that can, and the other way round" {
	same_counts "$T/exec" "$T/asks_stack"
	jq -e '[.processes[].notes | length] == [0, 1]' "$report"
	same_counts env LD_PRELOAD="$T/plug_short.so" "$T/exec" env -u LD_PRELOAD "$T/leak"
	jq -e '[.processes[].notes | length] == [0, 1, 1, 0]' "$report"
}

@test "inline: attach to a program that cannot be changed, exactly what happens until detach" {
	stepping env LD_PRELOAD="$T/plug_short.so"
	step "alloc 10 100"
	attached --backend inline "$TARGET"
	step "alloc 7 50"
	step "free 9"
	step "burst 1000"
	detach
	is .totals.allocs 1007
	is .totals.frees 1007
	is .totals.unknown_frees 2
	nothing_lost
	by_bpf
	untouched "$TARGET"
	has_no_memory "$TARGET" || { cat "/proc/$TARGET/maps"; return 1; }
	step "alloc 5 10"
}

# Probes for children are in all processes, and would end one whose code with jumps is no copy.
@test "inline: a library that cannot be changed, with --follow: BPF sees it, or it is named, and its calls are counted as lost" {
	traced --backend inline -f -- "$T/dlopen" "$T" rounds 3 short
	[ "$status" -eq 0 ] || { echo "status $status"; cat "$err"; return 1; }
	grep -q "plug_short.so: PID .*: free: it is too short: all calls of this process, and of later" "$err"
	nothing_lost
	as_told allocs live
	traced --backend inline -f --force -- "$T/short-alone" run "exec '$T/dlopen' '$T' rounds 3 short"
	[ "$status" -eq 0 ] || { echo "status $status"; cat "$err"; return 1; }
	grep -q "plug_short.so: PID .*: free: it is too short: use --backend bpf" "$err"
	jq -e '.processes[] | select(.comm == "dlopen") | .lost.other > 0' "$report"
}

@test "inline: the counts of BPF: longjmp, libraries that come later, exec, throws, handlers on their own stacks" {
	same_counts "$T/longjmp"
	same_counts "$T/stack_dlopen"
	same_counts "$T/dlopen" "$T"
	same_counts "$T/exec" "$T/exec" "$T/leak"
	same_counts "$T/stack_throw"
	same_counts "$T/signal_stack"
}

# Each load has its own jumps and stubs, and those of earlier ones are gone.
# bats test_tags=full
@test "inline: a library with an allocator of its own is loaded 100 times" {
	traced -q --backend inline -- "$T/dlopen" "$T" rounds 100
	[ "$status" -eq 0 ] || { echo "status $status"; cat "$err"; return 1; }
	nothing_lost
	as_told allocs live
	! grep -q "are not seen" "$err" || { cat "$err"; return 1; }
}

# told PROGRAM WORD...: a started program that waits for lines by tell; its pid is in $TARGET
told() {
	mkfifo "$BATS_TEST_TMPDIR/lines"
	out=$BATS_TEST_TMPDIR/told.out
	: >"$out"
	start bash -c 'exec "$@" <"$0" >"${0%/*}/told.out"' "$BATS_TEST_TMPDIR/lines" "$@"
	TARGET=$PID
	exec 7>"$BATS_TEST_TMPDIR/lines"
}

has_jumps_in() { text_differs "$TARGET" | grep -q "$1"; }

# bats test_tags=full
@test "inline: attach, a library is unloaded and is back at its place before heaptap looks" {
	told "$T/dlopen" "$T" again
	wait_for says told loaded
	attached --backend inline --no-scan "$TARGET"
	has_jumps_in plug_own
	kill -STOP "$TAP"
	tell
	wait_for says told again
	says told "again: same place"
	fails has_jumps_in plug_own
	kill -CONT "$TAP"
	wait_for has_jumps_in plug_own
	tell
	ended "$TARGET" 0
	ended "$TAP" 0
	nothing_lost
	as_told allocs
}

# first_calls_missing: each program that the target has executed counts one loss, and has a note
first_calls_missing() {
	jq -e '.processes[1:] | length > 0 and all(.[]; .lost.allocs == 1 and
		any(.notes[]; test("began, by exec, before the code or the probes of heaptap were there")))' "$report"
	grep -q "PID $TARGET has executed a program: its first calls are missing" "$err"
}

# heaptap hears of the exec when the program has ended.
# bats test_tags=full
@test "inline: attach, the target executes a program that soon ends: it is listed, and counts as a loss (A14)" {
	told bash -c 'read line; exec "$@"' bash "$T/order"
	attached --backend inline --no-scan "$TARGET"
	kill -STOP "$TAP"
	tell
	ended "$TARGET" 0
	kill -CONT "$TAP"
	ended "$TAP" 5
	jq -e '.processes | length == 2 and .[1].totals.allocs == 0' "$report"
	first_calls_missing
}

is_strace_of() { grep -q '^TracerPid:	[1-9]' "/proc/$1/status"; }

# second_has_calls: a report says so of the second program that $TARGET has executed
second_has_calls() { kill -USR1 "$TAP" && jq -e '.processes[2].totals.allocs > 0' "$report"; }

# strace holds heaptap where it has heard of the first exec and reads which files are mapped: those of the second program.
# bats test_tags=full
@test "inline: attach, two exec come right after the other: the second program is traced (A14)" {
	command -v strace >/dev/null || skip "no strace"
	told bash -c 'read line; exec bash -c "read line; exec $0"' "$T/spin"
	attached --backend inline --no-scan "$TARGET"
	start strace -qq -o "$BATS_TEST_TMPDIR/calls" -P "/proc/$TARGET/maps" -e trace=openat \
		-e inject=openat:delay_enter=1000000000:when=1 -p "$TAP"
	wait_for is_strace_of "$TAP"
	tell
	wait_for grep -q openat "$BATS_TEST_TMPDIR/calls"
	tell
	wait_for says told ready
	# strace lets go of it: it opens the file.
	kill -TERM "$PID"
	wait "$PID" || true
	wait_for has_probes "$TARGET"
	# The first jump is there before all are.
	wait_for second_has_calls
	kill -INT "$TAP"
	ended "$TAP" 5
	untouched "$TARGET"
	! grep -q "is in it" "$err" || { cat "$err"; return 1; }
	jq -e '.processes | length == 3 and .[2].totals.allocs > 0' "$report"
	first_calls_missing
}

# bats test_tags=core
@test "inline: attach, exactly what happens between attach and detach" {
	attached_between --backend inline
	! grep -q heaptap "/proc/$TARGET/maps" || { echo "memory of ours stays"; cat "/proc/$TARGET/maps"; return 1; }
}

# bats test_tags=full
@test "inline: attach, threads at full speed" {
	stepping env HEAPTAP_COUNT="$BATS_TEST_TMPDIR/count" LD_PRELOAD="$ORACLE/count.so"
	step "alloc 100 64"
	cp "$(count_page "$TARGET")" "$BATS_TEST_TMPDIR/before"
	attached --backend inline "$TARGET"
	step "threads 8 20000"
	step "free 50"
	step "alloc 20 30"
	detach
	nothing_lost
	as_counted "$BATS_TEST_TMPDIR/before"
	untouched "$TARGET"
}

# seeded: the moments of a test that has failed come again with the HEAPTAP_SEED that it says
seeded() {
	RANDOM=${HEAPTAP_SEED:=$$}
	echo "HEAPTAP_SEED=$HEAPTAP_SEED"
}

# moment: waits for up to 0.3 s. No subshell, which would have random numbers of its own.
moment() {
	local fraction
	printf -v fraction %03d $((RANDOM % 300))
	sleep "0.$fraction"
}

# has_no_memory PID: none of ours is mapped there
has_no_memory() { ! grep -q /memfd:heaptap- "/proc/$1/maps"; }

# bats test_tags=rounds,full
@test "inline: attach and detach at random moments" {
	seeded
	spinning
	for ((i = 0; i < HEAPTAP_ROUNDS; i++)); do
		attached --backend inline --no-scan "$TARGET"
		moment
		detach
		untouched "$TARGET"
		works "$TARGET"
	done
}

# The handler of a timer walks the stack of whatever it interrupts, our code too.
# bats test_tags=rounds,full
@test "inline: attach, detach and kill -9 in turns, 8 threads at full speed check their blocks and walk their stacks" {
	seeded
	start "$T/sums" 8
	TARGET=$PID
	wait_for says sums ready
	for ((i = 0; i < HEAPTAP_ROUNDS; i++)); do
		attached --backend inline --no-scan "$TARGET"
		moment
		if [ $((i % 4)) -eq 3 ]; then
			kill -KILL "$TAP"
			wait "$TAP" 2>/dev/null || true
		else
			detach
			nothing_lost
		fi
		# The guard may not have begun yet.
		wait_for has_no_memory "$TARGET" || { cat "/proc/$TARGET/maps"; return 1; }
		wait_for is_untraced "$TARGET"
		untouched "$TARGET"
	done
	kill -TERM "$TARGET"
	ended "$TARGET" 0
	says sums 'sums are right, walks [1-9]'
}

# bats test_tags=rounds,full
@test "inline: kill -9 of heaptap leaves the target as it was" {
	seeded
	spinning
	for ((i = 0; i < HEAPTAP_ROUNDS; i++)); do
		start "$HEAPTAP" attach -q --backend inline --no-scan "$TARGET"
		[ $((i % 2)) -eq 0 ] || wait_for has_probes "$TARGET"
		moment
		kill -KILL "$PID"
		wait "$PID" 2>/dev/null || true
		# The guard may not have begun yet.
		wait_for has_no_memory "$TARGET" || { cat "/proc/$TARGET/maps"; return 1; }
		wait_for is_untraced "$TARGET"
		untouched "$TARGET"
		works "$TARGET"
	done
}

# pids_group: GROUP is a cgroup that limits its processes; fails where that cannot be had
pids_group() {
	GROUP=/sys/fs/cgroup/pids/heaptap-test-$$
	! mkdir "$GROUP" 2>/dev/null || return 0
	GROUP=$(awk '$3 == "cgroup2" { print $2; exit }' /proc/mounts)/heaptap-test-$$
	mkdir "$GROUP" 2>/dev/null && { [ -e "$GROUP/pids.max" ] || { rmdir "$GROUP"; return 1; }; }
}

is_empty() { [ -z "$(cat "$1")" ]; }

@test "inline: kill -9 of heaptap where there can be no further process leaves the target as it was (A7)" {
	local i
	pids_group || skip "no cgroups of processes here"
	spinning
	for i in 1 2 3 4; do
		start bash -c 'echo $$ >"$1/cgroup.procs"; shift; exec "$@"' bash "$GROUP" \
			"$HEAPTAP" attach -q --backend inline --no-scan "$TARGET"
		wait_for has_probes "$TARGET"
		# Processes that are there stay.
		echo 1 >"$GROUP/pids.max"
		kill -KILL "$PID"
		wait "$PID" 2>/dev/null || true
		wait_for has_no_memory "$TARGET" || { cat "/proc/$TARGET/maps"; return 1; }
		untouched "$TARGET"
		wait_for is_empty "$GROUP/cgroup.procs"
		echo max >"$GROUP/pids.max"
	done
	wait_for rmdir "$GROUP"
}

# bats test_tags=full
@test "inline: nobody reads its reports: Ctrl-C takes the code out, and a second one ends heaptap (A5)" {
	spinning 0 4
	unheard --backend inline
	kill -INT "$TAP"
	untouched "$TARGET"
	wait_for has_no_memory "$TARGET"
	wait_for grep -q 'busy because nobody takes its output (standard output):.* another signal ends heaptap' "$err"
	is_running "$TAP"
	wait_for has_used "$TARGET" $(($(ticks "$TARGET") + 10))
	kill -INT "$TAP"
	ended "$TAP" 130
	exec 8>&-
}

# bats test_tags=full
@test "inline: nobody reads its reports, and after Ctrl-C somebody does: the last report comes (A5)" {
	spinning 0 4
	unheard --backend inline
	kill -INT "$TAP"
	wait_for has_no_memory "$TARGET"
	start cat "$BATS_TEST_TMPDIR/pipe"
	exec 8>&-
	wait_for gone "$TAP"
	status=0
	wait "$TAP" || status=$?
	# Calls are lost while nobody takes reports; then the status says so.
	[ "$status" -eq 0 ] || [ "$status" -eq 5 ] || { cat "$err"; false; }
	grep -q 'stopped for .* ms to put the code in' "$err"
	! grep -q 'stay' "$err" || { cat "$err"; false; }
	untouched "$TARGET"
}

# maps_of PID: its mappings of files
maps_of() { awk '$5' "/proc/$1/maps"; }

# has_breakpoints PID: of x86, in mapped code
has_breakpoints() { text_differs "$1" | grep -q 'is 0314,'; }

# guards PID: the processes that take code out when heaptap PID ends
guards() { pgrep -P "$1" -x 'keeper-of-heapt|tracer-of-heapt'; }

# other_version PID: change the first byte of the record of code left in PID, which says whose layout it has, and back
other_version() {
	python3 - "$1" <<-'END'
		import sys
		maps = open(f"/proc/{sys.argv[1]}/maps").read().splitlines()
		private = next(l for l in maps if "/memfd:heaptap-inline" in l)
		with open(f"/proc/{sys.argv[1]}/mem", "r+b", 0) as mem:
		    at = int(private.split("-")[0], 16) - 13 * 4096  # PIECE_PRIVATE_OFFSET - PIECE_LEFT_OFFSET
		    mem.seek(at)
		    byte = mem.read(1)[0]
		    mem.seek(at)
		    mem.write(bytes([byte ^ 1]))
	END
}

@test "inline: kill -9 of heaptap and of its guard: the program goes on, doctor says so, the next heaptap takes the code out" {
	local guard
	stepping
	step "alloc 10 100"
	attached --backend inline --no-scan "$TARGET"
	step "threads 20 1" # so that there are more places
	"$HEAPTAP" doctor "$TARGET" | grep -q "heaptap (PID $TAP) traces it by code inside it"
	guard=$(guards "$TAP")
	run timeout 60 "$HEAPTAP" attach --backend inline -t 100ms "$TARGET"
	[ "$status" -eq 3 ] || { echo "status $status: $output"; return 1; }
	[[ $output == *"heaptap (PID $TAP) has code in it already"* ]]
	kill -STOP "$guard"
	kill -KILL "$TAP"
	kill -KILL "$guard"
	wait "$TAP" || true
	wait_for gone "$guard"
	step "burst 100000" # more than the ring has room for
	step "threads 8 20000"
	step "threads 20 1" # more than have places
	fails has_no_memory "$TARGET"
	fails has_own_code "$TARGET"
	"$HEAPTAP" doctor "$TARGET" | grep -q "a killed heaptap (PID $TAP) has left code inside it"
	[ "$("$HEAPTAP" doctor --json "$TARGET" | jq -r '.targets[0].inline')" = "left behind" ]
	other_version "$TARGET"
	[ "$("$HEAPTAP" doctor --json "$TARGET" | jq -r '.targets[0].inline')" = unknown ]
	run timeout 60 "$HEAPTAP" attach --backend inline -t 100ms "$TARGET"
	[ "$status" -eq 3 ] || { echo "status $status: $output"; return 1; }
	[[ $output == *"code of another version of heaptap is in it"* ]]
	step "burst 1000"
	other_version "$TARGET"
	attached --backend inline --no-scan "$TARGET"
	grep -q "a killed heaptap had left" "$err"
	step "burst 1000"
	detach
	is .totals.allocs 1000
	nothing_lost
	untouched "$TARGET"
	has_no_memory "$TARGET" || { cat "/proc/$TARGET/maps"; return 1; }
	[ "$("$HEAPTAP" doctor --json "$TARGET" | jq -r '.targets[0].inline')" = null ]
	step "free 10"
}

@test "inline: a forked child works, and is not counted" {
	traced -q --backend inline -- "$T/fork"
	[ "$status" -eq 0 ] || { echo "status $status"; cat "$err" "$out"; return 1; }
	nothing_lost
	as_told calls
}

# A breakpoint over our jump: the debugger will write the byte of our jump back, so what it leads to must stay.
@test "inline: a jump that somebody has changed keeps our memory" {
	stepping
	attached --backend inline --no-scan "$TARGET"
	place=$(first_jump "$TARGET")
	poke "$TARGET" "$place" cc
	detach
	grep -q "a jump of ours" "$err" || { cat "$err"; return 1; }
	fails has_no_memory "$TARGET"
	poke "$TARGET" "$place" e9
	step "alloc 10 100"
	step "free 10"
	step "threads 2 100"
	end_started # this test has changed the code
}

# take_turns OPTIONS: several stacks of a thread are remembered, and the words that led to them are compared
take_turns() {
	traced -q "$@" -- "$T/turns" 5000
	[ "$status" -eq 0 ]
	nothing_lost
	jq -c '.processes[0].stacks[] | select(.frames | any(.function == "allocate")) |
		[.allocs, [.frames[].function | select(. == "by_one" or . == "by_other" or . == "deeper")]]' \
		"$report" | sed 's/"deeper"/d/g' | sort >"$BATS_TEST_TMPDIR/paths"
	{
		echo '[5000,["by_one"]]'
		echo '[5000,["by_other"]]'
		for levels in 4 41; do
			echo "[5000,[\"by_one\"$(printf ',d%.0s' $(seq $levels))]]"
		done
	} | sort | diff - "$BATS_TEST_TMPDIR/paths"
}

# bats test_tags=core
@test "inline: call paths that take turns each have their own stack" { take_turns --backend inline; }

# bats test_tags=core
# A marker's stack is walked in the kernel, which has tables only where markers are.
@test "inline: blocks of a pool have whole stacks" {
	traced -q --no-scan --backend inline -- "$T/marked" pool
	[ "$status" -eq 0 ]
	nothing_lost
	is '.functions.HEAPTAP_ALLOC' 13
	[ "$(of_function lose live_blocks)" -eq 10 ]
	[ "$(jq '[.processes[0].stacks[] | select(.family == "pool").complete] | all' "$report")" = true ]
}

# bats test_tags=full
@test "inline: call paths that take turns, by BPF" { take_turns --backend bpf; }

# Threads whose rings are full spin, and only the thread that reads can help them.
@test "inline: heaptap's reader goes before others, and the program does not" {
	stepping
	attached --backend inline "$TARGET"
	step "alloc 10 100"
	[ "$(cut -d' ' -f19 "/proc/$TAP/stat")" -eq -20 ]
	[ "$(cut -d' ' -f19 "/proc/$TARGET/stat")" -eq "$(cut -d' ' -f19 /proc/self/stat)" ]
	detach
	is .totals.allocs 10
}

# While nobody reads, a thread waits for a while and then goes on; what had no room is counted.
# bats test_tags=full
@test "inline: a full ring holds nobody, and losses are counted" {
	stepping
	attached --backend inline --no-scan "$TARGET"
	step "alloc 3 100"
	kill -STOP "$TAP"
	wait_for grep -q '^State:	T' "/proc/$TAP/status"
	step "burst 20000" # more records than a ring has room for
	kill -CONT "$TAP"
	step "burst 10"
	step "alloc 4 100"
	kill -INT "$TAP"
	ended "$TAP" 5 # some events were lost
	jq -e '.processes[0] | .lost.allocs > 0 and .lost.frees > 0
		and .totals.allocs + .lost.allocs == 20017 and .totals.frees + .lost.frees == 20010' "$report" ||
		{ jq -c '.processes[0] | .totals, .lost' "$report"; return 1; }
	untouched "$TARGET"
}

# bats test_tags=full
@test "inline: a program that writes nonsense over its rings harms only its own report (S1)" {
	local sample
	for sample in off 64; do
		start "$T/scribble"
		TARGET=$PID
		wait_for says scribble ready
		attached --backend inline --no-scan --sample $sample "$TARGET"
		has_probes "$TARGET"
		kill -USR1 "$TARGET"
		wait_for says scribble 'done [1-9]'
		kill -INT "$TAP"
		ended "$TAP" 5 # records are lost
		untouched "$TARGET"
		has_no_memory "$TARGET" || { cat "/proc/$TARGET/maps"; return 1; }
		kill -TERM "$TARGET"
		ended "$TARGET" 0
	done
}

# A million pairs while nobody reads: with drop the program never waits, so some have no room. With wait all are there.
# bats test_tags=full
@test "inline: --on-full drop loses what has no room and counts it, wait loses nothing" {
	stepping
	attached --backend inline --no-scan --on-full drop "$TARGET"
	kill -STOP "$TAP"
	wait_for grep -q '^State:	T' "/proc/$TAP/status"
	step "burst 1000000"
	kill -CONT "$TAP"
	step "alloc 4 100"
	kill -INT "$TAP"
	ended "$TAP" 5
	jq -e '.processes[0] | .lost.allocs > 0 and .totals.allocs + .lost.allocs == 1000004 and
		.totals.frees + .totals.unknown_frees + .lost.frees == 1000000' "$report" ||
		{ jq -c '.processes[0] | .totals, .lost' "$report"; return 1; }
	attached --backend inline --no-scan --on-full wait "$TARGET"
	step "burst 100000"
	detach
	nothing_lost
	is .totals.allocs 100000
	grep -q "stopped for .* ms to put the code in, and for .* ms to take it out; up to .* of its memory were ours" "$err"
	untouched "$TARGET"
}

# The filter kills whoever makes a memfd or unmaps memory, as heaptap has a thread do.
@test "inline: attach to a program under seccomp is refused and harms nobody" {
	stepping
	step "alloc 1 100"
	step confine
	grep -q '^Seccomp:	2' "/proc/$TARGET/status"
	run timeout 60 "$HEAPTAP" attach --backend inline -t 100ms "$TARGET"
	[ "$status" -eq 3 ] || { echo "status $status: $output"; return 1; }
	[[ $output == *"under seccomp"* ]]
	untouched "$TARGET"
	step "alloc 5 10"
}

@test "inline: a program that comes under seccomp while it is traced keeps our memory, without effect, and lives" {
	stepping
	attached --backend inline "$TARGET"
	step "burst 10"
	step confine
	step "burst 20"
	detach
	nothing_lost
	is .totals.allocs 30
	grep -q 'the probes stay in it, without effect: seccomp may forbid it to unmap memory' "$err"
	wait_for is_untraced "$TARGET"
	step "alloc 5 10"
}

# The kernel does not say that a test program has one: no CPU with it is needed for this test.
@test "inline: attach to a program with a shadow stack is refused and harms nobody" {
	local as_said=$BATS_TEST_TMPDIR/status
	unshare -m true || skip "no mount namespaces here"
	stepping
	step "alloc 1 100"
	{ cat "/proc/$TARGET/status" && printf 'x86_Thread_features:\tshstk \n'; } >"$as_said"
	run timeout 60 unshare -m sh -c 'mount --bind "$1" "/proc/$2/status" && exec "$3" attach --backend inline -t 100ms "$2"' \
		sh "$as_said" "$TARGET" "$HEAPTAP"
	[ "$status" -eq 3 ] || { echo "status $status: $output"; return 1; }
	[[ $output == *"it has a shadow stack"* ]]
	untouched "$TARGET"
	has_no_memory "$TARGET"
	step "alloc 5 10"
}

@test "inline: attach to a program that may map no more memory is left to BPF and harms nobody" {
	stepping
	step "alloc 1 100"
	prlimit --pid "$TARGET" --as=200000000
	run timeout 60 "$HEAPTAP" attach --backend inline -t 100ms "$TARGET"
	[ "$status" -eq 0 ] || { echo "status $status: $output"; return 1; }
	[[ $output == *"its memory is limited (RLIMIT_AS or RLIMIT_DATA): all calls of this process are seen by BPF"* ]]
	untouched "$TARGET"
	has_no_memory "$TARGET"
	step "alloc 5 10"
}

@test "inline: heaptap's own memory is limited: a message says so, and the program is as before" {
	stepping
	run timeout 60 bash -c 'ulimit -v 3000000; exec "$@"' bash "$HEAPTAP" attach --backend inline -t 100ms "$TARGET"
	[ "$status" -eq 3 ] || { echo "status $status: $output"; return 1; }
	[[ $output == *"heaptap itself may not map 6.4 GB of addresses (ulimit -v): use --backend bpf"* ]]
	untouched "$TARGET"
	has_no_memory "$TARGET"
	step "alloc 5 10"
}

# The kernel's limit for the number of mappings: no two neighbours have the same rights.
# bats test_tags=full
@test "inline: attach to a program that has all mappings it may have is refused and harms nobody" {
	start python3 -c 'import ctypes, mmap, sys, time
libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
nr = int(open("/proc/sys/vm/max_map_count").read())
base = libc.mmap(None, ctypes.c_size_t(nr * 4096 * 2), 1, 0x4022, -1, ctypes.c_size_t(0))
done = 0
while done < nr and not libc.mprotect(base + done * 8192, 4096, 0): done += 1
print("full" if done < nr else "not full", flush=True)
time.sleep(1000)'
	wait_for says python3 full
	! says python3 "not full" || skip "this kernel has no limit"
	run timeout 60 "$HEAPTAP" attach --backend inline -t 100ms "$PID"
	[ "$status" -eq 3 ] || { echo "status $status: $output"; return 1; }
	[[ $output == *"memory"*"cannot be mapped"*"Cannot allocate memory"* ]] || { echo "$output"; return 1; }
	is_untraced "$PID"
	has_no_memory "$PID"
}

@test "inline: a stopped program is traced and stays stopped" {
	stepping
	step "alloc 1 100"
	kill -STOP "$TARGET"
	wait_for grep -q '^State:	T' "/proc/$TARGET/status"
	attached --backend inline --no-scan "$TARGET"
	grep -q '^State:	T' "/proc/$TARGET/status"
	kill -CONT "$TARGET"
	step "burst 100"
	kill -STOP "$TARGET"
	wait_for grep -q '^State:	T' "/proc/$TARGET/status"
	detach
	grep -q '^State:	T' "/proc/$TARGET/status"
	is .totals.allocs 100
	kill -CONT "$TARGET"
	step "alloc 5 10"
	untouched "$TARGET"
}

@test "inline: a program that another process traces is refused with the tracer's name" {
	stepping
	attached -b ptrace --no-scan "$TARGET"
	run timeout 60 "$HEAPTAP" attach --backend inline -t 100ms "$TARGET"
	[ "$status" -eq 3 ] || { echo "status $status: $output"; return 1; }
	[[ $output == *"traced by tracer-of-heapt"* ]] || { echo "$output"; return 1; }
	# The probes of that try may have taken breakpoints away, which is counted and means 5.
	kill -INT "$TAP"
	wait_for gone "$TAP"
	status=0
	wait "$TAP" || status=$?
	[ "$status" -eq "$(jq '.processes[0].lost.other | if . > 0 then 5 else 0 end' "$report")" ] || { cat "$err"; false; }
	untouched "$TARGET"
}

@test "inline: a function that somebody has changed is refused with its name" {
	local place
	stepping
	attached --backend inline --no-scan "$TARGET"
	place=$(first_jump "$TARGET")
	detach
	poke "$TARGET" "$place" cc
	run timeout 60 "$HEAPTAP" attach --backend inline -t 100ms "$TARGET"
	[ "$status" -eq 3 ] || { echo "status $status: $output"; return 1; }
	[[ $output == *"code was changed in memory"* ]]
	has_no_memory "$TARGET"
	end_started # this test has changed the code
}

# Markers come from BPF, calls from rings. BPF tells the number of the last call before the marker, also before the first.
# bats test_tags=core
@test "inline: markers come where they are among the calls: a pause, moments, a late begin, a child" {
	local i
	for ((i = 0; i < 3; i++)); do
		traced --backend inline -- "$T/marked" sections
		is .totals.alloc_bytes 440
		jq -e '.processes[0].notes | any(contains("3 allocations of that time"))' "$report"
		traced --backend inline --between before,after -- "$T/marked" sections
		is .totals.allocs 3
		is .totals.live_bytes 60
		traced --backend inline --start-paused -- "$T/marked" sections
		is .totals.allocs 5
		traced --backend inline -f -- "$T/marked" fork
		jq -e '[.processes[].totals.alloc_bytes] | sort == [33, 55]' "$report"
	done
}

# The operators of libstdc++ alone would be counted as failed, because the malloc inside them is not seen.
# bats test_tags=full
@test "inline: run: a C++ program whose libc cannot be changed is not watched at all, and the report says why" {
	start "$HEAPTAP" run -f -q --backend bpf -- "$T/idle"
	TAP=$PID
	wait_for pgrep -P "$TAP" -x idle
	TARGET=$(pgrep -P "$TAP" -x idle)
	wait_for has_probes "$TARGET"
	# The probes of the C library are in.
	wait_for says heaptap ready
	traced --backend inline -- "$T/leak_cpp"
	[ "$status" -eq 0 ]
	grep -q 'code was changed in memory' "$err"
	jq -e '.processes[0] | .watched == false and .totals.allocs == 0 and .totals.failed_allocs == 0
		and (.unwatched_reason | contains("probes could not be placed"))' "$report"
	kill "$TARGET"
	ended "$TAP" 143
}

# The kernel writes the breakpoints of --follow to all processes, also where jumps of ours are. They would end the target.
# Threads at full speed may lose events on a busy machine.
# bats test_tags=core
@test "inline: breakpoints of --follow come and go while threads at full speed check their blocks" {
	start "$T/sums" 2
	TARGET=$PID
	wait_for says sums ready
	maps_of "$TARGET" >"$BATS_TEST_TMPDIR/before"
	attached --backend inline --no-scan "$TARGET"
	for ((i = 0; i < HEAPTAP_ROUNDS; i++)); do
		run "$HEAPTAP" run -f --backend bpf --no-scan -- "$T/nothing"
		[ "$status" -eq 0 ] || { echo "status $status: $output"; return 1; }
		[[ $output != *"PID $TARGET:"* ]] || { echo "$output"; return 1; }
		is_running "$TARGET"
	done
	kill -INT "$TAP"
	status=0
	wait "$TAP" || status=$?
	[ "$status" -eq 0 ] || [ "$status" -eq 5 ] # some events were lost: nobody read for half a second
	untouched "$TARGET"
	maps_of "$TARGET" | diff "$BATS_TEST_TMPDIR/before" -
	kill -TERM "$TARGET"
	ended "$TARGET" 0
	says sums 'sums are right'
}

# While our code is in the target, breakpoints go to the pages of the file, which are elsewhere. They come back with it.
# bats test_tags=full
@test "inline: breakpoints of --follow that were put in meanwhile work when the code has left" {
	local follower report_of_other=$BATS_TEST_TMPDIR/other.json
	stepping
	attached --backend inline "$TARGET"
	start "$T/spin" 1
	wait_for says spin ready
	start "$HEAPTAP" attach -f --no-scan -o "$report_of_other" "$PID"
	follower=$PID
	wait_for is_tracing "$follower"
	wait_for has_breakpoints "$TARGET"
	step "alloc 10 100"
	detach
	nothing_lost
	is .totals.allocs 10
	step "alloc 10 100"
	step "burst 1000"
	has_breakpoints "$TARGET"
	run timeout 60 "$HEAPTAP" attach --backend inline -t 100ms "$TARGET"
	[ "$status" -eq 3 ] || { echo "status $status: $output"; return 1; }
	[[ $output == *"code was changed in memory"* ]]
	kill -INT "$follower"
	ended "$follower" 0
	untouched "$TARGET"
	step "free 10"
}

# A program whose only page of code has the jumps: no mapping beside it would tell which file a copy belongs to.
# bats test_tags=full
@test "inline: pages that cannot be copied are named, and so is the program by --follow" {
	start "$T/short-alone" wait
	TARGET=$PID
	wait_for says short-alone ready
	attached --backend inline --no-scan "$TARGET"
	grep "stay mappings of the file" "$err"
	run "$HEAPTAP" run -f --backend bpf --no-scan -- "$T/nothing"
	[ "$status" -eq 0 ] || { echo "status $status: $output"; return 1; }
	grep "PID $TARGET: a heaptap with --backend inline traces it" <<<"$output"
	detach
	untouched "$TARGET"
}

# bats test_tags=full
@test "inline: limits of another user's program are seen without CAP_SYS_RESOURCE (E5)" {
	start bash -c 'ulimit -v 200000; exec setpriv --reuid=65534 --regid=65534 --clear-groups sleep 120'
	wait_for grep -qx sleep "/proc/$PID/comm"
	run setpriv --bounding-set=-sys_resource --inh-caps=-sys_resource timeout 60 "$HEAPTAP" attach --backend inline -t 100ms "$PID"
	[ "$status" -eq 0 ] || { echo "status $status: $output"; return 1; }
	[[ $output == *"its memory is limited (RLIMIT_AS or RLIMIT_DATA): all calls of this process are seen by BPF"* ]]
	untouched "$PID"
	has_no_memory "$PID"
}

@test "inline: 32-bit programs are refused" {
	needs_target leak-32
	traced --backend inline -- "$T/leak-32"
	[ "$status" -eq 0 ] || { echo "status $status"; cat "$err"; return 1; }
	grep -q "32-bit" "$err"
}

# inside CODE: start python, which does CODE when our memory is in it
inside() {
	cat >"$BATS_TEST_TMPDIR/inside.py" <<-END
		import ctypes, mmap, resource, threading, time
		libc = ctypes.CDLL(None)
		libc.malloc.restype = libc.mmap.restype = ctypes.c_void_p
		libc.free.argtypes = [ctypes.c_void_p]
		def kib(key):
		    with open("/proc/self/status") as f:
		        return int(next(l for l in f if l.startswith(key)).split()[1])
		def fits(size):
		    p = libc.malloc(ctypes.c_size_t(size))
		    libc.free(p)
		    return p is not None
		def ours():
		    with open("/proc/self/maps") as f:
		        return [l.split() for l in f if "/memfd:heaptap-inline" in l]
		def limit(what, kib):
		    resource.setrlimit(what, (kib << 10, kib << 10))
		print("ready", flush=True)
		while not ours():
		    time.sleep(0.01)
		time.sleep(0.1)
		$1
	END
	start python3 "$BATS_TEST_TMPDIR/inside.py"
	wait_for says python3 ready
}

# until_end [OPTIONS] PID: attach until the program ends
until_end() {
	report=$BATS_TEST_TMPDIR/report.json
	err=$BATS_TEST_TMPDIR/heaptap.err
	status=0
	timeout 120 "$HEAPTAP" attach -o "$report" "$@" >/dev/null 2>"$err" || status=$?
}

# A block of that size fits only when our memory has gone.
@test "inline: a program that has used up its memory, which it limits later, gets rid of ours (E5)" {
	inside 'limit(resource.RLIMIT_AS, kib("VmSize") + 8000)
while not fits(14 << 20):
    time.sleep(0.01)
print("has its memory", flush=True)'
	run timeout 120 "$HEAPTAP" attach -q --backend inline "$PID"
	[ "$status" -eq 5 ] || { echo "status $status: $output"; return 1; }
	[[ $output == *"its memory is limited (RLIMIT_AS or RLIMIT_DATA): the code is taken out of it"* ]]
	says python3 "has its memory"
}

# bats test_tags=full
@test "inline: a program that limits its memory later, and has not used it up, keeps our code (E5)" {
	inside 'limit(resource.RLIMIT_AS, kib("VmSize") + 300000)
for i in range(100):
    assert fits(200 << 20)
    time.sleep(0.005)
print("fits", flush=True)'
	until_end -q --backend inline "$PID"
	says python3 fits
	nothing_lost
	jq -e '.processes[0].totals.allocs >= 100' "$report"
}

# Our own memory, which the program locks with its own, is small.
@test "inline: a program that locks all of its memory later keeps our code" {
	inside 'print("locked", libc.mlockall(3), flush=True)
for i in range(100):
    assert fits(1 << 20)
print("has gone on", flush=True)'
	until_end -q --backend inline "$PID"
	says python3 "locked 0" || skip "mlockall is not permitted here"
	says python3 "has gone on"
	nothing_lost
}

# crowd CODE: as inside, and then 40 threads at once have 10 calls each; calls of those beyond the first 16 are lost
crowd() {
	inside "$1"'
threading.stack_size(1 << 18)
barrier = threading.Barrier(40)
def work():
    barrier.wait()
    for i in range(10):
        assert fits(100)
    barrier.wait()
threads = [threading.Thread(target=work) for i in range(40)]
[t.start() for t in threads]
[t.join() for t in threads]
print("has gone on", flush=True)'
	until_end --backend inline "$PID"
	says python3 "has gone on"
	[ "$status" -eq 5 ] || { echo "status $status"; cat "$err"; return 1; }
	grep -q "PID $PID: no memory can be mapped in it for more threads (.*): calls of threads beyond the first 16 are lost" "$err"
	jq -e '.processes[0].lost | .allocs >= 240 and .frees >= 240' "$report"
}

# bats test_tags=full
@test "inline: memory of the program is where ours would grow: calls of threads without a place are lost and counted" {
	crowd 'end = int(next(l for l in ours() if l[1] == "rw-s")[0].split("-")[1], 16)
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t] + [ctypes.c_int] * 3 + [ctypes.c_size_t]
assert libc.mmap(end, 4096, 1, 0x100022, -1, 0) == end'
}

# bats test_tags=full
@test "inline: our memory does not grow where the limit of the program leaves little (E5)" {
	MALLOC_ARENA_MAX=1 crowd 'limit(resource.RLIMIT_AS, kib("VmSize") + 100000)'
	fails grep "the code is taken out" "$err"
}

@test "inline: run: a program that makes a thread without a thread pointer of its own gets rid of our code" {
	local i
	for i in 1 2 3; do
		traced -q --backend inline -- "$T/twins" 5000000
		[ "$status" -eq 0 ] || { echo "status $status"; cat "$err"; return 1; }
		grep -q "the thread pointer of another (clone without CLONE_SETTLS): the code is taken out of it" "$err"
	done
}

@test "inline: attach: a program with two threads that have one thread pointer is refused" {
	start "$T/twins"
	wait_for says twins "two threads"
	run timeout 60 "$HEAPTAP" attach -q --backend inline -t 100ms "$PID"
	[ "$status" -eq 3 ] || { echo "status $status: $output"; return 1; }
	[[ $output == *"two of its threads have the same thread pointer: use --backend bpf"* ]]
	untouched "$PID"
}

# bats test_tags=full
@test "inline: attach: a thread of the kernel in a program, for io_uring, is no second thread of it" {
	local target
	start "$T/uring"
	target=$PID
	wait_for says uring "io_uring"
	! says uring "no io_uring" || skip "io_uring is not permitted here"
	attached --backend inline "$target"
	detach
	jq -e '.backend == "inline"' "$report"
	nothing_lost
	untouched "$target"
}

# locked COMMAND...: start perl by it, which locks all of its memory, and may lock 4000 KiB more
locked() {
	start "$@" perl -e '
$| = 1;
my $done = syscall(151, 3); # mlockall
open(my $status, "<", "/proc/self/status");
my ($locked) = map { /^VmLck:\s+(\d+)/ } <$status>;
my $limit = ($locked + 4000) << 10;
syscall(160, 8, pack("QQ", $limit, $limit)); # setrlimit, RLIMIT_MEMLOCK
print "locked $done\n";
sleep 100'
	wait_for says "$1" locked
	says "$1" "locked 0" || skip "mlockall is not permitted here"
}

# bats test_tags=full
@test "inline: a program that locks all of its memory" {
	local target
	locked env
	target=$PID
	attached --backend inline "$target"
	detach
	jq -e '.backend == "inline"' "$report"
	nothing_lost
	untouched "$target"
	has_no_memory "$target"
}

@test "inline: a program that locks all of its memory, and may lock no more, is refused" {
	locked setpriv --bounding-set=-ipc_lock --inh-caps=-ipc_lock
	run timeout 60 "$HEAPTAP" attach --backend inline -t 100ms "$PID"
	[ "$status" -eq 3 ] || { echo "status $status: $output"; return 1; }
	[[ $output == *"it locks all of its memory, and may lock no more (RLIMIT_MEMLOCK)"* ]]
	untouched "$PID"
	has_no_memory "$PID"
}
