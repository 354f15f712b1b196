#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# Surroundings that are narrow, shared or strange: limits, other tracers, containers, frozen targets.
#
# bats file_tags=full

load ../lib/common

teardown() {
	[ -z "${FREEZER:-}" ] || thaw
	end_started
	[ -z "${GROUP:-}" ] || rmdir "$GROUP" || true
}

@test "faults: heaptap in a PID namespace of its own: exec and dlopen are seen as outside (E10)" {
	local d=$BATS_TEST_TMPDIR
	unshare -p -f --mount-proc true || skip "no PID namespaces here"
	timeout 120 unshare -p -f --mount-proc "$HEAPTAP" run -q -o "$d/exec.json" -- "$T/exec" "$T/exec" -t "$T/exec" "$T/leak" 3>&-
	jq -e '[.processes[].totals.live_blocks][0, 2] == 4' "$d/exec.json"
	jq -e '.processes | length == 4 and .[3].totals.allocs == 862' "$d/exec.json"
	report=$d/report.json out=$d/out
	timeout 120 unshare -p -f --mount-proc "$HEAPTAP" run -q -o "$report" -- "$T/dlopen" "$T" >"$out" 3>&-
	as_told
	timeout 120 unshare -p -f --mount-proc bash -c "
		works() { awk -v n=\$2 '/^voluntary_ctxt/ { exit \$2 < n }' /proc/\$1/status; }
		'$T/spin' >'$d/spin' & spin=\$!
		until works \$spin 10; do sleep 0.05; done
		'$HEAPTAP' attach -o '$d/attach.json' \$spin 2>'$d/said' & tap=\$!
		until grep -q 'attached to' '$d/said'; do sleep 0.05; done
		so_far=\$(awk '/^voluntary_ctxt/ { print \$2 }' /proc/\$spin/status)
		until works \$spin \$((so_far + 100)); do sleep 0.05; done
		kill -INT \$tap; wait \$tap; kill \$spin" 3>&-
	jq -e '.processes[0].totals.allocs > 0' "$d/attach.json"
}

# freeze_first PID, freeze_second PID: in a control group of its own, of this version; fails where that cannot be had
freeze_first() {
	FREEZER=/sys/fs/cgroup/freezer/heaptap-test-$$
	mkdir "$FREEZER" && echo "$1" >"$FREEZER/cgroup.procs" && echo FROZEN >"$FREEZER/freezer.state" &&
		wait_for grep -qx FROZEN "$FREEZER/freezer.state"
}

freeze_second() {
	local v2
	v2=$(awk '$3 == "cgroup2" { print $2; exit }' /proc/mounts)
	FREEZER=$v2/heaptap-test-$$
	[ -n "$v2" ] && mkdir "$FREEZER" && echo "$1" >"$FREEZER/cgroup.procs" && echo 1 >"$FREEZER/cgroup.freeze" &&
		wait_for grep -qx 'frozen 1' "$FREEZER/cgroup.events"
}

# freeze PID: by the version that there is
freeze() { freeze_first "$1" 2>/dev/null || freeze_second "$1"; }

thaw() {
	local pid
	echo THAWED 2>/dev/null >"$FREEZER/freezer.state" || echo 0 2>/dev/null >"$FREEZER/cgroup.freeze" || true
	while read -r pid; do
		echo "$pid" >"$(dirname "$FREEZER")/cgroup.procs"
	done <"$FREEZER/cgroup.procs"
	rmdir "$FREEZER" || true
	FREEZER=
}

