#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# heaptap run: the program goes on as ever, and the report says what the program says of itself.

load ../lib/common

# told PROGRAM ARGS...: run it; it ends well, nothing is lost, the report agrees with it
told() {
	traced -- "$@"
	[ "$status" -eq 0 ] || { cat "$err"; return 1; }
	nothing_lost
	as_told
}

# told_variant NAME: the same if this machine can build it
told_variant() {
	[[ $1 != *-32 ]] || not_by_inline "32-bit programs are refused"
	needs_target "$1"
	told "$T/$1" "${@:2}"
}

# told_static NAME SUFFIX: the same; a static libc's start allocates, too
told_static() {
	[[ $2 != 32-* ]] || not_by_inline "32-bit programs are refused"
	needs_target "$1-$2"
	traced -- "$T/nothing-$2"
	base=$BATS_TEST_TMPDIR/base.json
	mv "$report" "$base"
	told "$T/$1-$2" "${@:3}"
}

# bats test_tags=core,ptrace,inline
@test "run: the bundled leaking program" { told "$T/leak" --expect; }
@test "run: a program has the name of the link that was executed, also in its recording" {
	ln -s "$T/leak" "$BATS_TEST_TMPDIR/player"
	"$HEAPTAP" run -w "$BATS_TEST_TMPDIR/r.heaptap" -o "$BATS_TEST_TMPDIR/r.json" -o "$BATS_TEST_TMPDIR/live.txt" \
		"$BATS_TEST_TMPDIR/player" >/dev/null
	"$HEAPTAP" report "$BATS_TEST_TMPDIR/r.heaptap" >"$BATS_TEST_TMPDIR/replayed.txt"
	for shown in live replayed; do
		grep -q "^player (pid [0-9]*)  $BATS_TEST_TMPDIR/player$" "$BATS_TEST_TMPDIR/$shown.txt"
		grep -q ' in player$' "$BATS_TEST_TMPDIR/$shown.txt" # the frame of _start has no line
	done
	# exe is the file
	[ "$(jq -r '.processes[0].exe' "$BATS_TEST_TMPDIR/r.json")" = "$(realpath "$T/leak")" ]
	[ "$(jq -r '[.processes[0].stacks[].frames[].module | select(endswith("/player"))] | length > 0' "$BATS_TEST_TMPDIR/r.json")" = true ]
}

# bats test_tags=core,ptrace,inline
@test "run: realloc failing, NULL, size 0, in place, moved, concurrent (B1, B3, B4)" { told "$T/order"; }
# bats test_tags=core
@test "run: 8 threads hand blocks to each other (B11)" { told "$T/threads"; }
# bats test_tags=full
@test "run: 1000 threads (B11)" { told "$T/threads" 1000 50; }
# bats test_tags=ptrace,inline
@test "run: longjmp out of an allocator (B9)" { traced -- "$T/longjmp"; [ "$status" -eq 0 ]; as_told; }
# bats test_tags=ptrace,inline
@test "run: bad_alloc, nothrow, new_handler, throwing constructor (B8)" { told "$T/exceptions"; }
# bats test_tags=core,ptrace,inline
@test "run: every operator new and delete (B8)" { told "$T/operators"; }
@test "run: operators that leak (B8)" { HEAPTAP_TARGET_HOLD=1 told "$T/operators"; }
# bats test_tags=ptrace,inline
@test "run: operators of the program that allocate for themselves (B8)" { told "$T/own_operators"; }
# bats test_tags=ptrace,inline
@test "run: handlers that allocate, on both stacks (B7)" { told "$T/signals"; }
# bats test_tags=ptrace,inline,full
@test "run: cancelled, exiting and short threads (B9)" { told "$T/cancel" 50; }
# bats test_tags=ptrace,inline
@test "run: SIZE_MAX, overflow, bad alignment (B2, B6)" { told "$T/failed"; }
# bats test_tags=ptrace,inline
@test "run: before and after main (B17, B18)" { told "$T/early"; }
# bats test_tags=core,ptrace,inline
@test "run: dlopen and dlclose, a library with its own malloc (B13)" { told "$T/dlopen" "$T"; }
# bats test_tags=ptrace,inline
@test "run: dlopen in a thread that blocks all signals and reads SIGCHLD (B13)" { told "$T/dlopen" "$T" blocked; }
# bats test_tags=ptrace,inline
@test "run: a program with its own malloc (B13)" { told "$T/ownalloc"; }
# bats test_tags=ptrace,inline
@test "run: children are not followed, the parent's books stay right" { told "$T/fork"; }
# bats test_tags=ptrace,inline
@test "run: not position-independent" { told_variant leak-nopie --expect; }
# bats test_tags=core,ptrace,inline
@test "run: static" { told_static leak static --expect; }
# bats test_tags=ptrace,inline
@test "run: static, realloc" { told_static order static; }
# bats test_tags=full
@test "run: static, position-independent" { told_static leak static-pie --expect; }
# bats test_tags=full
@test "run: static, threads" { told_static threads static; }
# bats test_tags=full
@test "run: static, failing calls" { told_static failed static; }
# bats test_tags=core,ptrace,inline
@test "run: musl" { told_variant leak-musl --expect; }
# bats test_tags=full
@test "run: musl, realloc" { told_variant order-musl; }
# bats test_tags=full
@test "run: musl, failing calls" { told_variant failed-musl; }
# bats test_tags=full
@test "run: musl, threads" { told_variant threads-musl; }
# bats test_tags=ptrace,inline
@test "run: musl, static" { told_static leak musl-static --expect; }
# bats test_tags=full
@test "run: musl, static, threads" { told_static threads musl-static; }
# bats test_tags=core,ptrace
@test "run: 32-bit" { told_variant leak-32 --expect; }
# bats test_tags=full
@test "run: 32-bit, realloc" { told_variant order-32; }
# bats test_tags=full
@test "run: 32-bit, failing calls" { told_variant failed-32; }
# bats test_tags=full
@test "run: 32-bit, threads" { told_variant threads-32; }
# bats test_tags=full
@test "run: 32-bit, static" { told_static leak 32-static --expect; }

