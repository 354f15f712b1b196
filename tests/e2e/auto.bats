#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# --backend auto, as commands are typed: what it chooses, and what it says.

load ../lib/common

setup_file() {
	[ "$(uname -m)" = x86_64 ] || skip "the inline source was tried on x86_64 only"
}

setup() {
	export HEAPTAP_RUN_DIR=$BATS_TEST_TMPDIR/run
	STARTED=()
	unset HEAPTAP_NO_CODE HEAPTAP_CONFIG
}

# by SOURCE: the report names it
by() { jq -e --arg source "$1" '.backend == $source' "$report" >/dev/null || { jq .backend "$report"; cat "$err"; return 1; }; }

# lines NR: heaptap has said so many about its choice
lines() { [ "$(grep -c '^heaptap: auto: ' "$err")" -eq "$1" ] || { cat "$err"; return 1; }; }

# no_notes: the report has no complaint about the source
no_notes() { jq -e '[.processes[].notes[]? | select(test("inline|BPF"))] == []' "$report" >/dev/null; }

# bats test_tags=core
@test "auto: run takes inline, and one line says so" {
	traced -- "$T/order"
	[ "$status" -eq 0 ]
	as_told
	nothing_lost
	by inline
	lines 1
	grep -q '^heaptap: auto: inline: by code in the program (--backend bpf: without it)' "$err"
	fails grep 'stopped for' "$err"
	traced -q -- "$T/order"
	by inline
	lines 0
}

# The page of code becomes a copy, whose file is known by the mapping behind it.
# bats test_tags=core
@test "auto: run takes inline where an allocator's library has one page of code, and coroutines switch in it (T5)" {
	traced -- "$T/harsh-library" align
	[ "$status" -eq 0 ] || { cat "$err"; return 1; }
	as_told
	nothing_lost
	by inline
	lines 1
	jq -e '[.functions[].name] | any(. == "harsh_pair")' "$report"
	traced -- "$T/harsh-library" turns 500
	[ "$status" -eq 0 ] || { cat "$err"; return 1; }
	by inline
	lines 1
}

# An allocator that walks its own call stack, and has no room for jumps where it returns.
# bats test_tags=core
@test "auto: a program that cannot be changed is left to BPF, and is not started twice" {
	traced -- "$T/asks_stack"
	[ "$status" -eq 0 ]
	[ "$(grep -c 'malloc saw' "$out")" -eq 1 ]
	nothing_lost
	by bpf
	no_notes
	lines 1
	grep -qE 'auto: .*asks_stack: PID .*: (malloc|free): .*: all calls of this process are seen by BPF' "$err"
}

# bats test_tags=full
@test "auto: an allocator that would see what is changed has the counts that BPF has" {
	traced --backend bpf -- "$T/asks_stack"
	jq -cS '.processes[0] | .functions, .totals.live_bytes' "$report" >"$BATS_TEST_TMPDIR/want"
	traced -- "$T/asks_stack"
	by bpf
	nothing_lost
	[ "$(jq -cS '.processes[0] | .functions, .totals.live_bytes' "$report")" = "$(cat "$BATS_TEST_TMPDIR/want")" ]
}

# Of the first program all is seen by inline, of the second one all by BPF.
@test "auto: a program that can be changed executes one that cannot" {
	traced -- "$T/exec" "$T/asks_stack"
	[ "$status" -eq 0 ]
	nothing_lost
	by inline
	jq -e '[.processes[].notes | map(select(test("breakpoints have seen all of its calls"))) | length] == [0, 1]' "$report"
	lines 2
}

@test "auto: a library that comes later and cannot be changed: BPF goes on where inline has stopped" {
	traced -- "$T/dlopen" "$T" rounds 3 short
	[ "$status" -eq 0 ]
	as_told allocs live
	nothing_lost
	lines 2
}

# limited ULIMIT [OPTIONS] -- PROGRAM...: traced under this limit
limited() {
	local limit=$1
	shift
	out=$BATS_TEST_TMPDIR/program.out
	err=$BATS_TEST_TMPDIR/heaptap.err
	report=$BATS_TEST_TMPDIR/report.json
	status=0
	bash -c 'ulimit $1; shift; exec "$@"' bash "$limit" timeout -k 5 "$LIMIT_S" "$HEAPTAP" run --no-scan -o "$report" --force "$@" \
		>"$out" 2>"$err" 3>&- || status=$?
}

