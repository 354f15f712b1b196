#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# Children of targets: traced from their first instruction on, with the parent's blocks known to them (A14, A16, A17).

load ../lib/common
load ../lib/follow

teardown() { end_started; }

# bats test_tags=core,ptrace,inline
@test "follow: a child's leaks are its own, what it got from its parent is known (A16)" {
	traced -f -- "$T/fork" 3
	[ "$status" -eq 0 ]
	nothing_lost
	jq -e '.processes | length == 4 and (map(.pid) | unique | length == 4)' "$report"
	jq -e '.processes[0] | .totals.allocs == 3 and .totals.frees == 0 and .scan.definite.blocks == 2' "$report"
	jq -e '[.processes[1:][] | .totals | .live_blocks == 9 and .live_bytes == 265 and .frees == 1 and .unknown_frees == 0] | all' "$report"
	jq -e '[.processes[1:][] | .exit == { code: 0 } and .scan.definite == { blocks: 9, bytes: 265 }] | all' "$report"
	jq -e '[.processes[1:][].stacks[] | select(any(.frames[]; .function == "child_allocates")) | .definite.blocks] == [7, 7, 7]' "$report"
	jq -e '[.processes[].stacks[] | .truncated] | all(. == null)' "$report"
}

# bats test_tags=full
@test "follow: children hold what the oracle counts (A16)" {
	counted -f -- "$T/fork" 20
	[ "$status" -eq 0 ]
	nothing_lost
	jq -e '.processes | length == 21' "$report"
	same_live
}

# bats test_tags=core,ptrace,inline
@test "follow: a child in its parent's memory allocates for the parent's books (A16)" {
	local how
	for how in vfork handed clone; do
		traced -f -- "$T/sharers" "$how"
		[ "$status" -eq 0 ]
		as_told
		jq -e '.processes | length == 1' "$report"
		is '.notes | length' 0
	done
}

# linux_at_least MAJOR MINOR
linux_at_least() {
	local major minor
	IFS=. read -r major minor _ < <(uname -r)
	[ "$major" -gt "$1" ] || { [ "$major" -eq "$1" ] && [ "${minor%%[!0-9]*}" -ge "$2" ]; }
}

# Does the source see a process that shares the memory of the target as if it were a thread?
sees_sharers() { [[ ${HEAPTAP_BACKEND:-} == @(ptrace|inline) ]]; }

# bats test_tags=full
@test "follow: without it, so is a child that the target waits for, and what it hands over is no error (A16)" {
	local how
	sees_sharers || linux_at_least 6 16 ||
		skip "Linux $(uname -r) tells of the end of a task only when the task has left its memory"
	sees_sharers || [ -e /sys/kernel/btf/vmlinux ] ||
		skip "this kernel does not describe its types (BTF)"
	for how in vfork handed; do
		traced --check --fail-on errors -- "$T/sharers" "$how"
		if sees_sharers; then
			[ "$status" -eq 0 ]
			as_told
			continue
		fi
		is '.errors | length' 0
		jq -e '.processes[0].notes[] | test("1 process shared its memory")' "$report"
		is .scan.definite.blocks 0
	done
	# A child that calls no allocator is none.
	traced -- "$T/fork"
	is '.notes | map(select(test("shared"))) | length' 0
}

@test "follow: without it, what runs in the target's memory is told, and nothing is called leaked (A16)" {
	traced -- "$T/sharers" clone
	[ "$status" -eq 0 ]
	if sees_sharers; then # nothing is unseen
		as_told
		is '.notes | map(select(test("shared"))) | length' 0
		return
	fi
	jq -e '.processes[0].notes[] | test("1 process shared its memory")' "$report"
	is .scan.definite.blocks 0
	is .scan.unsure.blocks 1
}

# bats test_tags=ptrace,inline
@test "follow: without it, a note and the line of --fail-on say that there were children" {
	by_connect && skip "serve does not look for children"
	traced --fail-on errors -- "$T/fork"
	[ "$status" -eq 0 ]
	is '.notes | map(select(test("children: their calls are not seen"))) | length' 1
	grep -q 'passed: 0 wrong releases (--fail-on errors); children were not watched (--follow)$' "$err"
	traced --fail-on errors -- "$T/leak"
	is '.notes | length' 0
	grep -q 'passed: 0 wrong releases (--fail-on errors)$' "$err"
	traced -f -- "$T/fork"
	jq -e '[.processes[].notes[]? | select(test("children"))] == []' "$report"
}