@test "run: stripped: right numbers without names" {
	traced -- "$T/leak-stripped" --expect
	[ "$status" -eq 0 ]
	nothing_lost
	as_told calls failed unknown
	is .totals.live_blocks 102
}

# bats test_tags=ptrace,inline
@test "run: stripped and static: found or said" {
	strip -o "$BATS_TEST_TMPDIR/hidden" "$T/leak-static"
	traced -- "$BATS_TEST_TMPDIR/hidden" --expect
	grep -q 'no allocator' "$err"
	grep -q 'expect calls malloc' "$out"
}

@test "run: stdout is the program's, the report is on stderr" {
	run --separate-stderr "$HEAPTAP" run -- "$T/leak"
	[ "$status" -eq 0 ]
	[ "$output" = "served 200 requests" ]
	[[ $stderr == *load_settings* && $stderr == *open_session* && $stderr == *remember* ]]
}

# A helper gives descriptors fixed numbers, which others of heaptap's may have.
# bats test_tags=core,ptrace,inline
@test "run, attach: as typed, with 0 to 3 descriptors beside the standard ones (A22, E5)" {
	stepping
	for n in {0..3}; do
		run with_descriptors "$n" "$HEAPTAP" run "$T/leak"
		[[ $status -eq 0 && $output == *"in 32 blocks"*"lost        nothing"* ]] || { echo "$n: $output"; return 1; }
		start_as heaptap with_descriptors "$n" "$HEAPTAP" attach --max-pause 60s "$TARGET"
		TAP=$PID
		wait_for is_tracing "$TAP"
		step "alloc 100 48"
		step "free 100"
		kill -INT "$TAP"
		ended "$TAP" 0
		grep -q 'allocated .* in 100 blocks' "$BATS_TEST_TMPDIR/heaptap.out" || { cat "$BATS_TEST_TMPDIR/heaptap.out"; return 1; }
	done
}

@test "run: stdin is the program's" {
	run --separate-stderr "$HEAPTAP" run -- cat <<<"hello, cat"
	[ "$output" = "hello, cat" ]
}

@test "run: frames are complete and named, with file and line" {
	traced -- "$T/leak"
	jq -e '.processes[0].stacks[] | select(.frames[0].function == "copy_name")
		| [.frames[].function][0:5] == ["copy_name", "open_session", "handle_request", "serve", "main"]
		and .complete and (.frames[0].file | endswith("leak.c")) and .frames[0].line > 0' "$report"
	jq -e 'all(.processes[0].stacks[]; .complete)' "$report"
}