# bats test_tags=full
@test "auto: limits of memory and of files that leave no room for code: BPF is taken, and said (E5)" {
	limited '-v 700000' -- "$T/order"
	by bpf
	grep -q 'auto: bpf, which takes longer than inline: its memory is limited' "$err"
	limited '-f 400' -- "$T/order"
	by bpf
	grep -q 'auto: bpf, which takes longer than inline: the size of its files is limited' "$err"
	# heaptap itself cannot map what the program shares with it.
	limited '-v 3000000' -- "$T/order"
	by bpf
	grep -q 'auto: .*ulimit -v.*: all calls of this process are seen by BPF' "$err"
	lines 1
	as_told
	nothing_lost
}

# Links stay when a library goes, and see it when it is back.
@test "auto: a program that was left to BPF, and loads libraries again and again" {
	limited '-v 3000000' -- "$T/dlopen" "$T"
	by bpf
	as_told
	nothing_lost
}

# Breakpoints are in such a program, beside an inline source that has none.
# bats test_tags=full
@test "auto: a program that was left to BPF, and copies code with breakpoints, lives (T3)" {
	local how
	for how in private shared hook; do
		limited '-v 3000000' --alloc malloc=own_malloc,free=own_free -- "$T/remaps" "$how"
		[ "$status" -eq 0 ] || { echo "$how: status $status"; cat "$err"; return 1; }
		by bpf
		[ "$(field .lost.other)" -ge 1 ]
	done
}

# variants NAME: of a test program, as far as they run here
variants() {
	local suffix
	for suffix in "" -nopie -static -static-pie -musl -musl-static -32 -32-static; do
		if [ -x "$T/$1$suffix" ] && "$T/$1$suffix" >/dev/null 2>&1; then echo "$T/$1$suffix"; fi
	done
}

# bats test_tags=full
@test "auto: static programs, those of musl and of 32 bits" {
	local program
	for program in $(variants order); do
		traced -- "$program"
		[ "$status" -eq 0 ] || { echo "$program: status $status"; cat "$err"; return 1; }
		as_told live allocs || { echo "$program"; return 1; }
		nothing_lost
		lines 1
		[[ $program == *-32* ]] || by inline
	done
}

@test "auto: with --follow, children and their programs are traced" {
	# shellcheck disable=SC2016 # the shell that is traced expands this
	traced -f -- bash -c '"$0" >/dev/null; (exec "$1" >/dev/null); exit 4' "$T/leak" "$T/order"
	[ "$status" -eq 4 ]
	nothing_lost
	jq -e '[.processes[] | select(.comm == "leak" or .comm == "order") | .totals.allocs > 0] == [true, true]' "$report"
	by inline
	lines 1
	HEAPTAP_NO_CODE=1 traced -f -- bash -c '"$0" >/dev/null; exit 4' "$T/leak"
	by bpf
}

@test "auto: HEAPTAP_NO_CODE, --backend bpf and --backend ptrace put no code into a program" {
	local backend
	HEAPTAP_NO_CODE=1 traced -- bash -c 'cat /proc/$$/maps; exit 3'
	[ "$status" -eq 3 ]
	by bpf
	lines 0
	fails grep -q heaptap "$out"
	for backend in bpf ptrace; do
		traced --backend "$backend" -- bash -c 'cat /proc/$$/maps; exit 3'
		by "$backend"
		fails grep -q heaptap "$out"
	done
	# The look itself is one that can find it.
	traced -- bash -c 'cat /proc/$$/maps; exit 3'
	grep -q heaptap "$out"
}

@test "auto: where there is no BPF, ptrace is taken" {
	run --separate-stderr "$T/nobpf" EPERM all "$HEAPTAP" run --force -o "$BATS_TEST_TMPDIR/report.json" -- "$T/leak"
	[ "$status" -eq 0 ]
	[[ $stderr == *"by ptrace"*"bpf(2)"* ]]
	report=$BATS_TEST_TMPDIR/report.json
	jq -e '.backend == "ptrace"' "$report"
}

