#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# The ptrace source: the same reports as by BPF, and targets that survive whatever happens to heaptap.

load ../lib/common

# normal REPORT: what must not depend on the source. A system call that BPF sees is made inside a function of the C library.
normal() {
	jq -S '[.processes[] | {
		totals: (.totals | del(.peak_time_ns)), functions, lost, exit, allocators: (.allocators | sort_by(.object)),
		scan: (.scan | if . then { definite, indirect, possible, reachable, unsure } else . end),
		stacks: ([.stacks[] | { function, family, allocs, frees, alloc_bytes, live_blocks, live_bytes, peak_bytes, temporary,
			definite, indirect, possible, reachable, unsure, complete, truncated,
			frames: (if .family == "mmap" then [.frames[] | select(.module | endswith("/libc.so.6") | not)] else .frames end) }]
			| sort_by(tostring)) }]' "$1"
}

# same_reports [OPTIONS] -- PROGRAM...
same_reports() {
	local source
	for source in bpf ptrace; do
		traced -b "$source" "$@"
		jq -e --arg s "$source" '.backend == $s' "$report" >/dev/null
		echo "$status" >"$BATS_TEST_TMPDIR/$source.status"
		normal "$report" >"$BATS_TEST_TMPDIR/$source.json"
	done
	diff "$BATS_TEST_TMPDIR/bpf.status" "$BATS_TEST_TMPDIR/ptrace.status"
	diff "$BATS_TEST_TMPDIR/bpf.json" "$BATS_TEST_TMPDIR/ptrace.json" | head -40
	cmp "$BATS_TEST_TMPDIR/bpf.json" "$BATS_TEST_TMPDIR/ptrace.json" || { cat "$err"; return 1; }
	jq -e 'all(.processes[]; .totals.allocs > 0)' "$report"
}

# bats test_tags=full
@test "ptrace: same reports as by BPF: a leaking program, linked in all ways" {
	local variant
	for variant in "" -static -static-pie -nopie -stripped -musl -musl-static -32 -32-static; do
		[ -x "$T/leak_kinds$variant" ] || { echo "# leak_kinds$variant is not built here" >&3; continue; }
		same_reports -- "$T/leak_kinds$variant"
	done
}

# bats test_tags=full
@test "ptrace: same reports as by BPF: functions, operators, exceptions, failures" {
	same_reports -- "$T/failed"
	same_reports -- "$T/operators"
	same_reports -- "$T/exceptions"
	same_reports -- "$T/early"
	same_reports --mmap -- "$T/mmap"
	same_reports -- "$T/longjmp"
}

# bats test_tags=full
@test "ptrace: same reports as by BPF: libraries that come and go, code chosen at run time, exec" {
	same_reports -- "$T/dlopen" "$T/plug_leak.so" "$T/plug_own.so"
	same_reports --alloc malloc=my_alloc,free=my_free -- "$T/ifunc"
	same_reports -f -- "$T/exec" "$T/exec" "$T/leak"
	same_reports -- "$T/stack_dlopen"
}

# bats test_tags=full
@test "ptrace: a target that BPF has left, while BPF traces another one on its libraries: heaptap says so" {
	local other one tap
	start "$T/spin" 1
	other=$PID
	start "$T/spin" 1
	one=$PID
	wait_for says spin ready
	attached -b bpf --no-scan "$one"
	works "$one" 10
	detach
	grep -q '\[uprobes\]' "/proc/$one/maps" || skip "this kernel keeps no page of uprobes"
	start "$HEAPTAP" attach -b bpf --no-scan -o "$BATS_TEST_TMPDIR/other.json" "$other"
	tap=$PID
	wait_for has_probes "$other"
	run -6 "$HEAPTAP" attach -b ptrace --fail-on definite "$one"
	[[ $output == *"PID $one: breakpoints do not work there"* ]] || { echo "$output"; return 1; }
	kill -INT "$tap"
	ended "$tap" 0
}