# bats test_tags=core
@test "run: the JSON report has every promised key" {
	traced -- "$T/leak"
	jq -e '.schema == "heaptap-report/2" and (.version | length > 0) and (.backend | IN("bpf", "ptrace", "inline"))
		and (.time_ns > 0) and (.duration_ns > 0)' "$report"
	jq -e '.processes[0] | (.pid > 0) and .comm == "leak" and (.exe | endswith("/leak")) and .started == true
		and .exit == {"code": 0} and (.allocators | length > 0) and (.allocators[0] | has("object") and has("kind"))' "$report"
	jq -e '.processes[0].totals | [.allocs, .frees, .alloc_bytes, .live_blocks, .live_bytes, .peak_bytes, .peak_time_ns,
		.unknown_frees, .failed_allocs] | all(type == "number")' "$report"
	jq -e '.processes[0].lost | [.allocs, .frees, .stacks, .other] | all(. == 0)' "$report"
	jq -e 'all(.processes[0].stacks[]; has("id") and has("function") and has("family") and has("allocs") and has("frees")
		and has("alloc_bytes") and has("live_blocks") and has("live_bytes") and has("peak_bytes") and has("temporary")
		and has("complete") and has("truncated") and (.frames | type == "array"))' "$report"
	jq -e 'all(.processes[0].stacks[].frames[]; has("function") and has("file") and has("line") and has("module")
		and has("build_id") and has("offset") and has("inlined"))' "$report"
}

@test "run: sums over stacks are the totals" {
	traced -n 0 -- "$T/order"
	jq -e '.processes[0] | ([.stacks[].allocs] | add) == .totals.allocs and ([.stacks[].live_bytes] | add) == .totals.live_bytes
		and ([.stacks[].live_blocks] | add) == .totals.live_blocks and ([.stacks[].alloc_bytes] | add) == .totals.alloc_bytes
		and .totals.allocs - .totals.frees == .totals.live_blocks
		and all(.stacks[]; .allocs - .frees == .live_blocks)' "$report"
}

# bats test_tags=full
@test "run: the peak of one thread" {
	counted -- "$T/leak"
	"$ORACLE/count-read" "$(count_page "$(field .pid)")" >"$BATS_TEST_TMPDIR/count.json"
	is .totals.peak_bytes "$(jq .totals.peak_bytes "$BATS_TEST_TMPDIR/count.json")"
}

# bats test_tags=ptrace
@test "run: ends with the program's status" {
	for how in "return 3" "exit 4" "_exit 5" "quick_exit 6" "pthread_exit 7" "return 0"; do
		traced -- "$T/exitcodes" $how
		[ "$status" -eq "${how#* }" ] || { echo "$how: $status"; cat "$err"; return 1; }
		is .exit.code "${how#* }"
		as_told
	done
}

# bats test_tags=ptrace,inline
@test "run: ends with 128 + signal; the report is there (A1, B5, B18)" {
	for how in "signal 9 9" "signal 15 15" "signal 11 11" "abort 0 6" "double-free 0 6"; do
		set -- $how
		traced -- "$T/exitcodes" "$1" "$2"
		[ "$status" -eq $((128 + $3)) ] || { echo "$how: $status"; cat "$err"; return 1; }
		is .exit.signal "$3"
		as_told
	done
}

@test "run: free(NULL), double free: counted, no underflow (B5)" {
	traced -- "$T/exitcodes" double-free
	jq -e '.processes[0].totals | .live_blocks == 5 and .live_bytes == 55 and .unknown_frees >= 1' "$report"
}

# bats test_tags=ptrace,inline
@test "run: signals are passed on, each once" {
	start "$HEAPTAP" run -o "$BATS_TEST_TMPDIR/r.json" -- "$T/tty" 4
	wait_for says heaptap '^pid'
	for sig in USR2 HUP QUIT TERM; do
		kill -$sig "$PID"
		wait_for says heaptap "signal $(kill -l $sig)"
	done
	ended "$PID" 0
	[ "$(grep -c signal "$BATS_TEST_TMPDIR/heaptap.out")" -eq 4 ]
}

asked_again() { kill -TERM "$PID" && grep -q 'tracing ends; .* runs on' "$BATS_TEST_TMPDIR/heaptap.err"; }

