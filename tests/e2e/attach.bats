#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# heaptap attach: only what comes later counts, and the target never notices.

load ../lib/common

# bats test_tags=core,ptrace,inline
@test "attach: exactly what happens between attach and detach (B17)" {
	attached_between
}

# bats test_tags=ptrace,full
@test "attach: a process whose main thread has ended (B18)" {
	not_by_inline "only the main thread can be made to map memory"
	stepping
	step headless
	if [ -z "${HEAPTAP_BACKEND-}" ]; then
		run -4 "$HEAPTAP" attach -b inline "$TARGET"
		[[ $output == "heaptap: inline: PID $TARGET (step): its main thread has ended, "*"use --backend bpf, or ptrace" ]]
	fi
	attached "$TARGET"
	step "alloc 7 50"
	step "burst 1000"
	step "free 4"
	detach
	is .totals.allocs 1007
	is .totals.live_blocks 3
	is .scan.reachable.blocks 3
	[ "$(of_function step_allocates allocs)" -eq 7 ]
	nothing_lost
	untouched "$(ls "/proc/$TARGET/task" | grep -vx "$TARGET")"
	step "alloc 5 10"
}

# bats test_tags=core
@test "attach: equal to the oracle, threads at full speed" {
	stepping env HEAPTAP_COUNT="$BATS_TEST_TMPDIR/count" LD_PRELOAD="$ORACLE/count.so"
	step "alloc 100 64"
	cp "$(count_page "$TARGET")" "$BATS_TEST_TMPDIR/before"
	attached "$TARGET"
	step "threads 8 $([ "${HEAPTAP_BACKEND:-}" = ptrace ] && echo 2000 || echo 20000)"
	step "free 50"
	step "alloc 20 30"
	detach
	nothing_lost
	as_counted "$BATS_TEST_TMPDIR/before"
	untouched "$TARGET"
}

@test "attach: children that are not followed lose the probes that fork copied (A16)" {
	not_by_inline "the code in a copy stays, without effect"
	with_bpf_only "breakpoints of ptrace are taken out of a copy at once"
	local child
	stepping
	attached -v "$TARGET"
	step "alloc 5 100"
	step copy
	child=$(tr -d " " <"/proc/$TARGET/task/$TARGET/children")
	wait_for has_own_code "$child" || { echo "code of the child differs: $(text_differs "$child")"; return 1; }
	has_probes "$TARGET"
	step "alloc 6 100"
	detach
	is .totals.allocs 11
	nothing_lost
	grep -q 'bpf: probes are out of 1 copies of targets' "$err"
}

# That took longer than all else of its stop, and such a copy never runs.
@test "attach: no probes are taken out of the copy that a verdict has of its target" {
	with_bpf_only "ptrace has no copy that fork made"
	stepping
	attached -v --scan --snapshot fork "$TARGET"
	step "alloc 5 100"
	kill -USR1 "$TAP"
	wait_for grep -q '"live_blocks":5' "$report"
	step "alloc 6 100"
	detach
	is .totals.allocs 11
	nothing_lost
	is .scan.copied true
	fails grep 'copies of targets' "$err"
	untouched "$TARGET"
}

# bats test_tags=full
@test "attach: twice in a row, each report its own" {
	stepping
	for n in 11 22; do
		attached "$TARGET"
		step "burst $n"
		detach
		is .totals.allocs "$n"
	done
}

# bats test_tags=full
@test "attach: by name, two targets, a report for each" {
	cp "$T/spin" "$BATS_TEST_TMPDIR/spin-$$"
	start "$BATS_TEST_TMPDIR/spin-$$"
	one=$PID
	wait_for says "spin-$$" ready
	start "$BATS_TEST_TMPDIR/spin-$$"
	two=$PID
	wait_for says "spin-$$" ready
	attached "spin-$$"
	works "$one"
	works "$two"
	detach
	jq -e --argjson a "$one" --argjson b "$two" '[.processes[].pid] | sort == ([$a, $b] | sort)' "$report"
	jq -e 'all(.processes[]; .totals.allocs > 0)' "$report"
	untouched "$one"
	untouched "$two"
}