# bats test_tags=full
@test "ptrace: a target that BPF has left, while BPF traces another one on other files: nothing is missed" {
	local static one tap
	start "$T/spin-static" 1
	static=$PID
	start "$T/spin" 1
	one=$PID
	wait_for says spin ready
	wait_for says spin-static ready
	attached -b bpf --no-scan "$one"
	works "$one" 10
	detach
	grep -q '\[uprobes\]' "/proc/$one/maps" || skip "this kernel keeps no page of uprobes"
	start "$HEAPTAP" attach -b bpf --no-scan -o "$BATS_TEST_TMPDIR/other.json" "$static"
	tap=$PID
	wait_for has_probes "$static"
	attached -b ptrace "$one"
	works "$one" 10
	detach
	no_line 'do not work' "$err"
	kill -INT "$tap"
	ended "$tap" 0
}

@test "ptrace: a uprobe that no code of the target shows takes its breakpoints: nothing is watched, and the target goes on (T6)" {
	local one
	with_bpf_only "the other tool traces by BPF"
	not_by_inline "the other tool traces by BPF"
	start "$T/spin" 1
	one=$PID
	wait_for says spin ready
	# The kernel remembers that this memory has had uprobes. None was hit, so there is no page of them.
	stepping
	attached -b bpf --no-scan "$TARGET"
	detach
	no_line '\[uprobes\]' "/proc/$TARGET/maps"
	attached -b bpf --no-scan "$one"
	run -6 "$HEAPTAP" attach -b ptrace --fail-on definite "$TARGET"
	[[ $output == *"PID $TARGET: breakpoints do not work there"* ]] || { echo "$output"; return 1; }
	untouched "$TARGET"
	step "alloc 3 100"
	detach
	attached -b ptrace "$TARGET"
	step "alloc 5 100"
	detach
	is .totals.allocs 5
	step "alloc 3 100"
	untouched "$TARGET"
}

# other_tool [COMMAND...]: a tool with uprobes on the allocator of all processes; its PID is in $other. Without COMMAND it is
# a heaptap that follows.
other_tool() {
	start "$T/spin" 1
	local one=$PID
	wait_for says spin ready
	if [ "$#" -gt 0 ]; then
		start "$@"
	else
		start "$HEAPTAP" run -q -b bpf -f -o "$BATS_TEST_TMPDIR/other.json" -- "$T/idle"
		# The program of that heaptap begins when all probes are in, those of the C library after those of the loader.
		wait_for says heaptap ready
		# The program goes on when that heaptap has ended.
		STARTED+=("$(pgrep -x -P "$PID" idle)")
	fi
	other=$PID
	wait_for has_probes "$one"
}

# is_no_pass STATUS: the command ended so, and did not say that it has passed
is_no_pass() {
	[ "$status" -eq "$1" ] || { echo "status $status"; cat "$err"; return 1; }
	no_line passed "$err"
}

# bats test_tags=full
@test "ptrace: beside uprobes of another tool nothing is watched, and no rule of --fail-on passes (T6)" {
	local other rule program
	with_bpf_only "the other tool traces by BPF"
	not_by_inline "the other tool traces by BPF"
	other_tool
	for rule in definite errors growth:5%; do
		traced -b ptrace --fail-on "$rule" -- "$T/leak"
		is_no_pass 6
	done
	grep -q 'libc.*no breakpoint at .* somebody else.*: no call of its functions is seen' "$err"
	for program in nothing leak_cpp dlopen; do
		traced -b ptrace --fail-on definite -- "$T/$program" "$T/plug_leak.so" "$T/plug_own.so"
		is_no_pass 6
		is .watched false
		is .scan null
	done
	traced -b ptrace -f --fail-on definite -- /bin/sh -c "'$T/leak'; '$T/leak' & wait"
	is_no_pass 6
	jq -e 'all(.processes[]; .watched | not)' "$report"
	spinning
	run -6 "$HEAPTAP" attach -b ptrace --fail-on definite "$TARGET"
	[[ $output == *"somebody else"* ]]
}