@test "follow: a shell script, all its programs (A14, A16)" {
	cat >"$BATS_TEST_TMPDIR/script" <<-'SH'
		ls / >/dev/null
		x=$(echo one two | wc -w)
		/bin/sh -c 'exec /bin/echo $0 >/dev/null'
		(sort </dev/null | cat)
		[ "$x" = 2 ]
	SH
	counted -f -- bash "$BATS_TEST_TMPDIR/script"
	[ "$status" -eq 0 ] || { cat "$err"; return 1; }
	nothing_lost
	jq -r '.processes[].comm' "$report" | sort -u | tr '\n' ' ' >"$BATS_TEST_TMPDIR/names"
	[ "$(cat "$BATS_TEST_TMPDIR/names")" = "bash cat echo ls sh sort wc " ]
	jq -e '[.processes[] | select(.comm == "ls") | .scan.reachable.blocks > 0] == [true]' "$report"
	same_live
	same_calls
}

# By ptrace a process that executes a program waits for its probes, also while the verdict of another one is found.
# bats test_tags=full
@test "follow: programs begin while others end and are searched (A14, A16)" {
	cat >"$BATS_TEST_TMPDIR/script" <<-'SH'
		for i in 1 2 3 4 5 6 7 8; do
			x=$(echo one two | cat | cat | wc -w)
			[ "$x" = 2 ] || exit 1
		done
	SH
	traced -b ptrace -f -- bash "$BATS_TEST_TMPDIR/script"
	[ "$status" -eq 0 ] || { cat "$err"; return 1; }
	nothing_lost
	jq -e '[.processes[] | select(.comm == "wc" or .comm == "cat") | .totals | select(.allocs == 0 or .unknown_frees > 0)] == []' "$report" ||
		{ jq -c '.processes[] | select(.comm == "wc" or .comm == "cat") | .totals' "$report"; return 1; }
}

@test "follow: more children than asked for are counted, and go on (A17)" {
	traced -f --max-procs 5 -- "$T/fork" 50 1
	[ "$status" -eq 0 ]
	jq -e '.processes | length == 6' "$report"
	jq -e '.processes[0].notes[] | test("45 children are not followed")' "$report"
	is .totals.allocs 3
}

@test "follow: files of children that are not listed any more are closed" {
	mkdir "$BATS_TEST_TMPDIR/programs"
	for i in {1..150}; do
		cp "$T/leak" "$BATS_TEST_TMPDIR/programs/$i"
	done
	ulimit -n 400
	# shellcheck disable=SC2016 # the shell that is traced expands this
	"$HEAPTAP" run -q -f --backend bpf --max-procs 5 -o "$BATS_TEST_TMPDIR/r.json" -- /bin/sh -c '
		for i in "$0"/*; do "$i" >/dev/null; done
		find "/proc/$PPID/fd" -lname "$0/*" | wc -l >"$0.nr"' "$BATS_TEST_TMPDIR/programs" 3>&-
	# 5 children are listed, and 100 files more are too many.
	[ "$(cat "$BATS_TEST_TMPDIR/programs.nr")" -gt 0 ]
	[ "$(cat "$BATS_TEST_TMPDIR/programs.nr")" -lt 110 ]
	# Names of those that are listed stay right.
	jq -e 'any(.functions[]; .name == "open_session")' "$BATS_TEST_TMPDIR/r.json"
}

# bats test_tags=full
@test "follow: children that have ended make room, and leave their sums in a note of their parent (A16, A17)" {
	cd "$BATS_TEST_TMPDIR" || return 1
	local each='for i in 1 2 3 4 5 6 7 8 9 10 11 12; do "$0"; done'
	traced -f -- /bin/sh -c "$each" "$T/leak"
	jq -S '[.processes[1:][] | .totals.allocs] | { allocs: add, nr: length }' "$report" >all
	jq -e '.nr == 12' all
	traced -f --max-procs 3 -- /bin/sh -c "$each" "$T/leak"
	[ "$status" -eq 0 ]
	nothing_lost
	jq -e '[.processes[].notes[]? | select(test("not followed"))] == []' "$report"
	jq -r '.processes[0].notes[] | select(test("are not listed"))' "$report" >note
	grep -Eq '^[0-9]+ children that ended first are not listed \(--max-procs\): [0-9,]+ allocations, [0-9,]+ releases, .* live at their ends, 0 events lost$' note
	# The last ones, those of the note, and nothing else: as many as without the limit.
	sed -E 's/^([0-9]+) children.*procs\): ([0-9,]+) allocations.*/\1 \2/; s/,//g' note >sums
	read -r nr allocs <sums
	jq -S --argjson nr "$nr" --argjson allocs "$allocs" \
		'[.processes[1:][] | .totals.allocs] | { allocs: (add + $allocs), nr: (length + $nr) }' "$report" >sum
	diff all sum
	jq -e '.processes | length == 4' "$report"
}