# bats test_tags=full
@test "attach: by the path of its file, and of a link to this file" {
	local player=$BATS_TEST_TMPDIR/player given
	cp "$T/spin" "$player"
	ln -s player "$BATS_TEST_TMPDIR/other-name"
	start "$player"
	one=$PID
	wait_for says player ready
	spinning
	for given in "$player" "$BATS_TEST_TMPDIR/other-name"; do
		attached --force "$given"
		works "$one"
		detach
		jq -e --argjson one "$one" '[.processes[].pid] == [$one] and .processes[0].totals.allocs > 0' "$report"
	done
}

# bats test_tags=connect,full
@test "attach: 33 targets share one link for each file; two have their own" {
	local other one pids=()
	[ "${HEAPTAP_BACKEND:-}" != ptrace ] || skip "ptrace has no links"
	not_by_inline "its jumps are in the targets alone, however many these are"
	start "$T/spin" 1
	other=$PID
	for _ in {1..33}; do
		start "$T/spin" 1
		pids+=("$PID")
	done
	one=$PID
	wait_for says spin ready
	attached "${pids[0]}" "$one"
	fails has_probes "$other"
	detach
	attached "${pids[@]}"
	has_probes "$other"
	works "$one"
	works "${pids[0]}"
	detach
	jq -e --argjson other "$other" '(.processes | length == 33) and all(.processes[]; .pid != $other and .totals.allocs > 0)' "$report"
	jq -e 'all(.processes[]; .lost.allocs + .lost.frees == 0)' "$report"
	untouched "$one"
	untouched "$other"
}

# bats test_tags=full
@test "attach: two instances on one target, both right (A11)" {
	with_bpf_only "Linux allows one tracer by ptrace"
	not_by_inline "a second heaptap is refused"
	stepping
	attached "$TARGET"
	first=$TAP
	ln -s "$HEAPTAP" "$BATS_TEST_TMPDIR/second"
	start "$BATS_TEST_TMPDIR/second" attach -o "$BATS_TEST_TMPDIR/second.json" "$TARGET"
	second=$PID
	wait_for grep -q "attached to" "$BATS_TEST_TMPDIR/second.err"
	step "burst 500"
	kill -INT "$second"
	ended "$second" 0
	step "burst 300"
	TAP=$first detach
	is .totals.allocs 800
	jq -e '.processes[0].totals.allocs == 500' "$BATS_TEST_TMPDIR/second.json"
	untouched "$TARGET"
}

# bats test_tags=core,ptrace,inline
@test "attach: the target ends: report and status 0 (A1)" {
	spinning
	attached "$TARGET"
	works "$TARGET"
	kill -TERM "$TARGET"
	ended "$TAP" 0
	jq -e '.processes[0].totals.allocs > 0' "$report"
	# heaptap cannot have seen more calls than the program says that it made.
	wait_for says spin '^total malloc'
	read -r _ _ mallocs _ frees < <(grep '^total malloc' "$BATS_TEST_TMPDIR/spin.out")
	[ "$(field .functions.malloc)" -le "$mallocs" ]
	[ "$(field '.functions.free // 0')" -le "$frees" ]
}

# bats test_tags=rounds,full
@test "attach: the target is killed at a random moment (A1)" {
	for ((i = 0; i < HEAPTAP_ROUNDS; i++)); do
		spinning 0
		start "$HEAPTAP" attach -q -o "$BATS_TEST_TMPDIR/r$i.json" "$TARGET"
		sleep "0.$(printf %03d $((RANDOM % 200)))"
		kill -KILL "$TARGET"
		wait_for gone "$PID" || { echo "round $i: heaptap hangs"; return 1; }
		status=0
		wait "$PID" || status=$?
		# 4: it ended before it could be traced
		[ "$status" -eq 0 ] || [ "$status" -eq 4 ] || { echo "round $i: $status"; cat "$BATS_TEST_TMPDIR/heaptap.err"; return 1; }
		[ "$status" -ne 0 ] || jq -e .schema "$BATS_TEST_TMPDIR/r$i.json" >/dev/null
	done
}