# overlaid COMMAND...: a run by ptrace, where this tool places uprobes when the program runs already
overlaid() {
	local other tap
	err=$BATS_TEST_TMPDIR/run.err
	report=$BATS_TEST_TMPDIR/run.json
	stepping bash -c 'exec "$0" run -b ptrace --fail-on definite --force -o "$1" -- "$2" 2>"$3"' "$HEAPTAP" "$report" "$T/step" "$err"
	tap=$TARGET
	step "alloc 1 100"
	other_tool "$@"
	step "alloc 3 100"
	exec {STEP[1]}>&-
	status=0
	# bash forgets STEP_PID when this process has ended.
	wait "$tap" || status=$?
	is_no_pass 6
	grep -qE 'another program has a uprobe on [a-z_]+: calls are missed|others have uprobes in it' "$err"
	[ "$(field .lost.other)" -gt 0 ]
	[[ $(field .verdict) == *"leaks among the blocks that were seen;"* ]] || { field .verdict; return 1; }
	kill -TERM "$other"
	wait_for gone "$other"
}

@test "ptrace: uprobes of another tool that come during the trace are noticed, and no rule of --fail-on passes (T6)" {
	with_bpf_only "the other tool traces by BPF"
	not_by_inline "the other tool traces by BPF"
	overlaid
}

# bats test_tags=full
@test "ptrace: a uprobe on the first instruction of malloc alone, which needs no page in the process, is noticed (T6)" {
	local libc
	command -v bpftrace >/dev/null || skip "no bpftrace"
	timeout 60 bpftrace -e 'BEGIN { exit(); }' >/dev/null 2>&1 || skip "bpftrace does not work here"
	libc=$(ldd "$T/step" | awk '$1 ~ /^libc\.so/ { print $3 }')
	overlaid timeout -s INT 120 bpftrace -e "uprobe:$libc:malloc { @calls = count(); }"
}

# bats test_tags=full
@test "ptrace: same reports as by BPF: children with copies of the memory, with their parent's, with their own (A14, A16)" {
	same_reports -f -- "$T/fork" 5
	same_reports -f --max-procs 2 -- "$T/fork" 5 1
	same_reports -f -- "$T/sharers" vfork
	same_reports -f -- "$T/sharers" clone
	same_reports -f -- /bin/sh -c "'$T/leak'; '$T/exitcodes' exit 3"
}

# bats test_tags=full
@test "ptrace: same reports as by BPF: sqlite3, git" {
	command -v sqlite3 >/dev/null || skip "sqlite3 is not installed"
	same_reports -- sqlite3 :memory: "create table t(a,b); insert into t values(1,2); select * from t;"
	same_reports -- git --version
}

# bats test_tags=full
@test "ptrace: counts of 8 threads are the oracle's" {
	counted -b ptrace -q -- "$T/threads" 8 2000
	[ "$status" -eq 0 ]
	as_counted
	nothing_lost
}

# bats test_tags=core
@test "ptrace: taken where there is no BPF, and the reason is said" {
	for err in ENOSYS EPERM; do
		run --separate-stderr "$T/nobpf" "$err" all "$HEAPTAP" run --force -o "$BATS_TEST_TMPDIR/report.json" -- "$T/leak"
		[ "$status" -eq 0 ]
		[[ $stderr == *"by ptrace"*"bpf(2)"* ]]
		report=$BATS_TEST_TMPDIR/report.json
		jq -e '.backend == "ptrace"' "$report"
		nothing_lost
	done
	run --separate-stderr "$T/nobpf" ENOSYS all "$HEAPTAP" run -b bpf -- "$T/leak"
	[ "$status" -eq 3 ]
}