# bats test_tags=full
@test "follow: a leak in a child that is not listed any more counts for --fail-on" {
	traced -f --max-procs 2 --fail-on definite -- /bin/sh -c '"$0"; for i in 1 2 3 4; do "$1"; done' "$T/leak" "$T/nothing"
	by_connect && [ "$status" -eq 1 ] || [ "$status" -eq 99 ]
	fails jq -e 'any(.processes[]; .scan.definite.blocks > 0)' "$report"
	traced -f --max-procs 2 --fail-on definite -- /bin/sh -c 'for i in 1 2 3 4; do "$0"; done' "$T/nothing"
	[ "$status" -eq 0 ]
}

@test "follow: heaptap is killed: children go on, and nothing of it stays in them (A3)" {
	start "$HEAPTAP" run -q -f -o "$BATS_TEST_TMPDIR/r.json" -- bash -c "$T/spin 0 2 & wait"
	wait_for says heaptap ready
	TARGET=$(pgrep -P "$(pgrep -x -P "$PID" bash)")
	STARTED+=("$TARGET")
	kill -KILL "$PID"
	wait "$PID" || true
	untouched "$TARGET"
	kill -TERM "$TARGET"
	wait_for gone "$TARGET"
}

# bats test_tags=core
@test "follow: attached, the children of a shell (A16)" {
	command -v bash ls sort >/dev/null
	HEAPTAP_COUNT=$BATS_TEST_TMPDIR/count
	coproc SHELL { LD_PRELOAD=$ORACLE/count.so HEAPTAP_COUNT=$HEAPTAP_COUNT exec bash --norc --noprofile 3>&-; }
	TARGET=$SHELL_PID
	STARTED+=("$TARGET")
	echo 'echo ready' >&"${SHELL[1]}"
	read -r -t 120 _ <&"${SHELL[0]}"
	attached -f "$TARGET"
	echo 'for i in 1 2 3; do ls / | sort | tail -1; done; (exit 3); echo done' >&"${SHELL[1]}"
	for _ in 1 2 3 4; do read -r -t 120 line <&"${SHELL[0]}"; done
	[ "$line" = done ]
	detach
	nothing_lost
	jq -e '[.processes[] | select(.comm == "ls" or .comm == "sort" or .comm == "tail")] | length == 9' "$report"
	same_calls_of_children
}

# bats test_tags=full
@test "follow: attached, programs that end before heaptap looks at them are counted (A16)" {
	not_by_inline "a program that begins waits until heaptap has looked"
	not_by_connect "the host lists programs that nothing is known of"
	coproc SHELL { exec bash --norc --noprofile 3>&-; }
	TARGET=$SHELL_PID
	STARTED+=("$TARGET")
	echo 'echo ready' >&"${SHELL[1]}"
	read -r -t 120 _ <&"${SHELL[0]}"
	# A file that heaptap does not know yet, with an allocator of its own.
	cp "$T/leak-static" "$BATS_TEST_TMPDIR/unknown"
	attached -f "$TARGET"
	kill -STOP "$TAP"
	echo "for i in {1..24}; do '$BATS_TEST_TMPDIR/unknown' >/dev/null; done; echo done" >&"${SHELL[1]}"
	read -r -t 120 line <&"${SHELL[0]}"
	[ "$line" = done ]
	echo exit >&"${SHELL[1]}"
	wait_for gone "$TARGET"
	kill -CONT "$TAP"
	# By ptrace nobody looked at the new programs in time, so their calls may be missing.
	ended "$TAP" "$([ "${HEAPTAP_BACKEND:-}" = ptrace ] && echo 5 || echo 0)" || { cat "$err"; return 1; }
	jq -c '.processes[] | [.pid, .comm, .exe, .totals.allocs, .ended, .unwatched_reason, .notes]' "$report"
	[ "$(jq '[.processes[] | select(.exe == "" or .comm == "unknown")] | length' "$report")" -eq 0 ]
	jq -e '[.processes[].notes[]] | any(startswith("24 programs of its children ended before heaptap could look"))' "$report"
}