@test "run: a signal that the program ignores is said to be, and once more it ends tracing (A5)" {
	start "$HEAPTAP" run -o "$BATS_TEST_TMPDIR/r.json" -- sh -c 'trap "" TERM; echo ready; sleep 1000; :'
	wait_for says heaptap ready
	kill -TERM "$PID"
	wait_for grep -q 'ignores SIGTERM' "$BATS_TEST_TMPDIR/heaptap.err"
	wait_for asked_again
	wait_for test -s "$BATS_TEST_TMPDIR/r.json"
	pkill -KILL -P "$(pgrep -P "$PID" -x sh)" -x sleep
	ended "$PID" 0
}

# bats test_tags=full
@test "run: the process that holds the probes is killed: one message, the program goes on" {
	with_bpf_only "by ptrace there is no such process"
	not_by_inline "its calls go through code in the program, not through links"
	start "$HEAPTAP" run -q -o "$BATS_TEST_TMPDIR/keeper.json" -- "$T/spin" 0 2
	wait_for says heaptap ready
	program=$(pgrep -P "$PID" -x spin)
	kill -KILL "$(pgrep -P "$PID" -x links-of-heapta)"
	wait_for grep -q 'the process that held the probes was killed' "$BATS_TEST_TMPDIR/heaptap.err"
	wait_for has_own_code "$program"
	kill -TERM "$program"
	wait_for gone "$PID"
	[ "$(grep -c 'the process that held the probes was killed' "$BATS_TEST_TMPDIR/heaptap.err")" -eq 1 ]
	says heaptap '^total malloc'
}

# bats test_tags=ptrace,inline,full
@test "run: heaptap is killed: the program goes on to its own end (A3, A6)" {
	for sig in KILL SEGV ABRT; do
		start "$HEAPTAP" run -q -o "$BATS_TEST_TMPDIR/$sig.json" -- "$T/spin" 0 2
		wait_for says heaptap ready
		program=$(pgrep -P "$PID" -x spin)
		kill -$sig "$PID"
		wait "$PID" || true
		# By inline the guard stops the program again, to take the code out.
		[ "${HEAPTAP_BACKEND:-}" != inline ] || wait_for has_own_code "$program"
		untouched "$program"
		kill -TERM "$program"
		wait_for says heaptap '^total malloc'
		wait_for gone "$program"
	done
}

# bats test_tags=ptrace,inline
@test "run: the terminal is closed: the program gets SIGHUP, and the report is written (A5)" {
	cd "$BATS_TEST_TMPDIR"
	run -0 timeout -k 1 60 "$BATS_TEST_DIRNAME/../lib/closed_terminal.py" "$HEAPTAP" run -q -o r.json -- \
		bash -c 'trap "echo hup >>told; exit 3" HUP; echo ready; while :; do sleep 0.1; done'
	[ "$output" = "ended 3" ]
	[ "$(cat told)" = hup ]
	jq -e '.processes[0].exit.code == 3' r.json
}

@test "run: the program has the terminal" {
	command -v script >/dev/null || skip "script (util-linux) is not installed"
	run script -qec "$HEAPTAP run -q -o $BATS_TEST_TMPDIR/r.json -- $T/tty 0" /dev/null
	[[ $output == *"tty 111 foreground 1"* ]]
}

# bats test_tags=ptrace,inline
@test "run: a program that becomes another one by exec" {
	traced -- "$T/exec" "$T/exitcodes" exit 3
	by_connect || [ "$status" -eq 3 ]
	jq -e '[.processes[].stacks[] | select(any(.frames[]; .function == "before_exec")) | .live_blocks] | add == 4' "$report"
	jq -e '[.processes[].replaced] == [true, false]' "$report"
}

# bats test_tags=ptrace,inline,full
@test "run: exec from a thread while others run" {
	traced -- "$T/exec" -t "$T/exitcodes" exit 3
	by_connect || [ "$status" -eq 3 ]
}

@test "run: a program without any allocation" {
	traced -- true
	[ "$status" -eq 0 ]
	is .totals.allocs 0
}