# same COMMAND...: run as typed has its status and its output
same() {
	local have=0 want=0
	"$@" >"$BATS_TEST_TMPDIR/want.out" 2>/dev/null </dev/null || want=$?
	"$HEAPTAP" run -q -o "$BATS_TEST_TMPDIR/same.json" --force "$@" >"$BATS_TEST_TMPDIR/have.out" 2>"$BATS_TEST_TMPDIR/same.err" </dev/null || have=$?
	[ "$have" -eq "$want" ] || { echo "$*: status $have, not $want"; cat "$BATS_TEST_TMPDIR/same.err"; return 1; }
	cmp "$BATS_TEST_TMPDIR/want.out" "$BATS_TEST_TMPDIR/have.out" || { echo "$*"; return 1; }
	report=$BATS_TEST_TMPDIR/same.json
	jq -e '.backend == "inline"' "$report" || { echo "$*"; return 1; }
	nothing_lost || { echo "$*"; return 1; }
}

@test "auto: programs as they are typed" {
	local program
	same ls /
	same bash -c 'x=$(echo a); echo "$x"; exit 7'
	for program in python3 perl node; do
		! command -v "$program" >/dev/null || case $program in
			python3) same python3 -c 'print(sum(len(str(i)) for i in range(10000)))' ;;
			perl) same perl -e 'my @a = map { "x" x $_ } 1 .. 500; print scalar(@a), "\n"' ;;
			node) same node -e 'console.log([...Array(1000).keys()].map(String).join("").length)' ;;
		esac
	done
	for program in gcc clang++ redis-server; do
		! command -v "$program" >/dev/null || same "$program" --version
	done
}

# busy_until PATTERN: threads of the target allocate at full speed until heaptap has said that; $bursts times 80,000
busy_until() {
	for bursts in {1..40}; do
		step "threads 4 20000"
		! grep -Eq "$1" "$err" || return 0
	done
	cat "$err"
	return 1
}

# The source changes amid the calls.
# bats test_tags=core
@test "auto: attach begins by breakpoints; code takes their place where calls are many, and none is missed" {
	stepping
	step "alloc 100 64"
	attached "$TARGET"
	has_probes "$TARGET"
	step "alloc 7 50"
	busy_until "^heaptap: auto: inline: step \(pid $TARGET\): [0-9,.]+ calls a second cost it about .* of its CPU time by breakpoints, and (about [0-9.]+ %|some 100 ns each) by code in it; --backend bpf puts none in"
	step "free 50"
	step "threads 4 5000"
	detach
	by inline
	nothing_lost
	no_notes
	is .functions.malloc $((bursts * 80000 + 20007))
	# Breakpoints saw calls before the code did. 43 of the blocks that it frees are older than the attach.
	is .totals.collisions 0
	is .totals.unknown_frees 43
	[ "$(of_function step_allocates allocs)" -eq 7 ]
	[ "$(of_function step_allocates live_blocks)" -eq 0 ]
	untouched "$TARGET"
}

# bats test_tags=core
@test "auto: attach leaves a program of few calls to breakpoints, and says so once" {
	stepping
	attached "$TARGET"
	wait_for grep -Eq "^heaptap: auto: bpf: step \(pid $TARGET\): .* calls? a second cost it " "$err"
	step "alloc 7 50"
	detach
	by bpf
	lines 1
	no_notes
	nothing_lost
	is .totals.allocs 7
}

# At other instructions the kernel may make a single step for each call, as in free of glibc: ten times as dear.
# bats test_tags=core
@test "auto: attach begins by the breakpoints that --backend bpf has" {
	local places
	stepping
	attached --backend bpf "$TARGET"
	places=$(text_differs "$TARGET")
	detach
	attached "$TARGET"
	has_probes "$TARGET"
	# Another heaptap that follows children has probes of its own in all processes, for a while.
	wait_for eval '[ -z "$(comm -13 <(sort <<<"$places") <(text_differs "$TARGET" | sort))" ]' ||
		{ diff <(echo "$places") <(text_differs "$TARGET"); return 1; }
	detach
	by bpf
}