# bats test_tags=rounds,full
@test "attach: heaptap is killed at a random moment (A3)" {
	spinning 0 4
	for ((i = 0; i < HEAPTAP_ROUNDS; i++)); do
		start "$HEAPTAP" attach -q -o "$BATS_TEST_TMPDIR/r$i.json" "$TARGET"
		sleep "0.$(printf %03d $((RANDOM % 200)))"
		kill -KILL "$PID"
		wait "$PID" || true
		untouched "$TARGET"
	done
	kill -TERM "$TARGET"
	ended "$TARGET" 0
	says spin '^total malloc'
}

# bats test_tags=core,ptrace,inline
@test "attach: heaptap is killed while it traces: no probe stays (A3)" {
	spinning 0 4
	attached "$TARGET"
	has_probes "$TARGET"
	kill -KILL "$TAP"
	untouched "$TARGET"
}

# leaked: how often the kernel log says that a breakpoint stays for ever; nothing if the log is not ours to read
leaked() { dmesg 2>/dev/null | grep -c "leaking uprobe" || true; }

# The kernel cannot take a breakpoint out for a thread that has a fatal signal pending: it stays for ever then.
# end_while_closing SIGNAL: end heaptap by this signal, 0 to 50 ms after it began to take its probes out, again and again
end_while_closing() {
	local before
	before=$(leaked)
	spinning 20 4
	for ((i = 0; i < HEAPTAP_ROUNDS; i++)); do
		attached --no-scan "$TARGET"
		kill -INT "$TAP"
		sleep "0.0$(printf %02d $((RANDOM % 50)))"
		kill "-$1" "$TAP" 2>/dev/null || true
		wait "$TAP" || true
		untouched "$TARGET" || { echo "round $i"; return 1; }
	done
	[ "$(leaked)" -le "$before" ] || { dmesg | grep "leaking uprobe"; return 1; }
	kill -TERM "$TARGET"
	ended "$TARGET" 0
}

# As pkill -KILL -f heaptap does, but for heaptaps of others.
# bats test_tags=ptrace,inline
@test "attach: all processes with heaptap in their name or arguments are killed: the target goes on (A3, A4)" {
	local pid family=()
	spinning
	attached --no-scan "$TARGET"
	for pid in "$TAP" $(pgrep -P "$TAP"); do
		! grep -qa heaptap "/proc/$pid/comm" "/proc/$pid/cmdline" || family+=("$pid")
	done
	kill -KILL "${family[@]}"
	wait_for gone "$TAP"
	untouched "$TARGET"
	works "$TARGET"
}

# bats test_tags=rounds,full
@test "attach: heaptap is killed while it takes its probes out: none stays (A3, A5)" {
	with_bpf_only "by ptrace the guardian takes breakpoints out"
	end_while_closing KILL
}

# bats test_tags=rounds,full
@test "attach: a second signal while heaptap takes its probes out: none stays (A5)" {
	with_bpf_only "by ptrace the guardian takes breakpoints out"
	end_while_closing TERM # one of the first kind would be the same wish
}

# bats test_tags=rounds,full
@test "attach: a signal that comes twice at once, as of timeout(1), is one wish: the report comes (T10)" {
	local i sig
	spinning
	for ((i = 0; i < HEAPTAP_ROUNDS; i++)); do
		for sig in INT TERM; do
			attached --no-scan "$TARGET"
			# Sent by one process, the two are a few microseconds apart.
			perl -e "kill '$sig', $TAP; for (1 .. $i * 20) {} kill '$sig', $TAP"
			ended "$TAP" 0 || { echo "round $i, SIG$sig"; return 1; }
			[ -s "$report" ]
		done
	done
	untouched "$TARGET"
}

# copy_libraries NUMBER: files plug*.so, each with an allocator of its own
copy_libraries() {
	local i
	for ((i = 0; i < $1; i++)); do
		cp "$T/plug_own.so" "$BATS_TEST_TMPDIR/plug$i.so"
	done
}