# bats test_tags=full
@test "run: nobody reads its recording: the first signal is the program's, the second one ends heaptap (A5)" {
	mkfifo "$BATS_TEST_TMPDIR/pipe"
	exec 8<>"$BATS_TEST_TMPDIR/pipe"
	err=$BATS_TEST_TMPDIR/heaptap.err
	start bash -c "exec '$HEAPTAP' run --no-scan -w '$BATS_TEST_TMPDIR/pipe' -- '$T/spin' 0 2 2>'$err' 8>&-"
	TAP=$PID
	wait_for says bash ready
	TARGET=$(pgrep -P "$TAP" -x spin)
	STARTED+=("$TARGET")
	wait_for is_stuck "$TAP"
	kill -TERM "$TAP"
	wait_for grep -q 'run: heaptap is busy because nobody takes its output (.*/pipe): the program has got the signal; another one ends heaptap' "$err"
	kill -TERM "$TAP"
	ended "$TAP" 143
	# The program prints its sums when it gets the signal.
	wait_for says bash total
	wait_for gone "$TARGET"
	exec 8>&-
}

@test "run: --user has the home and the name of that user" {
	[ "$EUID" -eq 0 ] || skip "needs root"
	HOME=/root USER=root LOGNAME=root traced -u nobody -- sh -c 'echo "$(id -un) $HOME $USER $LOGNAME $SHELL"'
	[ "$status" -eq 0 ]
	[ "$(cat "$out")" = "nobody $(getent passwd nobody | awk -F: '{ print $6, $1, $1, $7 }')" ] || { cat "$out"; false; }
}

# bats test_tags=full
@test "run: under sudo the program is the caller's with a message, and root's with --as-root" {
	[ "$EUID" -eq 0 ] || skip "needs root"
	export SUDO_UID SUDO_GID
	SUDO_UID=$(id -u nobody) SUDO_GID=$(id -g nobody)
	traced -- id -un
	[ "$status" -eq 0 ]
	[ "$(cat "$out")" = nobody ]
	grep -q ': the program runs as nobody, not as root (--as-root)' "$err"
	rm "$report"
	traced --as-root -- id -un
	[ "$(cat "$out")" = root ]
	fails grep -q 'runs as' "$err"
	rm -f "$report"
	traced -u root -- id -un
	[ "$(cat "$out")" = root ]
	traced --as-root -u root -- id -un
	by_connect || [ "$status" -eq 2 ]
	grep -q 'as-root: goes without --user' "$err"
	rm -f "$report"
	unset SUDO_UID
	traced -- id -un
	[ "$(cat "$out")" = root ]
}

# as_a_child COMMAND...: of a program that ignores SIGCHLD and blocks SIGUSR1
as_a_child() {
	timeout -k 5 60 python3 -c '
import os, signal, sys
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
os.execvp(sys.argv[1], sys.argv[1:])' "$@"
}

# bats test_tags=full
@test "run: what ignores SIGCHLD and blocks signals may start heaptap: the status and signals of the program are as without it (A22)" {
	local backend status
	cd "$BATS_TEST_TMPDIR"
	as_a_child grep -E '^Sig(Blk|Ign):' /proc/self/status >without
	for backend in bpf ptrace; do
		as_a_child "$HEAPTAP" run -q -b "$backend" -o report.txt --force -- grep -E '^Sig(Blk|Ign):' /proc/self/status >with
		diff without with
		status=0
		as_a_child "$HEAPTAP" run -q -b "$backend" -o report.txt --force -- sh -c 'exit 7' || status=$?
		[ "$status" -eq 7 ] || { echo "$backend: status $status"; return 1; }
	done
}

@test "run: a SIGCONT that is blocked and pending stays so at dlopen, and what may be missed is counted (T4)" {
	traced --force -- "$T/dlopen" "$T" continued
	[ "$(cat "$out")" = pending ]
	[ "${HEAPTAP_BACKEND:-}" = ptrace ] || [ "$(field .lost.other)" -gt 0 ]
}

# descriptors COMMAND...: those of a program that COMMAND starts with stdin and stderr closed
descriptors() {
	# shellcheck disable=SC2016
	"$@" sh -c 'ls "/proc/$$/fd"' <&- 2>&-
}

# bats test_tags=full
@test "run: descriptors 0 to 2 that are closed are closed in the program (T4)" {
	local backend
	cd "$BATS_TEST_TMPDIR"
	descriptors env >without
	[ "$(grep -cx '[02]' without)" -eq 0 ]
	for backend in bpf ptrace; do
		descriptors "$HEAPTAP" run -q -b "$backend" -o report.txt --force -- >with
		diff without with
	done
}