# attached_frozen OPTIONS...: no call is seen. The inline source stops all threads first, or refuses.
attached_frozen() {
	attached --max-pause 500ms "$@" "$TARGET"
	if by_inline; then
		ended "$TAP" 3
		grep -q "PID $TARGET: .* its control group is frozen" "$err"
		untouched "$TARGET"
		return
	fi
	[ $# -gt 0 ] || kill -INT "$TAP"
	ended "$TAP" 0
	is .totals.allocs 0
}

@test "faults: a frozen target: attach and its verdict come to an end, and it goes on afterwards (A20)" {
	spinning
	freeze "$TARGET" 2>/dev/null || { FREEZER=; skip "no control group can be made here"; }
	attached_frozen -t 100ms
	attached_frozen
	thaw
	wait_for untouched "$TARGET"
	kill -TERM "$TARGET"
	ended "$TARGET" 0
}

@test "faults: a census of a frozen target is taken, or says that it is frozen (A20)" {
	local how nr=0
	spinning
	for how in freeze_first freeze_second; do
		"$how" "$TARGET" 2>/dev/null || { FREEZER=; continue; }
		nr=$((nr + 1))
		run "$HEAPTAP" scan --snapshot fork "$TARGET"
		thaw
		[[ "$output" == *"no copy: its control group is frozen"* ]]
		fails grep -F -e --max-pause <<<"$output"
		if [ "$how" = freeze_second ]; then
			[[ "$status" -eq 0 && "$output" == *"Census of PID $TARGET"* ]]
		else
			[ "$(tail -n 1 <<<"$output")" = "heaptap: scan: PID $TARGET: its control group is frozen" ]
		fi
	done
	[ "$nr" -gt 0 ] || skip "no control group can be made here"
	wait_for untouched "$TARGET"
}

# bats test_tags=inline
@test "faults: children of vfork() that call _exit() are not the end of the process whose memory they have (A20)" {
	start "$T/vforked" children
	TARGET=$PID
	attached "$TARGET"
	wait_for has_many
	detach
	fails grep 'is traced by heaptap' "$err"
	is_untraced "$TARGET"
	kill "$TARGET"
	wait_for gone "$TARGET"
}

# has_calls: a report of $TAP says so
has_calls() { kill -USR1 "$TAP" && jq -e '.processes[0].totals.allocs > 0' "$report"; }

@test "faults: a thread waits in vfork, where no signal reaches it: no verdict or one in time, and it goes on (A20)" {
	mkfifo "$BATS_TEST_TMPDIR/line"
	start bash -c "exec '$T/vforked' <'$BATS_TEST_TMPDIR/line' >'$BATS_TEST_TMPDIR/told'"
	TARGET=$PID
	exec 7>"$BATS_TEST_TMPDIR/line"
	wait_for grep -qs ready "$BATS_TEST_TMPDIR/told"
	wait_for grep -q '^State:	D' "/proc/$TARGET/task/$TARGET/status"
	attached --max-pause 500ms "$TARGET"
	if by_inline; then
		ended "$TAP" 3
		grep -q 'its threads cannot be stopped: one does not run' "$err"
	else
		wait_for has_calls
		detach
		jq -e '.processes[0].scan.definite.blocks // 0 == 0' "$report"
	fi
	has_own_code "$TARGET"
	is_untraced "$TARGET"
	echo >&7
	exec 7>&-
	ended "$TARGET" 0
	grep -q 'went on' "$BATS_TEST_TMPDIR/told"
}

@test "faults: a program under seccomp that may only write and end (E6)" {
	for how in filter strict; do
		"$T/confined" "$how" >"$BATS_TEST_TMPDIR/control" || true
		traced -- "$T/confined" "$how"
		[ "$status" -eq 7 ] || { echo "$how: $status"; return 1; }
		as_told
		nothing_lost
	done
}

# noted PATTERN: in the notes of the report
noted() { field '.notes[]' | grep -qE -- "$1" || { echo "notes: $(field .notes)"; return 1; }; }

# gdb_breaks PID: starts a gdb that goes on at each call of malloc, its pid in $GDB
gdb_breaks() {
	printf '%s\n' 'set pagination off' 'break *malloc' 'commands' 'silent' 'continue' 'end' 'continue' >"$BATS_TEST_TMPDIR/gdb.in"
	start timeout -s INT 120 gdb -nx -batch -x "$BATS_TEST_TMPDIR/gdb.in" -p "$1"
	GDB=$PID
	wait_for grep -q 'Breakpoint 1' "$BATS_TEST_TMPDIR/timeout.out"
}

# At each stop gdb takes its breakpoint out, and reads the byte there when it puts it in again. If that was the kernel's,
# gdb steps from one breakpoint into the other for ever, and leaves it in the program, which ends by SIGTRAP.
@test "faults: a gdb with a breakpoint on the same function is told of (A11, E8)" {
	not_by_inline "a program that another process traces is refused"
	local status=0
	spinning
	gdb_breaks "$TARGET"
	attached "$TARGET"
	works "$TARGET"
	kill -INT "$TAP"
	wait "$TAP" || status=$?
	grep -q "PID $TARGET: it is traced by gdb (PID [0-9]*): .* calls are missing" "$err"
	grep -q 'the process is traced by gdb' "$err"
	noted '1 other program \(a debugger\?\) traced it: where both have a breakpoint, calls are missing'
	# Either it is by chance between two stops, or heaptap has seen what gdb did.
	case $status in
	0) nothing_lost ;;
	5) noted 'breakpoints? of heaptap (was|were) overwritten in it by another program' ;;
	*) echo "status $status"; cat "$err"; return 1 ;;
	esac
	kill -TERM "$GDB"
	wait_for gone "$GDB"
	kill -TERM "$TARGET" 2>/dev/null || true
	status=0
	wait "$TARGET" || status=$?
	# By its own end, by the breakpoint, or by the SIGINT with which gdb stopped it.
	[[ $status =~ ^(0|133|130)$ ]] || { echo "the target ended with $status"; return 1; }
}

@test "faults: a gdb that leaves writes the code of the file over a breakpoint (A11, E8)" {
	with_bpf_only "by ptrace there is one tracer"
	not_by_inline "a program that another process traces is refused"
	local status=0
	stepping
	gdb_breaks "$TARGET"
	# Behind this call the breakpoint is in again.
	step "alloc 1 8"
	attached --check "$TARGET"
	step "alloc 2 8"
	kill -TERM "$GDB"
	wait_for gone "$GDB"
	step "alloc 100 32"
	step "free 102"
	kill -INT "$TAP"
	wait "$TAP" || status=$?
	[ "$status" -eq 5 ] || { echo "status $status"; cat "$err"; return 1; }
	grep -q "PID $TARGET: the breakpoint in malloc was overwritten by another program, dropped by madvise(), or replaced by a copy of the code: its calls are missing" "$err"
	noted 'breakpoints? of heaptap (was|were) overwritten in it by another program, dropped by madvise\(\), or copied with code: calls are missing'
	is .functions.malloc 2
	[ "$(field .lost.other)" -ge 1 ]
	# The frees of blocks that were not seen are no errors.
	is '.errors | length' 0
	step quit || true
	ended "$TARGET" 0
}