# bats test_tags=full
@test "ptrace: children in every way end well, whatever memory they have (A14, A16)" {
	traced -b ptrace -- "$T/tree"
	[ "$status" -eq 0 ] || { cat "$out" "$err"; return 1; }
	grep -qx done "$out"
	[ "$(of_function use_heap allocs)" -gt 100 ]
	[ "$(of_function use_heap live_blocks)" -eq 0 ]
	[ "$(of_function in_copy allocs)" -eq 0 ]
}

# bats test_tags=full
@test "ptrace: children that are made so that no tracer is told of them end well (A14, A16)" {
	local program
	for program in tree tree-static tree-musl tree-32; do
		[ -e "$T/$program" ] || { echo "# no $program here" >&3; continue; }
		traced -b ptrace -- "$T/$program" hidden
		[ "$status" -eq 0 ] || { echo "$program"; cat "$out" "$err"; return 1; }
		grep -qx done "$out"
		# 20 rounds of 4 children that allocate 20 blocks in the memory of their parent
		jq -e '[.processes[0].stacks[] | select(any(.frames[]; .function == "in_same_heap")) | .allocs] |
			add == 1600' "$report"
		is .lost.other 0
	done
	traced -f -b ptrace -- "$T/tree" hidden
	[ "$status" -eq 0 ]
	jq -e '.processes | length == 141' "$report"
}

# bats test_tags=full
@test "ptrace: exec by a process whose memory another one goes on to use: that one is let go, and counted (A14, A16)" {
	traced -b ptrace -- "$T/sharers" exec
	[ "$status" -eq 0 ]
	jq -e '[.processes[].lost.other] | add >= 1' "$report"
	traced -f -b ptrace -- "$T/sharers" exec
	[ "$status" -eq 0 ]
}

# bats test_tags=core
@test "ptrace: exec from a thread while 50 others run (A15)" {
	traced -b ptrace -- "$T/exec" -t "$T/exec" -t "$T/exitcodes" exit 3
	[ "$status" -eq 3 ]
	jq -e '.processes | length == 3' "$report"
}

@test "ptrace: breakpoints of the program's own reach it, and are not taken for ours" {
	traced -b ptrace --alloc malloc=own_malloc,free=free -- "$T/trap"
	[ "$status" -eq 0 ]
	as_told
	[ "$(uname -m)" != x86_64 ] || grep -q 'no breakpoint at .*somebody else' "$err"
}

# bats test_tags=ptrace,inline
@test "ptrace: SIGTRAP that is blocked, and waits: in threads, in a child, and from before the program (T4)" {
	traced -- "$T/trap_waits"
	[ "$status" -eq 0 ] || { echo "status $status"; cat "$err" "$out"; return 1; }
	[ "$(field .functions.malloc)" -ge "$(awk '$2 == "calls" { print $4 }' "$out")" ]
	"$T/trap_waits" start "$HEAPTAP" run -q -o /dev/null --format text -- "$T/trap_waits" still
	[ "${HEAPTAP_BACKEND:-}" = ptrace ] ||
		bash -c "trap '' TRAP; exec '$HEAPTAP' run -q -o /dev/null --format text -- true" 2>&1 |
		grep -q 'it begins with SIGTRAP ignored'
}

@test "ptrace: signals that come at an instruction which must run all arrive, with what they carry" {
	traced -b ptrace --alloc malloc=own_malloc,free=free -- "$T/queued"
	[ "$status" -eq 0 ]
	[ "$(field .functions.own_malloc)" -eq "$(awk '$2 == "calls" { print $4 }' "$out")" ]
}