# bats test_tags=full
@test "auto: attach puts no code where a backend is named, or code is not wanted" {
	local env
	for env in HEAPTAP_NO_CODE=1 HEAPTAP_NO_CODE=; do
		export "${env?}"
		stepping
		# shellcheck disable=SC2046 # no option, or two words
		attached $([ -n "$HEAPTAP_NO_CODE" ] || echo --backend bpf) "$TARGET"
		step "threads 4 20000"
		step "threads 4 20000"
		has_probes "$TARGET"
		detach
		by bpf
		lines 0
		nothing_lost
		is .functions.malloc 160000
		step quit || true
		unset HEAPTAP_NO_CODE
	done
}

# endless [SHELL COMMAND...]: a target of which two threads allocate at full speed, and do not end
endless() {
	stepping "$@"
	echo "threads 2 1000000000" >&"${STEP[1]}"
	wait_for eval '[ "$(ls "/proc/$TARGET/task" | wc -l)" -eq 3 ]'
}

# ends_in_pairs: of many calls of malloc, each but for those under way has its free
ends_in_pairs() {
	nothing_lost
	jq -e '.processes[0].functions | .malloc > 1000 and (.malloc - .free | fabs) <= 4' "$report" >/dev/null ||
		{ jq .processes[0].functions "$report"; return 1; }
	untouched "$TARGET"
	kill -KILL "$TARGET"
}

# bats test_tags=core
@test "auto: attach to a busy program puts code into it at once" {
	endless
	# Beside other load a busy program may get no CPU while its calls are counted.
	for _ in {1..5}; do
		attached -i 100ms "$TARGET"
		! grep -Eq "^heaptap: auto: inline: step \(pid $TARGET\): at least [0-9,.]+ calls a second, which would cost it .* % of its CPU time or more by breakpoints; code in it takes some 100 ns a call" "$err" || break
		detach
	done
	lines 1
	wait_for grep -q '"allocs":[1-9]' "$report"
	detach
	grep -q "would cost" "$err"
	by inline
	no_notes
	ends_in_pairs
}

# of_console OPTIONS: the report and the messages of a console on the busy target
of_console() {
	err=$BATS_TEST_TMPDIR/console.err report=$BATS_TEST_TMPDIR/report.json
	rm -f "$report"
	"$HEAPTAP" console "$@" -x 'wait allocs>1000' -x "save $report" "$TARGET" >"$BATS_TEST_TMPDIR/console.out" 2>"$err" ||
		{ cat "$err"; return 1; }
}

@test "auto: the console chooses as attach does" {
	endless
	for _ in {1..5}; do
		of_console
		! grep -q "^heaptap: auto: inline: step (pid $TARGET): " "$err" || break
	done
	lines 1
	by inline
	ends_in_pairs
	endless
	of_console --max-cost 0
	lines 0
	by bpf
	ends_in_pairs
}

@test "auto: two heaptaps on one busy program: the second one says whose code is in it" {
	endless
	attached --backend inline "$TARGET"
	run "$HEAPTAP" attach -t 1s "$TARGET"
	[ "$status" -eq 3 ]
	[[ $output == *"step (pid $TARGET): another heaptap (PID $TAP) traces it by code inside it: stop that one first"* ]]
	fails grep 'use --backend ptrace' <<<"$output"
	detach
	ends_in_pairs
}

@test "auto: beside code of another heaptap the ptrace source puts no breakpoint in, and the program lives (A11)" {
	endless
	attached --backend inline "$TARGET"
	run "$HEAPTAP" attach --backend ptrace -t 1s "$TARGET"
	[ "$status" -eq 3 ]
	[[ $output == *"step (pid $TARGET): another heaptap (PID $TAP) traces it by code inside it: stop that one first"* ]]
	detach
	ends_in_pairs
}

# bats test_tags=full
@test "auto: attach to a busy program that shall not have code" {
	local option
	for option in --max-cost=0% --max-cost=100% --backend=bpf; do
		endless
		attached -i 100ms "$option" "$TARGET"
		has_probes "$TARGET"
		wait_for grep -q '"allocs":[1-9]' "$report"
		detach
		fails grep 'tracing costs it' "$err"
		by bpf
		ends_in_pairs
	done
}