# Before Linux 6.16 the kernel's programs come too late at the end of a process.
code_is_there_at_the_end() {
	[ "${HEAPTAP_BACKEND:-}" = ptrace ] || [ "$(printf '%s\n' 6.16 "$(uname -r)" | sort -V | head -n 1)" = 6.16 ] ||
		skip "Linux is older than 6.16"
}

# A report while it runs shows it by a look at the code; after its end only a look at its end can.
@test "faults: breakpoints that a target drops by MADV_DONTNEED are a loss, said also at its end (T3)" {
	not_by_inline "its code in the target is no breakpoint"
	code_is_there_at_the_end
	local status
	for end in quit INT; do
		status=0
		stepping
		attached --no-scan "$TARGET"
		step "alloc 10 100"
		step drop
		step "alloc 100 100"
		[ "$end" = INT ] && kill -INT "$TAP" || step quit || true
		wait "$TAP" || status=$?
		[ "$status" -eq 5 ] || { echo "$end: status $status"; cat "$err"; return 1; }
		[ "$(field .lost.other)" -ge 1 ]
		[ "$(field .totals.allocs)" -ge 10 ]
		[ "$(field .totals.allocs)" -lt 110 ]
		[ "$end" = quit ] || step quit || true
		ended "$TARGET" 0
	done
}

@test "faults: breakpoints that a program of run, or its child, drops by MADV_DONTNEED are a loss (T3)" {
	not_by_inline "its code in the target is no breakpoint"
	code_is_there_at_the_end
	report=$BATS_TEST_TMPDIR/report.json
	for program in "exec '$T/step'" "'$T/step'; true"; do
		printf '%s\n' 'alloc 10 100' drop 'alloc 100 100' quit |
			"$HEAPTAP" run --force --follow --no-scan -o "$report" -- bash -c "$program" >/dev/null 2>&1
		jq -e '[.processes[] | select(.comm == "step") | .lost.other] | add >= 1' "$report"
	done
}

# remapping HOW [OPTIONS]: attached to a program that copies its code once it reads a byte, which copies() sends
remapping() {
	local how=$1
	shift
	mkfifo "$BATS_TEST_TMPDIR/$how"
	start bash -c "exec '$T/remaps' '$how' wait <>'$BATS_TEST_TMPDIR/$how'"
	TARGET=$PID
	attached --no-scan --alloc malloc=own_malloc,free=own_free "$TARGET"
}

copies() { echo >"$BATS_TEST_TMPDIR/$1"; }

# copied HOW: the report of a program that goes on in a copy of its code has counted that, or all of its calls
copied() {
	if by_inline || { [ "${HEAPTAP_BACKEND:-}" = ptrace ] && [ "$1" != hook ]; }; then
		nothing_lost
		[ "$(field .functions.malloc)" -ge 2000 ]
	else
		[ "$(field .lost.other)" -ge 1 ]
		[ "$(field .totals.allocs)" -ge 1000 ]
	fi
}

# Programs that want large pages move their code; those that hook functions run copies of the first instructions.
# bats test_tags=ptrace,inline
@test "faults: a program of run that copies code with breakpoints and runs the copy lives, and the loss is said (T3)" {
	local how
	for how in private shared hook; do
		[ "$how" != hook ] || { ! by_inline && [ "$(uname -m)" = x86_64 ]; } || continue
		traced --no-scan --alloc malloc=own_malloc,free=own_free -- "$T/remaps" "$how"
		[ "$status" -eq 0 ] || { echo "$how: status $status"; cat "$err"; return 1; }
		copied "$how"
		[ -n "${HEAPTAP_BACKEND:-}" ] || grep -q 'bpf: PID .*: it has copied code with breakpoints .*malloc' "$err"
	done
}

# By BPF nobody but the kernel is there when the target runs into the copy.
@test "faults: a target that copies code with breakpoints and runs the copy lives, or heaptap says why not (T3)" {
	local how status
	for how in private shared hook; do
		[ "$how" != hook ] || { ! by_inline && [ "$(uname -m)" = x86_64 ]; } || continue
		remapping "$how"
		copies "$how"
		if [ -n "${HEAPTAP_BACKEND:-}" ]; then
			ended "$TARGET" 0
		else
			ended "$TARGET" $((128 + 5))
		fi
		status=0
		wait "$TAP" || status=$?
		copied "$how"
		[ -n "${HEAPTAP_BACKEND:-}" ] || {
			[ "$status" -eq 5 ]
			grep -q "PID $TARGET: ended by SIGTRAP: it had copied code with breakpoints .*malloc.*--backend ptrace" "$err"
		}
	done
}

# A last verdict needs no breakpoint in code that may be moved.
@test "faults: a target of inline that moves its code lives, and has its verdict at its end (T3)" {
	local how
	with_bpf_only "a process that calls _exit() is waited for"
	unset HEAPTAP_NO_CODE
	for how in private shared; do
		mkfifo "$BATS_TEST_TMPDIR/$how"
		start bash -c "exec '$T/remaps' '$how' wait <>'$BATS_TEST_TMPDIR/$how'"
		TARGET=$PID
		attached -b inline "$TARGET"
		copies "$how"
		ended "$TARGET" 0
		ended "$TAP" 0
		nothing_lost
		is .scan.partial true
		is .exit.code 0
	done
}