# bats test_tags=full
@test "ptrace: a program that blocks SIGTRAP: that its handler goes is said; with BPF it keeps it" {
	start "$T/trap_blocked"
	TARGET=$PID
	wait_for says trap_blocked ready
	attached -b ptrace "$TARGET"
	detach
	grep -q 'it blocks SIGTRAP.*--backend bpf' "$err"
	jq -e '.processes[0].lost | .allocs + .frees == 0' "$report"
	kill -TERM "$TARGET"
	ended "$TARGET" 0
	start "$T/trap_blocked"
	TARGET=$PID
	wait_for says trap_blocked ready
	attached -b bpf "$TARGET"
	detach
	fails grep -q SIGTRAP "$err"
	kill -TERM "$TARGET"
	ended "$TARGET" 0
	says trap_blocked 'handler kept'
}

# bats test_tags=full
@test "ptrace: serve: a program that runs before the client comes, for one client after the other" {
	local dir=$BATS_TEST_TMPDIR/net i server
	mkdir -m 700 "$dir"
	start "$HEAPTAP" serve -b ptrace --listen "unix:$dir/s" -- "$T/spin"
	server=$PID
	wait_for says heaptap ready
	TARGET=$(pgrep -x -P "$server" spin)
	STARTED+=("$TARGET")
	for i in 1 2; do
		start bash -c "exec '$HEAPTAP' connect --max-pause 60s --sysroot / -o '$dir/$i.json' 'unix:$dir/s' 2>'$dir/$i.said'"
		wait_for grep -qs 'connected;' "$dir/$i.said"
		works "$TARGET"
		kill -INT "$PID"
		ended "$PID" 0
		jq -e --argjson p "$TARGET" '.backend == "ptrace" and (.processes[0] | .pid == $p and .totals.allocs > 0)' "$dir/$i.json"
		untouched "$TARGET"
	done
	kill -TERM "$TARGET"
	ended "$server" 0
}

@test "ptrace: a process that another one traces is refused, with its name" {
	spinning
	attached -b ptrace "$TARGET"
	run --separate-stderr "$HEAPTAP" attach -b ptrace -t 100ms "$TARGET"
	[ "$status" -eq 3 ]
	[[ $stderr == *"traced by tracer-of-heapt (PID "*"--backend bpf"* ]]
	detach
	untouched "$TARGET"
}

# cpus PID: the CPUs on which it may run
cpus() { awk '/^Cpus_allowed_list:/ { print $2 }' "/proc/$1/status"; }
has_cpus() { [ "$(cpus "$1")" = "$2" ]; }

# is_tied PID: it may run on one CPU only
is_tied() { [[ $(cpus "$1") != *[,-]* ]]; }

# bats test_tags=full
@test "ptrace: a busy thread is kept on one CPU while it is traced, and has its CPUs back then (A4)" {
	local before
	stepping
	before=$(cpus "$TARGET")
	! is_tied "$TARGET" || skip "only one CPU"
	attached -b ptrace --no-scan "$TARGET"
	step "alloc 5 10"
	has_cpus "$TARGET" "$before"
	# Only if its stops come fast enough.
	wait_for is_tied_by_burst "$TARGET"
	step copy
	wait_for has_cpus "$(pgrep -P "$TARGET")" "$before"
	step "threads 3 500"
	detach
	has_cpus "$TARGET" "$before"
	start "$HEAPTAP" attach -q -b ptrace --no-scan -o "$BATS_TEST_TMPDIR/killed.json" "$TARGET"
	wait_for has_probes "$TARGET"
	wait_for is_tied_by_burst "$TARGET"
	kill -KILL "$PID"
	wait "$PID" || true
	untouched "$TARGET"
	has_cpus "$TARGET" "$before"
}

is_tied_by_burst() { step "burst 2000" && is_tied "$1"; }