@test "auto: attach by auto limits the cost, unless breakpoints or mappings were asked for and no limit" {
	local option
	start "$T/idle"
	TARGET=$PID
	for option in --mmap --backend=bpf; do
		run -0 "$HEAPTAP" attach -v -t 100ms --no-scan "$option" "$TARGET"
		[[ $output == *'attach: tracing has no limit of cost'* ]]
		run -0 "$HEAPTAP" attach -v -t 100ms --no-scan "$option" --max-cost 10% "$TARGET"
		[[ $output != *'no limit of cost'* ]]
	done
	run -0 "$HEAPTAP" attach -v -t 100ms --no-scan "$TARGET"
	[[ $output != *'no limit of cost'* ]]
}

# rests PERCENT: by breakpoints the busy target rests without them, is traced again, and is judged by books
rests() {
	wait_for grep -q "step (pid $TARGET): tracing costs it more than --max-cost $1 % of its CPU time: stacks have" "$err"
	untouched "$TARGET"
	wait_for has_probes "$TARGET"
	untouched "$TARGET"
	[ "$(grep -c 'tracing costs it more' "$err")" -eq 1 ]
	detach
	by bpf
	nothing_lost
	# Live blocks are those of the books, too, and not those of the last moment of tracing.
	jq -e '.processes[0] | (.verdict | test("^(no leaks; .* live by|leaks .* by) the allocator.s books")) and
		(.scan.books.allocator | startswith("glibc")) and
		any(.notes[]; test("^traced in windows, because of --max-cost: "))' "$report"
	untouched "$TARGET"
	kill -KILL "$TARGET"
}

@test "auto: --max-cost: by breakpoints a busy program rests, is traced again, and is judged by its books" {
	endless
	attached --scan --backend bpf --max-cost 5% "$TARGET"
	rests 5.0
	fails grep 'traces all' "$err"
}

# A price of five times its own work, for which no option asks.
@test "auto: attach to a busy program that cannot have code keeps the limit that nobody typed, and says so" {
	stepping
	step "alloc 7 100"
	step "lose 7"
	step confine
	echo "burst 2000000000" >&"${STEP[1]}"
	attached --scan "$TARGET"
	wait_for grep -Eq '^heaptap: auto: .*: PID [0-9]+: .*seccomp.*: all calls of this process are seen by BPF' "$err"
	rests 10.0
	grep -q 'tracing costs it .* if heaptap can read those; --max-cost 100% or --backend bpf traces all$' "$err"
}

# Rules that need all calls have no answer then, and what is lost is found in the books, which do not know since when.
@test "auto: --max-cost: a program that has rested passes no rule that was not measured, and fails by none" {
	local rule
	for rule in errors:6 growth:5%:6 definite:1 'definite --older-blocks no:6' 'definite --leaks new:6'; do
		stepping
		step "alloc 7 100"
		step "lose 7"
		echo "burst 2000000000" >&"${STEP[1]}"
		# shellcheck disable=SC2086 # several words
		attached --backend bpf --max-cost 5% --fail-on ${rule%:*} "$TARGET"
		wait_for grep -q 'tracing costs it more' "$err"
		kill -INT "$TAP"
		ended "$TAP" "${rule##*:}"
		kill -KILL "$TARGET"
	done
	grep -q 'no verdict: most calls are not seen, and lost blocks may be older' "$err"
}

# Beside a verdict that it does not give, nobody shall take it for a success. The books give one where they could be read.
@test "auto: --max-cost: run by breakpoints keeps it, too, and --fail-on has no verdict then" {
	err=$BATS_TEST_TMPDIR/heaptap.err
	start "$HEAPTAP" run --backend bpf --max-cost 1% --fail-on definite -o "$BATS_TEST_TMPDIR/r.json" -- \
		"$T/turns" 1000000000
	TAP=$PID
	wait_for grep -q "turns (pid [0-9]*): \(tracing costs it more than\|even a moment of tracing in 5 s costs it\)" "$err"
	kill -INT "$TAP"
	wait_for gone "$TAP"
	grep -q 'no leak verdict on 1 process' "$err" || jq -e '.processes[0].scan.books.allocator' "$BATS_TEST_TMPDIR/r.json"
}