# with_libraries NUMBER: $TARGET is a program that has loaded so many of them, and ends when descriptor 7 is closed
with_libraries() {
	copy_libraries "$1"
	mkfifo "$BATS_TEST_TMPDIR/lines"
	start bash -c "exec '$T/stack_dlopen' many '$BATS_TEST_TMPDIR'/plug*.so <'$BATS_TEST_TMPDIR/lines'"
	TARGET=$PID
	exec 7>"$BATS_TEST_TMPDIR/lines"
	wait_for says bash ready
}

# The kernel waits 50 ms for the end of each link. For 3,000 links one after the other these are minutes.
# bats test_tags=full
@test "attach: the probes of 800 libraries are out soon after Ctrl-C (A5, E9)" {
	local start_s
	not_by_inline "32 libraries with allocators are the most"
	with_libraries 800
	attached --no-scan -d 0 "$TARGET"
	start_s=$SECONDS
	kill -INT "$TAP"
	ended "$TAP" 0 || { cat "$err"; false; }
	# One after the other, in 16 processes: 10 s. Side by side: half a second.
	[ $((SECONDS - start_s)) -lt 6 ] || { echo "$((SECONDS - start_s)) s"; false; }
	untouched "$TARGET"
	exec 7>&-
}

# has_links KEEPER NUMBER: this process holds so many descriptors
has_links() { [ "$(find "/proc/$1/fd" -mindepth 1 2>/dev/null | wc -l)" -ge "$2" ]; }

no_session() { ! pgrep -s "$1" >/dev/null; }

# bats test_tags=full
@test "attach: Ctrl-C while it puts probes into 300 libraries: none stays, and no process (A5)" {
	with_bpf_only "by ptrace the guardian takes breakpoints out"
	not_by_inline "32 libraries with allocators are the most"
	local i keeper status
	with_libraries 300
	for i in 20 200 500; do
		start "$HEAPTAP" attach --no-scan -d 0 "$TARGET"
		TAP=$PID
		wait_for pgrep -P "$TAP" -x links-of-heapta
		keeper=$(pgrep -P "$TAP" -x links-of-heapta)
		wait_for has_links "$keeper" "$i"
		kill -INT "$TAP"
		status=0
		wait "$TAP" || status=$?
		# By the signal, or after a trace if it had just begun.
		[ "$status" = 130 ] || [ "$status" = 0 ] || { echo "status $status with $i links"; return 1; }
		# The keeper has a session of its own, and those that end links are in it.
		wait_for no_session "$keeper"
		untouched "$TARGET"
	done
	exec 7>&-
}

# are_left_out NR: heaptap has said of so many files that they are left out, in one or more messages
are_left_out() {
	[ "$(awk '/files? with allocators/ { sub(/.*PID [0-9]+: /, ""); nr += $1 } END { print nr }' "$err")" -eq "$1" ]
}