# bats test_tags=full
@test "ptrace: a mask of CPUs that a tied thread sets stays, and new threads and programs have all CPUs" {
	local every
	[ "$(nproc)" -gt 1 ] || skip "only one CPU"
	every=$(python3 -c 'import os; print(*os.sched_getaffinity(0))')
	traced -q -b ptrace --no-scan -- python3 -c 'import ctypes, os, sys, threading, time
libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
libc.free.argtypes = [ctypes.c_void_p]
every = {int(cpu) for cpu in sys.argv[1].split()}
def busy():
    for i in range(1000): libc.free(libc.malloc(100))
def comes_back(tid):
    for i in range(3000):
        if os.sched_getaffinity(tid) == every: return True
        time.sleep(0.01)
while len(os.sched_getaffinity(0)) > 1: busy()
print("tied", len(os.sched_getaffinity(0)) == 1)
over = threading.Event()
thread = threading.Thread(target=over.wait)
thread.start()
print("thread", comes_back(thread.native_id))
over.set(); thread.join()
busy()
child = os.fork()
if not child:
    print("child", comes_back(0), flush=True); os._exit(0)
os.waitpid(child, 0)
os.sched_setaffinity(0, every)
print("own", os.sched_getaffinity(0) == every)' "$every"
	[ "$status" -eq 0 ] || { echo "status $status"; cat "$err" "$out"; return 1; }
	grep -Ex '(child|own|thread|tied) True' "$out" | sort -u | tr '\n' ' ' >"$BATS_TEST_TMPDIR/said"
	[ "$(cat "$BATS_TEST_TMPDIR/said")" = "child True own True thread True tied True " ] || { cat "$out"; return 1; }
}

# First it chooses all CPUs, which heaptap sees after some thousand stops, then the only one that it had when tied.
# bats test_tags=full
@test "ptrace: a tied thread that sets its mask itself is left alone, also with the mask of the tie" {
	local every
	[ "$(nproc)" -gt 1 ] || skip "only one CPU"
	every=$(python3 -c 'import os; print(*os.sched_getaffinity(0))')
	traced -q -b ptrace --no-scan -- python3 -c 'import ctypes, os, sys
libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
libc.free.argtypes = [ctypes.c_void_p]
def busy():
    for i in range(1000): libc.free(libc.malloc(100))
while len(os.sched_getaffinity(0)) > 1: busy()
tie = os.sched_getaffinity(0)
os.sched_setaffinity(0, {int(cpu) for cpu in sys.argv[1:]})
busy(); busy()
os.sched_setaffinity(0, tie)
print("wants", *tie, flush=True)
os.execvp("sh", ["sh", "-c", "while read -r a b; do echo $a $b; done </proc/self/status"])' $every
	[ "$status" -eq 0 ] || { echo "status $status"; cat "$err" "$out"; return 1; }
	[ "$(awk '/^Cpus_allowed_list:/ { print $2 }' "$out")" = "$(awk '$1 == "wants" { print $2 }' "$out")" ] ||
		{ cat "$out"; return 1; }
}

# An exec by a thread that is not the first gives the mask back under the TID of the first.
# bats test_tags=full
@test "ptrace: a program that a tied thread executes has all CPUs" {
	local every
	[ "$(nproc)" -gt 1 ] || skip "only one CPU"
	every=$(cpus self)
	traced -q -b ptrace --no-scan -- python3 -c 'import ctypes, os, threading
libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
libc.free.argtypes = [ctypes.c_void_p]
def change():
    while len(os.sched_getaffinity(0)) > 1: libc.free(libc.malloc(100))
    print("tied", len(os.sched_getaffinity(0)) == 1, flush=True)
    os.execvp("sh", ["sh", "-c", "while read -r a b; do echo $a $b; done </proc/self/status"])
thread = threading.Thread(target=change)
thread.start(); thread.join()'
	[ "$status" -eq 0 ] || { echo "status $status"; cat "$err" "$out"; return 1; }
	grep -qx "tied True" "$out"
	[ "$(awk '/^Cpus_allowed_list:/ { print $2 }' "$out")" = "$every" ] || { cat "$out"; return 1; }
}