# As same_calls, but the first process was there before.
same_calls_of_children() {
	jq '.processes |= map(select(.pid != $p))' --argjson p "$TARGET" "$report" >"$report.children"
	report=$report.children same_calls
}

# bats test_tags=full
@test "follow: git, with the programs that it starts" {
	command -v git >/dev/null || skip "git is not installed"
	local dir=$BATS_TEST_TMPDIR/repository
	mkdir "$dir"
	cat >"$BATS_TEST_TMPDIR/script" <<-'SH'
		cd "$1" && export HOME=$1 GIT_CONFIG_NOSYSTEM=1
		git init -q . && git config user.name a && git config user.email a@example.org
		for i in 1 2 3; do echo "$i" >"file $i" && git add . && git commit -qm "$i"; done
		git gc -q && git log --oneline | wc -l
	SH
	traced -f -- bash "$BATS_TEST_TMPDIR/script" "$dir"
	[ "$status" -eq 0 ] || { cat "$err"; return 1; }
	[ "$(cat "$out")" -eq 3 ]
	nothing_lost
	jq -e '[.processes[] | select(.comm == "git")] | length > 15' "$report"
	jq -e '[.processes[].totals.unknown_frees] | add == 0' "$report"
}

# bats test_tags=full
@test "follow: python's multiprocessing" {
	multiprocessing
}

# bats test_tags=full
@test "follow: redis-server's child that saves" {
	command -v redis-server >/dev/null || skip "redis-server is not installed"
	local socket=$BATS_TEST_TMPDIR/redis
	report=$BATS_TEST_TMPDIR/report.json
	start "$HEAPTAP" run -q -f -o "$report" -- redis-server --port 0 --unixsocket "$socket" --save '' --dir "$BATS_TEST_TMPDIR"
	wait_for redis-cli -s "$socket" ping
	redis-cli -s "$socket" set key value
	redis-cli -s "$socket" bgsave
	wait_for saved "$socket"
	redis-cli -s "$socket" shutdown nosave || true
	ended "$PID" 0
	nothing_lost
	jq -e '.processes | length == 2 and .[1].exit == { code: 0 } and .[1].totals.unknown_frees == 0' "$report"
	jq -e '.processes | .[1].totals.allocs > 100 and .[1].scan.reachable.blocks > 100' "$report"
}

saved() { redis-cli -s "$1" info persistence | grep -q 'rdb_bgsave_in_progress:0' && [ -s "$BATS_TEST_TMPDIR/dump.rdb" ]; }

# Without addresses and PIDs. While our probe is in the dynamic linker, gdb does not see what that loads (known-limits.md).
plain_output() { sed '/libthread_db/d; s/0x[0-9a-f]*/N/g; s/[0-9][0-9]*/N/g' "$1"; }

# tracer_alone COMMAND...: a debugger that is followed ends as it does alone, with the same output
tracer_alone() {
	local alone=0
	"$@" >"$BATS_TEST_TMPDIR/alone.out" 2>"$BATS_TEST_TMPDIR/alone.err" 3>&- </dev/null || alone=$?
	traced -q -f -- "$@" </dev/null
	[ "$status" -eq "$alone" ] || { echo "status $status, alone $alone"; cat "$err"; return 1; }
	diff <(plain_output "$out") <(plain_output "$BATS_TEST_TMPDIR/alone.out")
	by_connect || jq -e '[.processes[].notes[] | select(test("another followed process .a debugger.. traced it"))] | length >= 1' "$report"
}