# All libraries together may have 4,096 functions, and each of these has some 30.
# bats test_tags=full
@test "attach: more allocators than there is room for: what fits is traced, the rest is counted, status 5 (F2)" {
	with_bpf_only "by ptrace there is room for 65,536 functions"
	local i left_out late
	cd "$BATS_TEST_TMPDIR"
	{
		for i in malloc calloc realloc free memalign aligned_alloc posix_memalign valloc pvalloc reallocarray \
			_Z{n,na}{m,mRKSt9nothrow_t,mSt11align_val_t,mSt11align_val_tRKSt9nothrow_t} \
			_Zd{l,a}Pv{,RKSt9nothrow_t,St11align_val_t,St11align_val_tRKSt9nothrow_t,m,mSt11align_val_t} cfree __libc_free; do
			echo "long $i(long a, long b) { return a * ${#i} + b * $((SRANDOM % 10000)); }"
		done
	} >own.c
	gcc -w -O1 -shared -fPIC -fno-builtin -nostdlib -o own.so own.c
	for ((i = 0; i < 200; i++)); do cp own.so "own$i.so"; done
	mkfifo lines
	start bash -c "exec python3 -uc '
import ctypes, sys
for line in sys.stdin:
    loaded = [ctypes.CDLL(path) for path in line.split()]
    print(\"loaded\", len(loaded))
' <lines"
	TARGET=$PID
	exec 7>lines
	echo ./own{0..179}.so >&7
	wait_for says bash 'loaded 180'
	attached --no-scan -d 0 "$TARGET"
	grep -qE 'PID [0-9]+: [0-9]+ files with allocators \(the last one is .*/own[0-9]+.so\) left out, because there is no room' "$err"  || { cat "$err"; false; }
	left_out=$(sed -n 's/.*: \([0-9]*\) files with allocators .*/\1/p' "$err")
	echo ./own{180..199}.so >&7
	wait_for says bash 'loaded 20'
	wait_for are_left_out "$((left_out + 20))"
	kill -INT "$TAP"
	ended "$TAP" 5 || { cat "$err"; false; }
	[ "$left_out" -ge 10 ]
	is .lost.other "$((left_out + 20))"
	[ "$(field .totals.allocs)" -gt 0 ]
	untouched "$TARGET"
	exec 7>&-
}

# bats test_tags=full
@test "attach: under strace -f, which leaves no child to another tracer: heaptap names it" {
	command -v strace >/dev/null || skip "no strace"
	spinning
	run strace -f -qq -o /dev/null "$HEAPTAP" attach -q --no-scan -b ptrace -t 100ms "$TARGET"
	[[ $output == *"attach: ptrace: strace (PID "*") traces heaptap and what it starts"* ]]
	untouched "$TARGET"
	run strace -f -qq -o /dev/null "$HEAPTAP" run -q -- "$T/leak"
	[[ $output == *"strace (PID "*") traces heaptap and what it starts"* ]]
}

# reads_maps: how often the traced heaptap has opened the mappings of TARGET
reads_maps() { grep -c "\"/proc/$TARGET/maps\"" "$BATS_TEST_TMPDIR/calls" || true; }

# loads_while_stopped: $TARGET has loaded 400 libraries while heaptap ($TAP, under strace $TRACER) was stopped, and ends when
# descriptor 7 is closed. The four descriptors of a library are its links and its file.
loads_while_stopped() {
	copy_libraries 400
	mkfifo "$BATS_TEST_TMPDIR/lines"
	start bash -c "exec python3 -uc '
import ctypes, sys
for line in sys.stdin:
    loaded = [ctypes.CDLL(path) for path in sys.argv[1:]]
    print(\"loaded\", len(loaded))
' '$BATS_TEST_TMPDIR'/plug*.so <'$BATS_TEST_TMPDIR/lines'"
	TARGET=$PID
	exec 7>"$BATS_TEST_TMPDIR/lines"
	start strace -f -qq -e trace=openat -o "$BATS_TEST_TMPDIR/calls" \
		"$HEAPTAP" attach --no-scan -d 0 "$TARGET"
	TRACER=$PID
	wait_for grep -q 'attached to' "$BATS_TEST_TMPDIR/strace.err"
	TAP=$(pgrep -P "$TRACER" -x heaptap)
	[ "$(reads_maps)" -gt 0 ]
	kill -STOP "$TAP"
	echo load >&7
	wait_for says bash loaded
	kill -CONT "$TAP"
}

# Each reading is of all mappings, so one for each of thousands of libraries kept heaptap busy for minutes.
# bats test_tags=full
@test "attach: 400 libraries are loaded while heaptap is stopped: their mappings are read together (A8, E9)" {
	with_bpf_only "by ptrace each thread waits for the reading"
	not_by_inline "32 libraries with allocators are the most"
	command -v strace >/dev/null || skip "no strace"
	loads_while_stopped
	wait_for has_links "$(pgrep -P "$TAP" -x links-of-heapta)" 1200
	kill -INT "$TAP"
	ended "$TRACER" 0 || { cat "$BATS_TEST_TMPDIR/strace.err"; return 1; }
	[ "$(reads_maps)" -lt 100 ] || { echo "$(reads_maps) readings"; return 1; }
	untouched "$TARGET"
	exec 7>&-
}

# bats test_tags=full
@test "attach: Ctrl-C while libraries that were loaded late get their probes: the end is as usual (A5)" {
	with_bpf_only "by ptrace each thread waits for the reading"
	not_by_inline "32 libraries with allocators are the most"
	command -v strace >/dev/null || skip "no strace"
	loads_while_stopped
	wait_for has_links "$(pgrep -P "$TAP" -x links-of-heapta)" 100
	kill -INT "$TAP"
	ended "$TRACER" 0 || { cat "$BATS_TEST_TMPDIR/strace.err"; return 1; }
	fails grep -E 'Broken pipe|cannot update' "$BATS_TEST_TMPDIR/strace.err"
	untouched "$TARGET"
	exec 7>&-
}

# keeper_of PID: the process that holds its probes, in $keeper
keeper_of() { keeper=$(pgrep -P "$1" -x 'links-of-heapta|keeper-of-heapt'); }

# bats test_tags=full
@test "attach: the process that holds the probes is killed: heaptap says so and ends" {
	with_bpf_only "by ptrace the guardian takes breakpoints out"
	spinning 0 4
	local keeper
	attached --no-scan "$TARGET"
	keeper_of "$TAP"
	kill -KILL "$keeper"
	ended "$TAP" 5
	grep -q 'the process that held the probes was killed' "$BATS_TEST_TMPDIR/heaptap.err"
	untouched "$TARGET"
}

@test "attach: the process that holds the probes is killed before they are in: heaptap says so and ends (A3)" {
	with_bpf_only "by ptrace the guardian takes breakpoints out"
	local keeper
	spinning
	start "$HEAPTAP" attach --no-scan "$TARGET"
	TAP=$PID
	wait_for keeper_of "$TAP"
	kill -KILL "$keeper"
	ended "$TAP" 5 || { cat "$BATS_TEST_TMPDIR/heaptap.err"; return 1; }
	grep -qE 'the process that (makes|held the) probes was killed' "$BATS_TEST_TMPDIR/heaptap.err"
	untouched "$TARGET"
}

# bats test_tags=core,ptrace,inline
@test "attach: ends cleanly on each signal (A5)" {
	for sig in INT TERM HUP QUIT; do
		spinning
		attached "$TARGET"
		kill -$sig "$TAP"
		ended "$TAP" 0 || { echo "SIG$sig"; cat "$err"; return 1; }
		jq -e .schema "$report" >/dev/null
		untouched "$TARGET"
		end_started
	done
}

# bats test_tags=full
@test "attach: two Ctrl-C in a row leave nothing behind (A5)" {
	spinning 0 4
	attached "$TARGET"
	kill -INT "$TAP"
	kill -INT "$TAP" || true
	wait_for gone "$TAP"
	untouched "$TARGET"
}

# bats test_tags=full
@test "attach: nobody reads its reports: Ctrl-C takes the probes out, the next one ends it (A5)" {
	spinning 0 2
	unheard
	kill -INT "$TAP"
	untouched "$TARGET"
	is_running "$TAP"
	wait_for grep -q 'attach: heaptap is busy because nobody takes its output (standard output): the probes are out; another signal ends heaptap' "$err"
	kill -INT "$TAP"
	ended "$TAP" 130
	untouched "$TARGET"
	exec 8>&-
}

# bats test_tags=full
@test "attach: nobody reads its recording, and after Ctrl-C somebody does: it ends well (A5)" {
	spinning 0 2
	unread "$BATS_TEST_TMPDIR/pipe"
	attached -w "$BATS_TEST_TMPDIR/pipe" "$TARGET"
	wait_for is_stuck "$TAP"
	kill -TERM "$TAP"
	untouched "$TARGET"
	start cat "$BATS_TEST_TMPDIR/pipe"
	exec 8>&-
	wait_for gone "$TAP"
	status=0
	wait "$TAP" || status=$?
	# The ring may have filled up while nobody read: then the report counts what was lost, and the status says so.
	lost=$(field '.lost | .allocs + .frees')
	[ "$status" -eq $((lost ? 5 : 0)) ] || { echo "status $status, lost $lost"; cat "$err"; false; }
	grep -q 'attach: no leak verdict: heaptap was busy when the signal came' "$err"
	is .scan null
	is '.notes[0]' 'no leak verdict: heaptap was busy when the signal came'
}

@test "attach: a process that allocates nothing meanwhile: the first line says so" {
	start sleep 1000
	# A program allocates when it begins.
	wait_for grep -q nanosleep "/proc/$PID/wchan"
	run --separate-stderr "$HEAPTAP" attach -q -t 100ms "$PID"
	[ "$status" -eq 0 ]
	[[ "$(unbroken <<<"$output")" == "no leaks among blocks since the attach (older ones: heaptap scan $PID); nothing was allocated since the attach sleep (pid "* ]]
	untouched "$PID"
}

@test "attach: the reader of its report goes away: SIGPIPE (A5)" {
	spinning
	unread "$BATS_TEST_TMPDIR/pipe"
	err=$BATS_TEST_TMPDIR/heaptap.err
	start bash -c "exec '$HEAPTAP' attach $TARGET >'$BATS_TEST_TMPDIR/pipe' 2>'$err' 8>&-"
	TAP=$PID
	wait_for is_tracing "$TAP"
	exec 8>&-
	kill -INT "$TAP"
	ended "$TAP" 5
	untouched "$TARGET"
}

@test "attach: a target that ignores SIGINT is not disturbed" {
	start "$T/ignoring"
	TARGET=$PID
	wait_for says ignoring ready
	attached "$TARGET"
	detach INT
	untouched "$TARGET"
	kill -TERM "$TARGET"
	ended "$TARGET" 0
}

# bats test_tags=core,ptrace,inline
@test "attach: SIGUSR1: a report now, tracing goes on" {
	stepping
	attached "$TARGET"
	step "burst 10"
	kill -USR1 "$TAP"
	wait_for test -s "$report"
	wait_for jq -e '.processes[0].totals.allocs == 10' "$report"
	step "burst 20"
	detach
	is .totals.allocs 30
}

# bats test_tags=ptrace,inline
@test "attach: a stopped target stays stopped (A12)" {
	spinning
	kill -STOP "$TARGET"
	attached "$TARGET"
	detach
	grep -q '^State:	T' "/proc/$TARGET/status"
	kill -CONT "$TARGET"
	untouched "$TARGET"
}

# bats test_tags=ptrace,inline
@test "attach: SIGSTOP and SIGCONT while tracing (A12)" {
	stepping
	attached "$TARGET"
	kill -STOP "$TARGET"
	kill -CONT "$TARGET"
	step "burst 100"
	detach
	is .totals.allocs 100
	untouched "$TARGET"
}

# has_no_trial: the process that tried probes for $TAP is gone; those that hold or guard probes have other names
has_no_trial() { ! pgrep -x -P "$TAP" heaptap; }

# bats test_tags=ptrace,inline
@test "attach: no child of heaptap stays as a zombie while it traces (T12)" {
	stepping
	attached "$TARGET"
	wait_for has_no_trial
	detach
	untouched "$TARGET"
}

# bats test_tags=core,ptrace,inline
@test "attach: refuses what cannot be traced, with the reason (A13)" {
	sleep 0 &
	zombie=$!
	wait_for gone "$zombie"
	for what in 2 "$zombie" 999999999 no-such-program 0 -1 12x ''; do
		run --separate-stderr timeout 60 "$HEAPTAP" attach -t 100ms "$what"
		[ "$status" -eq 4 ] || [ "$status" -eq 2 ] || { echo "$what: $status: $stderr"; return 1; }
		[ "${#stderr_lines[@]}" -eq 1 ] && [[ ${stderr_lines[0]} == heaptap:* ]] || { echo "$what: $stderr"; return 1; }
	done
}

@test "attach: not on itself (A13)" {
	run --separate-stderr timeout 60 bash -c "exec '$HEAPTAP' attach -t 100ms \$\$"
	[ "$status" -eq 4 ] || [ "$status" -eq 2 ]
	[[ $stderr == *itself* ]]
}

@test "attach: on its own parent (A13)" {
	run --separate-stderr timeout 60 bash -c "'$HEAPTAP' attach -q -t 100ms -o '$BATS_TEST_TMPDIR/r.json' \$\$; exit \$?"
	[ "$status" -eq 0 ] || [ "$status" -eq 4 ]
}

# bats test_tags=full
@test "attach: PID 1 works or is refused, and lives on (A13)" {
	run --separate-stderr timeout 60 "$HEAPTAP" attach -t 100ms -q -o "$BATS_TEST_TMPDIR/r.json" 1
	[[ $status =~ ^[034]$ ]] || { echo "$status: $stderr"; return 1; }
	untouched 1
}

# bats test_tags=ptrace,inline
@test "attach: the target becomes another program by exec" {
	stepping
	attached "$TARGET"
	step "burst 5"
	step quit || true
	ended "$TAP" 0
	is .totals.allocs 5
}

# execs_are MORE_THAN: the programs that targets have executed
execs_are() { [ "$(cat "$BATS_TEST_TMPDIR"/execs.[1-9] | wc -l)" -gt "$1" ]; }

# bats test_tags=full
@test "attach: targets execute programs faster than heaptap can look: it ends when it is asked to" {
	local pids=() i
	for i in 1 2 3 4 5 6; do
		start bash -c "exec '$T/execs' >'$BATS_TEST_TMPDIR/execs.$i'"
		pids+=("$PID")
		wait_for grep -qs ready "$BATS_TEST_TMPDIR/execs.$i"
	done
	attached "${pids[@]}"
	kill -USR1 "${pids[@]}"
	wait_for execs_are 2000
	kill -INT "$TAP"
	# By inline the first calls of each program are lost. By ptrace a target waits a second for a look, and then goes on.
	status=0
	wait "$TAP" || status=$?
	kill -KILL "${pids[@]}"
	by_inline || jq -e --argjson s "$status" 'any(.processes[]; .lost.other > 0) == ($s == 5)' "$report"
	case ${HEAPTAP_BACKEND:-} in inline) [ "$status" -eq 5 ] ;; ptrace) [[ $status == [05] ]] ;; *) [ "$status" -eq 0 ] ;; esac
	jq -e '[.processes[] | select(.replaced)] | length > 100' "$report"
	jq -e 'all(.processes[]; .replaced or .scan or .notes[0] or (.watched | not))' "$report"
}