# bats test_tags=rounds,full
@test "ptrace: heaptap is killed at random moments, 8 threads go on (A4)" {
	spinning 0 8
	for ((i = 0; i < HEAPTAP_ROUNDS; i++)); do
		start "$HEAPTAP" attach -q -b ptrace --no-scan -o "$BATS_TEST_TMPDIR/r$i.json" "$TARGET"
		sleep "0.$(printf %03d $((RANDOM % 300)))"
		kill -KILL "$PID"
		wait "$PID" || true
		untouched "$TARGET"
	done
	kill -TERM "$TARGET"
	ended "$TARGET" 0
	says spin '^total malloc'
}

# bats test_tags=rounds,full
@test "ptrace: run: heaptap is killed at random moments, the program goes on to its own end (A4, A6)" {
	local spin=$BATS_TEST_TMPDIR/spin-$$ last=
	cp "$T/spin" "$spin"
	for ((i = 0; i < HEAPTAP_ROUNDS; i++)); do
		start "$HEAPTAP" run -q -b ptrace -o "$BATS_TEST_TMPDIR/r$i.json" -- "$spin" 0 4
		sleep "0.$(printf %03d $((RANDOM % 400)))"
		kill -KILL "$PID"
		wait "$PID" || true
		TARGET=$(pgrep -n -x "spin-$$" || true)
		# Killed before there was one; the one before may be a zombie still.
		[ -n "$TARGET" ] && [ "$TARGET" != "$last" ] || continue
		last=$TARGET
		STARTED+=("$TARGET")
		untouched "$TARGET"
		kill -TERM "$TARGET"
		wait_for gone "$TARGET"
		says heaptap '^total malloc' || ! says heaptap ready
	done
}

# After the exec the thread has the TID of the first one, which reported its exit before.
# bats test_tags=full
@test "ptrace: run: exec from a thread, then heaptap is killed: the program goes on (A4, A15)" {
	local spin=$BATS_TEST_TMPDIR/spin-$$
	cp "$T/spin" "$spin"
	for ((i = 0; i < HEAPTAP_ROUNDS / 10 + 1; i++)); do
		start "$HEAPTAP" run -q -b ptrace -o "$BATS_TEST_TMPDIR/r$i.json" -- "$T/exec" -t "$spin" 0
		wait_for says heaptap ready
		TARGET=$(pgrep -n -x "spin-$$")
		STARTED+=("$TARGET")
		sleep "0.$(printf %03d $((RANDOM % 300)))"
		kill -KILL "$PID"
		wait "$PID" || true
		untouched "$TARGET"
		kill -TERM "$TARGET"
		wait_for gone "$TARGET"
		says heaptap '^total malloc'
	done
}

@test "ptrace: the guardian is killed: heaptap reports it, and ends with 5 (A4)" {
	spinning
	attached -b ptrace "$TARGET"
	works "$TARGET"
	kill -KILL "$(pgrep -P "$TAP")"
	ended "$TAP" 5 || { cat "$err"; return 1; }
	[ "$(grep -c 'the guardian (PID [0-9]*) has died' "$err")" -eq 1 ]
}

@test "ptrace: heaptap is stopped: the target goes on, what is lost is counted (A8)" {
	spinning 0
	attached -b ptrace --ring-size 64K "$TARGET"
	kill -STOP "$TAP"
	# More than its ring holds.
	wait_for has_used "$TARGET" $(($(ticks "$TARGET") + 100))
	kill -CONT "$TAP"
	kill -INT "$TAP"
	ended "$TAP" 5
	jq -e '.processes[0].lost.allocs > 0' "$report"
	untouched "$TARGET"
}

# bats test_tags=core
@test "ptrace: SIGSTOP and SIGCONT while tracing, the guardian is not a child of the target's (A12)" {
	spinning 10 4
	attached -b ptrace "$TARGET"
	kill -STOP "$TARGET"
	wait_for grep -q '^State:.[Tt]' "/proc/$TARGET/status"
	kill -CONT "$TARGET"
	works "$TARGET"
	detach
	untouched "$TARGET"
	kill -TERM "$TARGET"
	ended "$TARGET" 0
}