@test "follow: strace is followed, and traces its program" {
	command -v strace >/dev/null || skip "no strace"
	with_bpf_only "a followed debugger cannot trace"
	tracer_alone strace -o "$BATS_TEST_TMPDIR/calls" "$T/exitcodes" exit 3
	grep -q '^exit_group(3)' "$BATS_TEST_TMPDIR/calls"
	grep -q 'exited with 3' "$BATS_TEST_TMPDIR/calls"
}

# bats test_tags=full
@test "follow: strace attaches to a process that is followed" {
	command -v strace >/dev/null || skip "no strace"
	with_bpf_only "a followed debugger cannot trace"
	mkfifo "$BATS_TEST_TMPDIR/gate"
	# The strace lets the reader go on when it has attached: it says so on standard error.
	traced -q -f -- bash -c '
		(read -r _ <"$0/gate"; exit 3) & reader=$!
		strace -qq -e trace=exit_group -o "$0/calls" -p $reader &
		while ! grep -q "^TracerPid:.$!\$" /proc/$reader/status; do
			kill -0 $! || exit 9
		done
		echo >"$0/gate"
		wait $reader' "$BATS_TEST_TMPDIR"
	[ "$status" -eq 3 ] || { echo "status $status"; cat "$err"; return 1; }
	grep -q '^exit_group(3)' "$BATS_TEST_TMPDIR/calls"
}

# bats test_tags=full
@test "follow: gdb is followed, and debugs its program" {
	command -v gdb >/dev/null || skip "no gdb"
	with_bpf_only "a followed debugger cannot trace"
	tracer_alone gdb -q -nx -batch -iex 'set debuginfod enabled off' -iex 'set startup-with-shell off' \
		-ex 'break main' -ex run -ex 'print 6 * 7' -ex continue --args "$T/exitcodes" exit 3
	grep -q '= 42' "$out"
	grep -q 'exited with code 03' "$out"
}

@test "follow: by ptrace one line says that a followed debugger cannot trace" {
	command -v strace >/dev/null || skip "no strace"
	traced -q -f -b ptrace -- strace -o "$BATS_TEST_TMPDIR/calls" true
	grep -q 'strace: it calls ptrace(), which fails' "$err"
}

# daemon [OPTIONS]: heaptap on a program that leaves a child behind, which waits at the gate; its pid is in $CHILD
daemon() {
	gate=$BATS_TEST_TMPDIR/gate
	report=$BATS_TEST_TMPDIR/report.json
	rm -rf "$report" "$gate" "$gate.pid"
	mkfifo "$gate"
	# shellcheck disable=SC2016 # the shell that is traced expands this
	start "$HEAPTAP" run -f -o "$report" "$@" -- bash -c '
		setsid bash -c "echo \$\$ >\"$0.new\"; mv \"$0.new\" \"$0.pid\"; read -r _ <\"$0\"; exec \"$1\"" "$0" "$1" >/dev/null 2>&1 </dev/null &
		while [ ! -e "$0.pid" ]; do sleep 0.05; done
		exit 3' "$gate" "$T/leak"
	TAP=$PID
	wait_for test -e "$gate.pid"
	CHILD=$(cat "$gate.pid")
	STARTED+=("$CHILD")
}

waits_for_child() { grep -q 'the program has ended; waiting for' "$BATS_TEST_TMPDIR/heaptap.err"; }

# bats test_tags=full
@test "follow: a daemon is traced until it ends" {
	daemon
	wait_for waits_for_child
	is_running "$CHILD"
	echo go >"$gate"
	ended "$TAP" 3
	jq -e --argjson c "$CHILD" '.processes[] | select(.pid == $c and (.exe | endswith("/leak"))) | .scan.definite.blocks > 0' "$report"
	nothing_lost
}

@test "follow: --no-wait ends with the program, a daemon runs on" {
	daemon --no-wait
	ended "$TAP" 3
	untouched "$CHILD"
	jq -e --argjson c "$CHILD" '[.processes[].pid] | index($c) != null' "$report"
	echo go >"$gate"
}

# bats test_tags=full
@test "follow: Ctrl-C ends the wait for a daemon, which runs on" {
	daemon
	wait_for waits_for_child
	kill -INT "$TAP"
	ended "$TAP" 3
	untouched "$CHILD"
	jq -e --argjson c "$CHILD" '[.processes[].pid] | index($c) != null' "$report"
	echo go >"$gate"
}