# Somewhere in between only the thread that looks at the rings of code finds no room.
# bats test_tags=full
@test "auto: attach with any limit of its own addresses traces, or says why not" {
	local kib status
	endless
	for kib in $(seq 150000 6000 402000); do
		status=0
		(ulimit -v "$kib" && exec "$HEAPTAP" attach -q --no-scan -t 100ms -o "$BATS_TEST_TMPDIR/r.json" --force "$TARGET") \
			2>"$BATS_TEST_TMPDIR/said" || status=$?
		echo "$kib KiB: status $status, $(cat "$BATS_TEST_TMPDIR/said")"
		[ "$status" -eq 0 ] || [ -s "$BATS_TEST_TMPDIR/said" ]
		[ "$status" -ne 4 ]
	done
	untouched "$TARGET"
	kill -KILL "$TARGET"
}

# bats test_tags=full
@test "auto: run by breakpoints that take most of the program's time says so meanwhile, once" {
	report=$BATS_TEST_TMPDIR/report.json
	err=$BATS_TEST_TMPDIR/heaptap.err
	start "$HEAPTAP" run --backend bpf -o "$report" -- "$T/turns" 1000000000
	TAP=$PID
	wait_for grep -Eq '^heaptap: run: breakpoints take about [0-9.]+ % of the CPU time of turns \(pid [0-9]+\): .* for each of its calls' "$err"
	kill -INT "$TAP"
	wait_for gone "$TAP"
	[ "$(grep -c 'breakpoints take' "$err")" -eq 1 ]
}

# While it is stopped for the code, breakpoints come back.
# bats test_tags=full
@test "auto: attach to a busy program that cannot have code: breakpoints stay, and no call is missed" {
	stepping bash -c 'ulimit -f 400; exec "$@"' bash
	attached --follow "$TARGET"
	busy_until "^heaptap: auto: .*: PID $TARGET: the size of its files is limited .*: all calls of this process are seen by BPF"
	step "threads 4 5000"
	detach
	by bpf
	nothing_lost
	is .functions.malloc $((bursts * 80000 + 20000))
}

# bats test_tags=full
@test "auto: attach to two processes: code for the busy one alone" {
	local quiet
	start "$T/idle"
	quiet=$PID
	wait_for says idle ready
	stepping
	attached "$quiet" "$TARGET"
	busy_until "^heaptap: auto: inline: step \(pid $TARGET\)"
	has_probes "$quiet"
	detach
	by inline
	nothing_lost
	no_notes
}

# A program that begins to execute others has breakpoints for a while, which see them from their first call.
# bats test_tags=full
@test "auto: attach to programs that execute others loses nothing" {
	start bash -c "exec '$T/execs' >'$BATS_TEST_TMPDIR/execs'"
	TARGET=$PID
	wait_for grep -qs ready "$BATS_TEST_TMPDIR/execs"
	attached "$TARGET"
	kill -USR1 "$TARGET"
	wait_for eval '[ "$(wc -l <"$BATS_TEST_TMPDIR/execs")" -gt 300 ]'
	detach
	kill -KILL "$TARGET"
	nothing_lost
	by bpf
}

# bats test_tags=full
@test "auto: system puts code into a busy process, and names its leak" {
	err=$BATS_TEST_TMPDIR/heaptap.err
	stepping
	start "$HEAPTAP" system --pid "$TARGET" --json -i 1s
	TAP=$PID
	wait_for grep -q "system: traces step (pid $TARGET)" "$err"
	busy_until "^heaptap: auto: inline: step \(pid $TARGET\): .* by code in it"
	kill -INT "$TAP"
	ended "$TAP" 0
	untouched "$TARGET"
}

# Nearly each moment of each thread is in a call: they stop where they leave it.
# bats test_tags=full
@test "auto: attach to many threads at full speed" {
	stepping
	attached "$TARGET"
	echo "threads 16 200000" >&"${STEP[1]}"
	wait_for grep -q "^heaptap: auto: inline: step (pid $TARGET)" "$err"
	step_answer ok
	detach
	by inline
	nothing_lost
	is .functions.malloc 3200000
	untouched "$TARGET"
}