# bats test_tags=full
@test "attach: a target of 200 threads" {
	stepping
	attached "$TARGET"
	step "threads 200 300"
	detach
	nothing_lost
	is .functions.malloc 60000
	untouched "$TARGET"
}

# bats test_tags=rounds,full
@test "attach: again and again on a busy target (A9, A10)" {
	spinning 0 4
	for ((i = 0; i < HEAPTAP_ROUNDS; i++)); do
		"$HEAPTAP" attach -q -t 100ms -o "$BATS_TEST_TMPDIR/r$i.json" "$TARGET" >/dev/null 2>"$BATS_TEST_TMPDIR/e" 3>&- ||
			{ cat "$BATS_TEST_TMPDIR/e"; return 1; }
	done
	untouched "$TARGET"
	kill -TERM "$TARGET"
	ended "$TARGET" 0
}

# bats test_tags=ptrace
@test "attach: run -p traces a process from the start of a program to its end, whose status it has" {
	cd "$BATS_TEST_TMPDIR"
	mkfifo go
	stepping
	step "alloc 10 100"
	start "$HEAPTAP" run -q -o r.json -p "$TARGET" -- sh -c 'echo begun; read line <go; exit 7'
	wait_for grep -q begun "$PWD"/*.out
	step "alloc 20 1000"
	echo on >go
	ended "$PID" 7
	step "alloc 10 100"
	jq -e --argjson pid "$TARGET" '.processes | length == 1 and .[0].pid == $pid
		and (.[0].totals | .allocs == 20 and .alloc_bytes == 20000) and (.[0].ended | not)' r.json
	# Neither the program nor heaptap stays if there is nothing to trace.
	run -4 "$HEAPTAP" run -p 999999 -- sh -c 'echo >ran'
	[ ! -e ran ]
}