# The calls after that are seen by nobody.
# bats test_tags=ptrace,inline
@test "faults: a target that moves an older copy of its code over that with probes lives, and the loss is said (T3)" {
	local status=0
	by_inline || [ "${HEAPTAP_BACKEND:-}" = ptrace ] || code_is_there_at_the_end
	mkfifo "$BATS_TEST_TMPDIR/older"
	start bash -c "exec '$T/remaps' older wait <>'$BATS_TEST_TMPDIR/older'"
	TARGET=$PID
	attached "$TARGET"
	copies older
	ended "$TARGET" 0
	wait "$TAP" || status=$?
	[ "$status" -eq 5 ] || { echo "status $status"; cat "$err"; return 1; }
	[ "$(field .lost.other)" -ge 1 ]
	[ "$(field .totals.allocs)" -ge 1000 ]
	[ "$(field .totals.allocs)" -lt 2000 ]
}

# Such a program has no copy of our code.
@test "faults: a target that ends by a breakpoint of its own is not said to have copied code (T3)" {
	remapping own
	copies own
	ended "$TARGET" $((128 + 5))
	wait "$TAP"
	nothing_lost
	fails grep 'copied code' "$err"
	traced --no-scan -- "$T/remaps" own
	[ "$status" -eq $((128 + 5)) ]
	nothing_lost
	fails grep 'copied code' "$err"
}

traces_or_not() { gone "$other" || says timeout traces; }

# Like untouched(), for a target that has changed its own code.
untouched_but_hooked() { is_running "$1" && wait_for is_untraced "$1"; }

# The kernel would run the first instructions of the file's free, in the middle of the jump that lies there.
@test "faults: a target that has hooked its allocator is refused by BPF, and goes on (E8)" {
	with_bpf_only "breakpoints run the code that is in memory"
	[ "$(uname -m)" = x86_64 ] || skip "the hook is x86_64 code"
	local pid status=0
	start "$T/hooked"
	pid=$PID
	wait_for says hooked ready
	"$HEAPTAP" attach -q --no-scan -b bpf "$pid" 2>"$BATS_TEST_TMPDIR/err" || status=$?
	[ "$status" -eq 3 ] || { echo "status $status"; cat "$BATS_TEST_TMPDIR/err"; return 1; }
	grep -q 'free was changed in memory .*use --backend ptrace' "$BATS_TEST_TMPDIR/err"
	untouched_but_hooked "$pid"
	kill -TERM "$pid"
	ended "$pid" 0
}

@test "faults: an allocator that begins with an instruction that the kernel cannot copy: BPF says so (E4)" {
	local backend
	with_bpf_only "breakpoints run the code that is in memory"
	[ "$(uname -m)" = x86_64 ] || skip "the instruction is x86_64 code"
	traced -b bpf -- "$T/locked"
	[ "$status" -eq 0 ] || { echo "status $status"; cat "$err"; return 1; }
	grep -q 'the kernel cannot put a breakpoint on the first instruction .*use --backend ptrace' "$err"
	for backend in ptrace inline; do
		traced -b "$backend" -- "$T/locked"
		nothing_lost
		as_told calls
	done
}