# The kernel looks at all threads to find one that has stopped: asked once for each stop, this takes 4 s of CPU time.
# bats test_tags=full
@test "ptrace: to stop 8,000 threads takes time in proportion to them (A18)" {
	local TIMEFORMAT='%S'
	start "$T/idle" 8000
	TARGET=$PID
	wait_for says idle ready
	says idle 'ready 8000' || skip "no room for 8,000 threads here: $(cat "$BATS_TEST_TMPDIR/idle.out")"
	{ time "$HEAPTAP" attach -b ptrace -q --no-scan -t 100ms "$TARGET" >"$BATS_TEST_TMPDIR/report" 2>&1; } 2>"$BATS_TEST_TMPDIR/seconds"
	awk '{ exit !($1 < 2) }' "$BATS_TEST_TMPDIR/seconds" || { cat "$BATS_TEST_TMPDIR/seconds"; false; }
	untouched "$TARGET"
}

# bats test_tags=full
@test "ptrace: a limit of CPU time does not end the guardian, and with it the target (A4)" {
	local guardian
	(ulimit -t 1000 && ulimit -t unlimited) 2>/dev/null || skip "limits cannot be lifted here (CAP_SYS_RESOURCE)"
	spinning 0 4
	start bash -c "ulimit -t 2; exec '$HEAPTAP' attach -b ptrace --no-scan $TARGET >'$BATS_TEST_TMPDIR/report'"
	TAP=$PID
	wait_for grep -q 'attached to' "$BATS_TEST_TMPDIR/bash.err"
	guardian=$(pgrep -P "$TAP" -x tracer-of-heapt)
	# The kernel would have killed it by now.
	wait_for has_used "$guardian" 350
	is_running "$guardian"
	kill -INT "$TAP"
	wait_for gone "$TAP"
	untouched "$TARGET"
}

# bats test_tags=full
@test "ptrace: a limit of CPU time that cannot be lifted: the guardian detaches before it (A4)" {
	spinning 0 4
	start setpriv --bounding-set=-sys_resource bash -c "ulimit -t 3; exec '$HEAPTAP' attach -b ptrace --no-scan $TARGET >'$BATS_TEST_TMPDIR/report'"
	ended "$PID" 5
	grep -q 'the limit of CPU time (ulimit -t) is reached: tracing has ended' "$BATS_TEST_TMPDIR/setpriv.err"
	untouched "$TARGET"
}

# all_in_state LETTER PID...
all_in_state() {
	local letter=$1 pid
	shift
	for pid; do grep -q "^State:.$letter" "/proc/$pid/status" || return 1; done
}

# The tracer stands still until the last child waits for it. Then it hears of that one first, and of the ends of the others
# before their parent tells of it.
@test "ptrace: the ends of children leave the breakpoints of a new one (A16)" {
	local go round pids tracer
	for round in 1 2 3; do
		go=$BATS_TEST_TMPDIR/go$round
		start "$T/sisters" "$go"
		TARGET=$PID
		attached -b ptrace -f --no-scan "$TARGET"
		tracer=$(awk '/^TracerPid:/ { print $2 }' "/proc/$TARGET/status")
		touch "$go.first"
		wait_for grep -q '[0-9]' "$BATS_TEST_TMPDIR/sisters.out"
		mapfile -t pids <"$BATS_TEST_TMPDIR/sisters.out"
		wait_for all_in_state S "${pids[@]}" "$TARGET"
		kill -STOP "$tracer"
		touch "$go.second"
		wait_for all_in_state t "${pids[@]}" "$TARGET"
		kill -CONT "$tracer"
		ended "$TAP" 0
		nothing_lost
		jq -e --argjson p "$TARGET" '[.processes[] | select(.pid != $p) | .totals.allocs] | length == 17 and add == 10' "$report"
	done
}