@test "faults: another tool's probes on the same function (E8)" {
	local libc other
	command -v bpftrace >/dev/null || skip "no bpftrace"
	not_by_inline "a program with a breakpoint in one of these functions is refused"
	stepping
	libc=$(awk '/libc[.-].*so/ { print $6; exit }' "/proc/$TARGET/maps")
	start timeout -s INT 120 bpftrace -e "uprobe:$libc:malloc /pid == $TARGET/ { @calls = count(); }
		uretprobe:$libc:malloc /pid == $TARGET/ { @returns = count(); } BEGIN { printf(\"traces\\n\"); }"
	other=$PID
	wait_for traces_or_not
	says timeout traces || skip "bpftrace does not work here: $(tail -1 "$BATS_TEST_TMPDIR/timeout.err")"
	attached "$TARGET"
	step "burst 500"
	detach
	is .totals.allocs 500
	step "burst 100"
	kill -INT "$other"
	wait_for gone "$other"
	[ "$(awk '/@calls/ { print $2 }' "$BATS_TEST_TMPDIR/timeout.out")" -ge 600 ]
	[ "$(awk '/@returns/ { print $2 }' "$BATS_TEST_TMPDIR/timeout.out")" -ge 600 ]
	step "alloc 3 10"
}

@test "faults: the C library is mapped by 200 more processes, one of them busy (E9)" {
	local many
	start bash -c 'for i in {1..200}; do sleep 600 & done; echo ready; wait'
	many=$PID
	wait_for says bash ready
	start "$T/spin" 0
	busy=$PID
	wait_for says spin ready
	stepping
	attached "$TARGET"
	fails has_probes "$busy"
	step "burst 300"
	detach
	is .totals.allocs 300
	untouched "$busy"
	for pid in $(pgrep -P "$many" | sed -n '10p;100p;190p'); do
		untouched "$pid"
	done
}

# memory_group BYTES: GROUP is a memory cgroup of that limit; fails where that cannot be had
memory_group() {
	local v1=/sys/fs/cgroup/memory/heaptap-test-$$ v2
	if mkdir "$v1" 2>/dev/null; then
		GROUP=$v1
		echo "$1" >"$v1/memory.limit_in_bytes"
		return
	fi
	v2=$(awk '$3 == "cgroup2" { print $2; exit }' /proc/mounts)
	GROUP=$v2/heaptap-test-$$
	[ -n "$v2" ] && grep -qw memory "$v2/cgroup.subtree_control" && mkdir "$GROUP" && echo "$1" >"$GROUP/memory.max"
}

@test "faults: a memory cgroup of 48 MiB: blocks beyond it are lost and counted, the report is written (E5)" {
	memory_group $((48 << 20)) || skip "no memory cgroups here"
	stepping
	report=$BATS_TEST_TMPDIR/report.json
	start bash -c 'echo $$ >"$1/cgroup.procs"; shift; exec "$@"' bash "$GROUP" \
		"$HEAPTAP" attach --no-scan -o "$report" "$TARGET"
	TAP=$PID
	wait_for grep -q 'attached to' "$BATS_TEST_TMPDIR/bash.err"
	step "alloc 1500000 16"
	kill -INT "$TAP"
	ended "$TAP" 5 || { cat "$BATS_TEST_TMPDIR/bash.err"; return 1; }
	cat "$BATS_TEST_TMPDIR/bash.err"
	grep -q 'of memory are left for heaptap: events that need more are lost, and counted' "$BATS_TEST_TMPDIR/bash.err"
	jq -e '.processes[0] | .totals.live_blocks > 0 and .lost.other > 0' "$report"
	step "free 3"
}

@test "faults: a memory cgroup of 32 MiB has no room for BPF: ptrace is taken and said (E5)" {
	not_by_inline "another source is taken only where none is asked for"
	local status=0
	memory_group $((32 << 20)) || skip "no memory cgroups here"
	report=$BATS_TEST_TMPDIR/report.json
	bash -c 'echo $$ >"$1/cgroup.procs"; shift; exec "$@"' bash "$GROUP" \
		"$HEAPTAP" run -q -o "$report" -- "$T/failed" >"$BATS_TEST_TMPDIR/out" 2>"$BATS_TEST_TMPDIR/err" 3>&- || status=$?
	cat "$BATS_TEST_TMPDIR/err"
	[ "$status" -eq 0 ]
	grep -q 'run: only .* of memory are left for heaptap, and BPF takes 40.0 MiB: tracing by ptrace' "$BATS_TEST_TMPDIR/err"
	jq -e '.backend == "ptrace" and .processes[0].totals.allocs > 0' "$report"
}

# bats test_tags=full
@test "faults: a memory cgroup of 16 MiB: serve takes ptrace, and a client has all (E5)" {
	memory_group $((16 << 20)) || skip "no memory cgroups here"
	mkdir -m 700 "$BATS_TEST_TMPDIR/net"
	report=$BATS_TEST_TMPDIR/report.json
	start bash -c 'echo $$ >"$1/cgroup.procs"; shift; exec "$@"' bash "$GROUP" \
		"$HEAPTAP" serve --wait --listen "unix:$BATS_TEST_TMPDIR/net/s" -- "$T/leak"
	wait_for test -S "$BATS_TEST_TMPDIR/net/s"
	"$HEAPTAP" connect -q --sysroot / -o "$report" "unix:$BATS_TEST_TMPDIR/net/s"
	ended "$PID" 0
	grep -q 'serve: only .* of memory are left for heaptap, and BPF takes 40.0 MiB: tracing by ptrace' "$BATS_TEST_TMPDIR/bash.err"
	jq -e '.backend == "ptrace"' "$report"
	nothing_lost
	is .scan.definite.blocks 32
}

@test "faults: a memory cgroup of 32 MiB: who asks for BPF or inline is warned, and the program goes on (E5)" {
	local backend
	memory_group $((32 << 20)) || skip "no memory cgroups here"
	stepping
	for backend in bpf inline; do
		bash -c 'echo $$ >"$1/cgroup.procs"; shift; exec "$@"' bash "$GROUP" "$HEAPTAP" attach -q --backend "$backend" \
			-t 100ms --force -o "$BATS_TEST_TMPDIR/r.json" "$TARGET" 2>"$BATS_TEST_TMPDIR/err" 3>&- || true
		cat "$BATS_TEST_TMPDIR/err"
		grep -q 'attach: only .* of memory are left for heaptap, and BPF takes 40.0 MiB: the kernel may end heaptap' "$BATS_TEST_TMPDIR/err"
		untouched "$TARGET"
	done
	step "free 3"
}

@test "faults: a memory cgroup without room for a copy ahead: the next way is taken, and it is said why (E5)" {
	[ "$(uname -m)" = x86_64 ] || skip "processes are copied on x86_64 only"
	memory_group $((150 << 20)) || skip "no memory cgroups here"
	start python3 -c 'import signal; x = bytearray(b"x") * (200 << 20); print("ready", flush=True); signal.pause()'
	TARGET=$PID
	wait_for says python3 ready
	limited() {
		bash -c 'echo $$ >"$1/cgroup.procs"; shift; exec "$@"' bash "$GROUP" \
			"$HEAPTAP" scan --force -o "$BATS_TEST_TMPDIR/r.json" "$@" "$TARGET" 2>"$BATS_TEST_TMPDIR/err" 3>&-
	}
	limited --snapshot precopy --max-pause 60s
	cat "$BATS_TEST_TMPDIR/err"
	grep -q 'no precopy: the copy may take 2.*, and there is room for [0-9.]* MiB (see --max-copy)' "$BATS_TEST_TMPDIR/err"
	jq -e '.copied == false and .scan.definite.blocks >= 0' "$BATS_TEST_TMPDIR/r.json"
	untouched "$TARGET"
	# Without a copy ahead and without a stop there is no verdict.
	status=0
	limited --snapshot precopy --max-pause 1ms || status=$?
	cat "$BATS_TEST_TMPDIR/err"
	[ "$status" -eq 6 ]
	grep -q 'warning: scan: PID .*: no precopy: the copy may take' "$BATS_TEST_TMPDIR/err"
	grep -q 'no verdict, and not stopped for one: that would take about .*, and --max-pause is 1' "$BATS_TEST_TMPDIR/err"
	untouched "$TARGET"
}

@test "faults: 120 processes, fewer descriptors as hard limit: some are traced, the rest is said (E4)" {
	local nr left=$BATS_TEST_TMPDIR/left report=$BATS_TEST_TMPDIR/r.json
	start bash -c 'for i in {1..120}; do sleep 600 & echo $!; done; echo ready; wait'
	wait_for says bash ready
	grep -v ready "$BATS_TEST_TMPDIR/bash.out" >"$BATS_TEST_TMPDIR/pids"
	status=0
	prlimit --nofile=130:130 "$HEAPTAP" attach -q --max-pause 60s -t 100ms -o "$report" $(cat "$BATS_TEST_TMPDIR/pids") 2>"$left" 3>&- ||
		status=$?
	cat "$left"
	[ "$status" -eq 5 ]
	[ "$(wc -l <"$left")" -eq 1 ]
	nr=$(sed -n 's/^heaptap: warning: attach: only \([0-9]*\) of 120 processes are traced: heaptap may open 130 files;.*/\1/p' "$left")
	[ "$nr" -ge 1 ] && [ "$nr" -lt 120 ]
	[ "$(jq '.processes | length' "$report")" -eq "$nr" ]
	prlimit --nofile=1024:1024 "$HEAPTAP" attach -q --max-pause 60s -t 100ms --force -o "$report" $(cat "$BATS_TEST_TMPDIR/pids") 2>"$left" 3>&-
	[ "$(jq '.processes | length' "$report")" -eq 120 ]
}

@test "faults: few descriptors, no tracefs: a report or a reason, the target untouched (E4, E5)" {
	spinning
	for n in 10 12 16 20 24 32; do
		status=0
		bash -c "ulimit -n $n; exec '$HEAPTAP' attach -q -t 100ms --force -o '$BATS_TEST_TMPDIR/r.json' $TARGET" \
			2>"$BATS_TEST_TMPDIR/err" 3>&- || status=$?
		[[ $status =~ ^[03456]$ ]] || { echo "$n descriptors: $status"; cat "$BATS_TEST_TMPDIR/err"; return 1; }
		[ "$status" -eq 0 ] || [ -s "$BATS_TEST_TMPDIR/err" ]
	done
	untouched "$TARGET"
	start unshare -m bash -c "mount -t tmpfs none /sys && exec '$HEAPTAP' attach -o '$BATS_TEST_TMPDIR/sys.json' $TARGET"
	wait_for grep -q 'attached to' "$BATS_TEST_TMPDIR/unshare.err"
	works "$TARGET"
	kill -INT "$PID"
	ended "$PID" 0
	jq -e '.processes[0].totals.allocs > 0' "$BATS_TEST_TMPDIR/sys.json"
}

# out_of_time SOURCE: heaptap comes to its limit of CPU time, which the test lowers when it traces
out_of_time() {
	local d=$BATS_TEST_TMPDIR
	spinning
	start bash -c "ulimit -t 1000; exec '$HEAPTAP' attach -b $1 --no-scan -o '$d/report.json' $TARGET"
	TAP=$PID
	wait_for grep -q 'attached to' "$d/bash.err"
	# At the hard limit the kernel kills: the time from the soft one on is for the report.
	[ "$(prlimit --pid "$TAP" --cpu --noheadings --output SOFT,HARD | xargs)" = "990 1000" ]
	works "$TARGET"
	prlimit --pid "$TAP" --cpu=0:1000
	ended "$TAP" 5
	grep -q '^heaptap: the limit of CPU time (ulimit -t) is near: tracing ends' "$d/bash.err"
	jq -e '.processes[0].totals.allocs > 0' "$d/report.json"
	untouched "$TARGET"
	kill -TERM "$TARGET"
	ended "$TARGET" 0
}

@test "faults: a limit of CPU time, BPF: the probes come out, the report is written, status 5 (A5)" {
	with_bpf_only "by ptrace another process does the work, see ptrace.bats"
	out_of_time bpf
}

@test "faults: a limit of CPU time, inline: the code comes out, the report is written, status 5 (A5)" {
	[ "$(uname -m)" = x86_64 ] || skip "the inline source knows x86_64 only"
	out_of_time inline
}

@test "faults: a limit of CPU time, run: the program has its own limit, no signal, and runs on untraced (A5)" {
	(ulimit -t 1000; exec "$HEAPTAP" run -q -o "$BATS_TEST_TMPDIR/limits.json" -- grep 'cpu time' /proc/self/limits) >"$BATS_TEST_TMPDIR/limits" 3>&-
	grep -qE 'cpu time +1000 +1000 ' "$BATS_TEST_TMPDIR/limits"
	report=$BATS_TEST_TMPDIR/report.json
	start "$HEAPTAP" run --no-scan -o "$report" -- "$T/spin"
	TAP=$PID
	wait_for says heaptap ready
	TARGET=$(pgrep -P "$TAP" -x spin)
	kill -XCPU "$TAP"
	wait_for test -s "$report"
	kill -XCPU "$TAP"
	wait_for untouched "$TARGET"
	works "$TARGET"
	kill -TERM "$TARGET"
	ended "$TAP" 5
	[ "$(grep -c 'the limit of CPU time (ulimit -t) is near' "$BATS_TEST_TMPDIR/heaptap.err")" = 1 ]
}

@test "faults: a target that may not be dumped (E2)" {
	start "$T/confined" undumpable
	TARGET=$PID
	wait_for says confined ready
	attached "$TARGET"
	works "$TARGET"
	detach
	[ "$(field .functions.malloc)" -gt 0 ]
	nothing_lost
	untouched "$TARGET"
}

# denied_by_yama SCOPE [COMMAND...]: heaptap (by the command) where Yama has this setting; a filter refuses as Yama would
denied_by_yama() {
	local scope=$1
	shift
	status=0
	timeout 60 unshare -m bash -c 'mount -t tmpfs none /proc/sys/kernel && mkdir /proc/sys/kernel/yama || exit 99
		echo "$1" >/proc/sys/kernel/yama/ptrace_scope
		exec "${@:2}"' bash "$scope" python3 "$ROOT/tests/lib/deny_ptrace.py" "$TARGET" "$@" \
		"$HEAPTAP" attach -q --backend ptrace -t 100ms "$TARGET" >/dev/null 2>"$BATS_TEST_TMPDIR/err" 3>&- ||
		status=$?
	[ "$status" -eq 3 ] || { echo "$status"; cat "$BATS_TEST_TMPDIR/err"; return 1; }
	grep -q 'not permitted to trace it' "$BATS_TEST_TMPDIR/err"
}

@test "faults: Yama forbids to trace: its setting is told (E2)" {
	not_by_inline "another user cannot read the file that chooses the source"
	local told="$BATS_TEST_TMPDIR/err" nobody=(setpriv --reuid=65534 --regid=65534 --clear-groups)
	start "${nobody[@]}" "$T/spin"
	TARGET=$PID
	wait_for says setpriv ready
	denied_by_yama 0 "${nobody[@]}"
	no_line ptrace_scope "$told"
	denied_by_yama 1 "${nobody[@]}"
	grep -q 'kernel.yama.ptrace_scope is 1: be root, or start it with "heaptap run"' "$told"
	denied_by_yama 2 "${nobody[@]}"
	grep -q 'kernel.yama.ptrace_scope is 2, which asks for CAP_SYS_PTRACE' "$told"
	denied_by_yama 2
	no_line ptrace_scope "$told"
	denied_by_yama 3
	grep -q 'kernel.yama.ptrace_scope is 3, which forbids it to all' "$told"
	untouched "$TARGET"
}

@test "faults: valgrind, whose client uses the same libraries, is left alone (B12)" {
	local d=$BATS_TEST_TMPDIR
	valgrind -q "$T/exitcodes" exit 3 >/dev/null 2>&1 || [ $? -eq 3 ] || skip "valgrind does not work here"
	traced -- valgrind -q "$T/exec" "$T/exitcodes" exit 3
	[ "$status" -eq 3 ] || { echo "$status"; cat "$err"; return 1; }
	grep -q 'runs the code of another program' "$err"
	start valgrind -q --log-file=/dev/null "$T/spin" 1
	TARGET=$PID
	wait_for says valgrind ready
	status=0
	timeout 60 "$HEAPTAP" attach -q -t 100ms "$TARGET" >/dev/null 2>"$d/err" 3>&- || status=$?
	[ "$status" -eq 4 ]
	grep -q 'runs the code of another program' "$d/err"
	works "$TARGET"
}

is_named() { grep -q "PID $1: it runs the code of its program by itself" "$err"; }
named_or_gone() { is_named "$1" || gone "$1"; }

@test "faults: --follow says which emulators get the probes, those that run and those that begin (B12)" {
	local emulator
	[ "${HEAPTAP_BACKEND:-}" != ptrace ] || skip "ptrace puts probes into its targets only"
	valgrind -q "$T/exitcodes" exit 3 >/dev/null 2>&1 || [ $? -eq 3 ] || skip "valgrind does not work here"
	start "$T/spin" 1
	TARGET=$PID
	wait_for says spin ready
	start valgrind -q --log-file=/dev/null "$T/spin" 1
	emulator=$PID
	wait_for says valgrind ready
	attached -f "$TARGET"
	grep "PID $emulator: it runs the code of its program by itself" "$err"
	# A probe may end it by SIGTRAP before heaptap has looked at it.
	for _ in {1..10}; do
		start valgrind -q --log-file=/dev/null "$T/spin" 1
		emulator=$PID
		wait_for named_or_gone "$emulator"
		is_named "$emulator" && break
	done
	is_named "$emulator"
	detach
}

@test "faults: numbers of processes of 22 bits: live, from a recording" {
	local d=$BATS_TEST_TMPDIR same
	# In a PID namespace the next number can be chosen.
	unshare -p -f --mount-proc sh -c 'echo 4190000 >/proc/sys/kernel/ns_last_pid' || skip "numbers of processes cannot be chosen here"
	timeout 120 unshare -p -f --mount-proc bash -c "
		echo 4190000 >/proc/sys/kernel/ns_last_pid
		'$HEAPTAP' run -q -o '$d/live.json' -w '$d/r.heaptap' -- '$T/leak' >/dev/null" 3>&-
	[ "$(jq '.processes[0].pid' "$d/live.json")" -gt 4190000 ] || skip "numbers of processes have fewer bits here"
	"$HEAPTAP" report -q -o "$d/replayed.json" "$d/r.heaptap"
	jq -e '.processes[0].totals.live_blocks == 102' "$d/live.json"
	same='.processes[0] | [.pid, .totals.allocs, .totals.live_bytes, .scan.definite]'
	[ "$(jq -c "$same" "$d/live.json")" = "$(jq -c "$same" "$d/replayed.json")" ]
}

# told NR: the program has made so many blocks
told() { grep -q "^made $1 " "$out"; }

@test "faults: functions that begin with a nop of five bytes, over which Linux 6.18 writes a call: two traces at once, SIGKILL (E7, E8)" {
	[ "$(uname -m)" = x86_64 ] || skip "the nop is that of x86_64"
	local allocator="malloc=my_alloc,free=my_free"
	cd "$BATS_TEST_TMPDIR"
	kinds long_nop
	attached --backend bpf --no-scan --alloc "$allocator" "$TARGET"
	tell
	wait_for told 1000
	# The kernel does so from the second call on.
	if grep -q '_optimize$' <(grep arch_uprobe /proc/kallsyms); then
		grep -q '^made 1000 e8' "$out"
	else
		echo "# this kernel leaves the breakpoint" >&3
	fi
	start bash -c 'exec "$0" attach --backend bpf --no-scan -o second.json --alloc "$1" "$2" 2>second.err' \
		"$HEAPTAP" "$allocator" "$TARGET"
	wait_for grep -qs 'attached to' second.err
	tell
	wait_for told 2000
	kill -INT "$PID"
	ended "$PID" 0
	[ "$(jq '.processes[0].totals.allocs' second.json)" -eq 1000 ]
	detach
	is .totals.allocs 2000
	nothing_lost
	untouched "$TARGET"
	attached --backend bpf --no-scan --alloc "$allocator" "$TARGET"
	tell
	wait_for told 3000
	kill -KILL "$TAP"
	wait_for untouched "$TARGET"
	tell
	wait_for told 4000
}

@test "environment: facts about the kernel: kept, spoiled, and without a place" {
	with_bpf_only "other sources ask less of the kernel"
	local d=$BATS_TEST_TMPDIR script
	cat >"$d/script" <<-'EOF'
		mount -t tmpfs -o mode=755 none /run || exit 99
		say() { "$HEAPTAP" run -v --backend bpf -o "$1.json" -- "$2" 2>"$1.log" || exit 1; }
		say "$1/first" "$2"
		mkdir "$1/was" && cp -a /run/heaptap/kernel-* "$1/was/" || exit 2
		say "$1/second" "$2"
		# A busy machine can spoil a trial: the next run tries that again.
		for again in 1 2 3 4; do
			cmp -s "$1"/was/* /run/heaptap/kernel-* && break
			cp -a /run/heaptap/kernel-* "$1/was/" && rm "$1/second.json" && say "$1/second" "$2"
		done
		cmp "$1"/was/* /run/heaptap/kernel-* || exit 3
		printf x | dd of="$(echo /run/heaptap/kernel-*)" conv=notrunc status=none
		say "$1/spoiled" "$2"
		cmp -n 64 "$1"/was/* /run/heaptap/kernel-* || exit 4 # the times of a trial follow
		rm -r /run/heaptap && mount -o remount,ro /run || exit 99
		say "$1/fixed" "$2"
	EOF
	unshare -m true 2>/dev/null || skip "no mount namespaces here"
	HEAPTAP=$HEAPTAP run timeout 120 unshare -m bash "$d/script" "$d" "$O/tests/targets/cycles"
	[ "$status" -ne 99 ] || skip "nothing can be mounted here"
	[ "$status" -eq 0 ] || { echo "script: $status: $output"; false; }
	grep -q "kernel facts: .* is not used: No such file" "$d/first.log" || skip "no facts are kept here: $(cat "$d/first.log")"
	! grep "kernel facts:" "$d/second.log" || { echo "the second run found them out again"; false; }
	grep -q "kernel facts: .* is not used: Invalid" "$d/spoiled.log"
	grep -q "kernel facts: not written" "$d/fixed.log"
	for run in second spoiled fixed; do
		diff <(jq '[.processes[].totals | del(.peak_time_ns)]' "$d/first.json") <(jq '[.processes[].totals | del(.peak_time_ns)]' "$d/$run.json")
	done
}
