#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# The console: each of its commands, on a recording and on a running process, by script, by --execute, by hand.

load ../lib/common
load ../lib/console
load ../lib/remote

setup() {
	export HEAPTAP_RUN_DIR=$BATS_TEST_TMPDIR/run XDG_STATE_HOME=$BATS_TEST_TMPDIR/state
	STARTED=()
	cd "$BATS_TEST_TMPDIR" || return 1
}

# recording: r.heaptap of a program with all kinds of leaks, made once; full.json is its report
recording() {
	local made=$BATS_FILE_TMPDIR/r.heaptap
	[ -f "$made" ] || "$HEAPTAP" run -q -w "$made" "$T/leak_kinds" >"$BATS_FILE_TMPDIR/told" 2>/dev/null
	[ -f "$BATS_FILE_TMPDIR/full.json" ] || "$HEAPTAP" report -q -o "$BATS_FILE_TMPDIR/full.json" "$made"
	cp "$made" r.heaptap
	report=$BATS_FILE_TMPDIR/full.json
	out=$BATS_FILE_TMPDIR/told
}

# console -x CMD...: on the recording; $output, $status
console() { run "$HEAPTAP" console -q r.heaptap "$@"; }

# ---- a running process ----

# live_blocks: of the one process
live_blocks() {
	ask processes
	sed -n 's/.* in \([0-9,]*\) blocks\{0,1\}, .*/\1/p' <<<"$output" | tr -d ,
}

# bats test_tags=core
@test "console: report is the report on the recording, as text and in files" {
	recording
	"$HEAPTAP" report r.heaptap >wanted.txt
	"$HEAPTAP" console -x report r.heaptap >have.txt
	diff wanted.txt have.txt
	console -x 'report a.json' -x 'save b.txt'
	[ "$status" -eq 0 ]
	cmp a.json "$report"
	diff b.txt wanted.txt
	# Once more: looking at it changes nothing.
	"$HEAPTAP" console -x status -x report -x scan -x report r.heaptap | tail -n "$(wc -l <wanted.txt)" | diff wanted.txt -
}

@test "console: a file that is there is not overwritten without force" {
	recording
	echo mine >a.json
	console -x 'save a.json'
	[ "$status" -eq 2 ]
	[ "$(cat a.json)" = mine ]
	console -x 'set force on' -x 'save a.json'
	[ "$status" -eq 0 ]
	cmp a.json "$report"
}

# bats test_tags=full
@test "console: set sysroot: names are read anew, of the files there" {
	mkdir staging
	cp "$T/leak_kinds" staging/prog
	strip -o prog "$T/leak_kinds"
	"$HEAPTAP" run -q -w r.heaptap ./prog >/dev/null 2>&1
	console -x 'top 1' -x 'show'
	lacks leak_kinds.c
	grep -qx '  sysroot     none' <<<"$output"
	console -x 'top 1' -x "set sysroot $PWD/staging" -x 'stacks 1' -x 'set sysroot none' -x 'top 1'
	[ "$status" -eq 0 ]
	[ "$(grep -c 'leak_kinds.c:' <<<"$output")" -gt 0 ]
	! tail -n 1 <<<"$output" | grep -q 'leak_kinds.c:' || return 1
	console -x 'set sysroot prog'
	[ "$status" -eq 2 ]
	has 'set: sysroot: prog: must be a directory, or none'
}

@test "console: status, processes: what the report says" {
	recording
	console -x status
	[ "$status" -eq 0 ]
	has 'exited with status 0'
	has "in $(jq .processes[0].totals.live_blocks "$report") blocks"
	has "in $(jq .processes[0].scan.definite.blocks "$report") blocks definite"
	console -x processes
	has "$(jq .processes[0].pid "$report")  leak_kinds"
}

# bats test_tags=full
@test "console: top: keys, numbers, ids" {
	recording
	console -x 'top 0'
	[ "$(awk 'NR > 1 { gsub(",", ""); n += $4 } END { print n }' <<<"$output")" = "$(jq .processes[0].totals.live_blocks "$report")" ]
	console -x 'top total-bytes 2'
	[ "${#lines[@]}" -eq 4 ]
	[[ ${lines[3]} =~ ^[0-9]+\ more$ ]]
	[[ ${lines[1]} == *leave_pointer_in_freed* ]]
	console -x 'top leaked-bytes 3'
	has lose_plain
	[[ ${lines[0]} == *leaked-bytes* ]]
	# The id leads to the stack and the blocks.
	id=$(awk '/ lose_plain/ { print $1 }' <<<"$output")
	console -x "caller $id"
	has 'main at'
	has '5 definite'
	console -x "blocks $id"
	[ "$(grep -c lose_plain <<<"$output")" -eq 5 ]
}

@test "console: top and blocks say that there is nothing" {
	"$HEAPTAP" run -q --no-scan -w r.heaptap true >run.txt 2>&1
	console -x top -x 'blocks 99999'
	[ "$status" -eq 0 ]
	[ "$output" = $'  total-bytes is 0 for all callers\n  no live block' ]
}

@test "console: stacks: as in the report" {
	recording
	"$HEAPTAP" report -s peak -n 3 r.heaptap | sed -n -e '/^Details$/q' -e '/^$/d' -e '/^Top 3 of/,$p' >wanted.txt
	"$HEAPTAP" console -x 'stacks peak 3' r.heaptap | sed -n -e '/^$/d' -e '/^Top 3 of/,$p' >have.txt
	grep -q '^#1' wanted.txt
	diff wanted.txt have.txt
}

@test "console: blocks: each live one, filtered by size and age" {
	recording
	console -x 'blocks 0 0'
	[ "$(grep -c '^  0x' <<<"$output")" = "$(jq .processes[0].totals.live_blocks "$report")" ]
	[ "$(awk '/^  0x/ { gsub(",", ""); n += $2 } END { print n }' <<<"$output")" = "$(jq .processes[0].totals.live_bytes "$report")" ]
	[ "$(awk '/^  0x/ { print $1 }' <<<"$output" | sort -u | wc -l)" = "$(jq .processes[0].totals.live_blocks "$report")" ]
	console -x 'set min-size 300' -x 'blocks 0 0' -x 'set min-size 0' -x 'set older 1h' -x 'blocks 0 0' -x 'set older 0' -x 'set max-size 40' -x 'blocks 0 0'
	[ "$(grep -c '^  0x' <<<"$output")" -eq "$("$HEAPTAP" console -q -x 'blocks 0 0' r.heaptap | awk '/^  0x/ && ($2 >= 300 || $2 <= 40)' | wc -l)" ]
}

@test "console: blocks leaked: those of a verdict now" {
	mkfifo in
	exec 7<>in
	start bash -c "exec '$T/again' <'$PWD/in'"
	asking "$PID" -q
	echo 'lose 3' >&7
	ask 'wait allocs>=3 60s'
	ask 'blocks leaked 0'
	[ "$(grep -c ' definite ' <<<"$output")" -eq 3 ]
	lacks reachable
	echo 'lose 2' >&7
	ask 'wait allocs>=5 60s'
	ask 'blocks leaked > leaked.csv'
	[ "$(grep -c ',definite,' leaked.csv)" -eq 5 ]
	leave
}

# bats test_tags=core
@test "console: scan and why of a recording: what it holds" {
	recording
	console -x scan
	has 'blocks definite'
	has lose_plain
	console -x why
	has 'held by global_list'
	# That very block, as the report has it.
	addr=$(jq -r '[.processes[0].stacks[].why // empty | .address][0]' "$report")
	console -x "why $addr"
	[ "$status" -eq 0 ]
	has "$addr is in a block of"
	console -x 'why 0x10'
	[ "$status" -eq 0 ]
	has 'does not say'
	"$HEAPTAP" run -q --no-scan -w n.heaptap "$T/leak" >/dev/null 2>&1
	run "$HEAPTAP" console -x scan n.heaptap
	has 'No leak verdict was recorded'
}

@test "console: set and show" {
	recording
	console -x 'set sort peak' -x 'set top 3' -x show -x set
	[ "$status" -eq 0 ]
	[ "$(grep -c '^  sort        peak$' <<<"$output")" -eq 2 ]
	[ "$(grep -c '^  top         3$' <<<"$output")" -eq 2 ]
	console -x 'set top 2' -x top
	[ "$(grep -c ' < ' <<<"$output")" -eq 2 ]
	console -x "set process $(jq .processes[0].pid "$report")" -x processes
	[ "$status" -eq 0 ]
}

@test "console: baseline, goto, diff: from one moment of a recording to another" {
	recording
	console -x 'goto 1ns' -x 'status' -x baseline -x 'goto end' -x 'diff live-blocks 1' -x diff
	[ "$status" -eq 0 ]
	has 'live        0 B in 0 blocks'
	all=$(jq .processes[0].totals.live_blocks "$report")
	has "then $(jq .processes[0].totals.live_bytes "$report" | sed ':a;s/\B[0-9]\{3\}\>/,&/;ta') B in $all blocks"
	has lose_plain
	# At its peak it had the peak already, and not more.
	peak=$(jq '.processes[0].totals.peak_time_ns - (.time_ns - .duration_ns) + 1' "$report")
	console -x "goto ${peak}ns" -x 'report p.json' -x 'goto end' -x 'report e.json'
	jq -e --slurpfile full "$report" '.processes[0].totals.peak_bytes == $full[0].processes[0].totals.peak_bytes and .processes[0].scan == null' p.json
	cmp e.json "$report"
}

@test "console: help explains each command" {
	recording
	console -x help
	for command in status report top stacks caller blocks scan why baseline diff set show print processes monitor wait watch log stop start depth filter reset save record mark core kill goto quit; do
		has "  $command "
	done
	console -x 'help bl'
	[ "${#lines[@]}" -eq 1 ]
	has blocks
}

@test "console: what is wrong costs one line each, and status 2" {
	recording
	printf '%s\n' 'blockz' 'sta' '# no command' '' 'top nonsense' 'set top x' 'set colour on' 'caller 999' 'caller x' \
		'save "a' 'save' 'help me' 'diff' 'goto yesterday' 'why here' 'save x.doc' 'set process 1' >script
	for command in monitor stop start reset 'record x' kill; do echo "$command" >>script; done
	run --separate-stderr "$HEAPTAP" console -q r.heaptap <script
	[ "$status" -eq 2 ]
	# shellcheck disable=SC2154
	printf '%s\n' "${stderr_lines[@]}"
	[ "${#stderr_lines[@]}" -eq 21 ]
	[ -z "$output" ]
	[[ ${stderr_lines[0]} == *"line 1: blockz: no such command; did you mean 'blocks'" ]]
	[[ ${stderr_lines[1]} == *"line 2: sta: is one of status stacks start" ]]
	[[ $stderr == *"stop: only with running processes, and this is a recording"* ]]
}

@test "console: a script is the same as --execute, and ends at quit" {
	recording
	printf 'status\ntop 3\n  quit  \nstatus\n' | "$HEAPTAP" console r.heaptap >script.txt
	"$HEAPTAP" console -x status -x 'top 3' -x quit -x status r.heaptap >execute.txt
	[ -s script.txt ]
	diff script.txt execute.txt
	# No end of line at the end.
	printf 'status\ntop 3' | "$HEAPTAP" console r.heaptap | diff script.txt -
	"$HEAPTAP" console r.heaptap </dev/null
}

@test "console: a recording that is cut off, none, another's (F4)" {
	recording
	head -c $(($(stat -c %s r.heaptap) - 20)) r.heaptap >cut.heaptap
	run "$HEAPTAP" console -x processes cut.heaptap
	[ "$status" -eq 5 ]
	has leak_kinds
	echo nonsense >none.heaptap
	for file in none.heaptap ./missing .; do
		run "$HEAPTAP" console -x status "$file"
		[ "$status" -eq 4 ]
		[ "${#lines[@]}" -eq 1 ]
	done
	run "$HEAPTAP" console -x status - <r.heaptap
	[ "$status" -eq 0 ]
}

@test "console: names that try to act on the terminal (S9)" {
	cp "$T/leak_kinds" $'e\e[31m\nx'
	"$HEAPTAP" run -q -w r.heaptap $'./e\e[31m\nx' >/dev/null 2>&1
	console -x processes -x status -x top -x blocks -x stacks -x $'set \e[31m x' -x $'\e[31m'
	has 'e\x1b[31m'
	[[ $output != *$'\e'* ]]
}

@test "console: --fail-on judges what a recording holds" {
	recording
	console --fail-on definite -x 'top 1'
	[ "$status" -eq 1 ]
	console --fail-on definite:1G -x 'top 1'
	[ "$status" -eq 0 ]
}

# bats test_tags=core
@test "console: on a running process: what it does while the console waits" {
	stepping
	asking "$TARGET"
	[ "$(live_blocks)" -eq 0 ]
	step 'alloc 10 100'
	[ "$(live_blocks)" -eq 10 ]
	step 'free 4'
	ask status
	has '600 B in 6 blocks'
	has 'heaptap     '
	has 'lost        nothing'
	ask blocks
	[ "$(grep -c '^0x' <<<"$output")" -eq 6 ]
	leave
	untouched "$TARGET"
}

@test "console: stop and start: nothing is seen in between, frees of blocks from before are no errors" {
	stepping
	asking "$TARGET" --check
	step 'alloc 10 100'
	[ "$(live_blocks)" -eq 10 ]
	ask stop
	ask stop
	has 'already'
	step 'free 3'
	step 'alloc 5 10'
	ask status
	has 'calls are not seen'
	[ "$(live_blocks)" -eq 10 ]
	ask start
	# Blocks from between are not known: neither their frees are errors nor what is alive is sure.
	step 'free 5'
	step 'alloc 1 7'
	ask status
	has '1,007 B in 11 blocks'
	has 'and 5 that heaptap never saw allocated'
	has 'bad frees   none'
	has 'lost        nothing'
	ask blocks
	[ "$(grep -c 'perhaps free' <<<"$output")" -eq 10 ]
	ask scan
	has 'none definite'
	has '10 blocks unsure'
	leave 2 # the second stop
	untouched "$TARGET"
}

# bats test_tags=full
@test "console: reset: all is forgotten, frees of blocks from before are no errors" {
	stepping
	asking "$TARGET" --check
	step 'alloc 10 100'
	[ "$(live_blocks)" -eq 10 ]
	ask reset
	ask status
	has 'allocated   0 B in 0 blocks'
	step 'alloc 2 50'
	step 'free 5'
	ask status
	has 'allocated   100 B in 2 blocks'
	has 'freed       2 blocks'
	has 'and 3 that heaptap never saw allocated'
	has 'bad frees   none'
	leave
	untouched "$TARGET"
}

shows() {
	ask status
	[[ $output == *"$1"* ]]
}

# bats test_tags=full
@test "console: stop and start of one of several processes over a connection" {
	spinning
	other=$TARGET
	stepping
	serving "$TARGET" "$other"
	asking --sysroot / "unix:$SOCKET"
	ask "wait blocks>0 60s"
	step 'alloc 10 100'
	ask "stop $TARGET"
	lacks refused
	step 'alloc 3 10'
	ask "set process $TARGET"
	ask status
	has 'calls are not seen'
	has '1,000 B in 10 blocks'
	ask "set process $other"
	ask status
	lacks 'calls are not seen'
	# All: the one that is stopped.
	ask "set process all"
	ask start
	step 'alloc 1 7'
	ask "set process $TARGET"
	wait_for shows '1,007 B in 11 blocks'
	lacks 'calls are not seen'
	has 'stopped 1 time, for '
	leave
	untouched "$TARGET"
}

# bats test_tags=full
@test "console: stop, start, scan and reset of one of several processes" {
	spinning
	other=$TARGET
	stepping
	asking -p "$TARGET" -p "$other"
	step 'alloc 10 100'
	ask "stop $TARGET"
	ask "stop $TARGET"
	has 'already'
	step 'alloc 3 10'
	ask "set process $other"
	ask status
	lacks 'calls are not seen'
	ask 'wait blocks>0 60s'
	ask scan
	lacks "step (pid $TARGET)"
	ask "set process $TARGET"
	ask status
	has 'calls are not seen'
	has '1,000 B in 10 blocks'
	# Without a PID it is the process that is set.
	ask start
	step 'alloc 1 7'
	ask status
	lacks 'calls are not seen'
	has '1,007 B in 11 blocks'
	has 'stopped 1 time, for '
	ask "set process all"
	ask "scan $TARGET"
	lacks "spin (pid $other)"
	ask "reset $TARGET"
	ask "set process $other"
	ask status
	lacks 'allocated   0 B in 0 blocks'
	ask "set process $TARGET"
	ask status
	has 'allocated   0 B in 0 blocks'
	ask 'stop 999999999'
	has 'stop: 999999999: is not traced here'
	leave 2 # the second stop, and the unknown PID
	untouched "$TARGET"
}

@test "console: baseline and diff of a running process" {
	stepping
	asking "$TARGET"
	step 'alloc 10 100'
	ask diff
	has 'baseline'
	ask baseline
	step 'alloc 3 1000'
	step 'free 1'
	ask diff
	has '+2,000 B, +2 blocks'
	has step_allocates
	ask 'top growth'
	has '2,000 B'
	leave 2
}

# bats test_tags=full
@test "console: record: from here on, to the end of it; a report on it says the same" {
	stepping
	asking "$TARGET" -q
	step 'alloc 10 100'
	ask 'record r.heaptap'
	[ -z "$output" ]
	step 'alloc 5 10'
	step 'free 2'
	ask 'record other.heaptap'
	has 'already'
	ask 'save live.json'
	ask record
	step 'alloc 100 1'
	leave 2
	"$HEAPTAP" report -q -o replayed.json r.heaptap
	for k in live_blocks live_bytes; do
		[ "$(jq ".processes[0].totals.$k" live.json)" = "$(jq ".processes[0].totals.$k" replayed.json)" ]
	done
	[ "$(jq .processes[0].totals.live_blocks replayed.json)" -eq 13 ]
	report=replayed.json
	[ "$(of_function step_allocates live_bytes)" -eq 1030 ]
}

@test "console: mark: moments of the recording, for goto and --between" {
	stepping
	asking "$TARGET" -q
	ask 'mark early'
	has 'nothing is recorded'
	ask 'record r.heaptap'
	step 'alloc 10 100'
	ask 'mark one'
	step 'alloc 3 1000'
	ask 'mark two'
	step 'alloc 1 7'
	ask 'mark 5s'
	has 'must be a name'
	leave 2
	run "$HEAPTAP" console -q -x 'goto one' -x processes -x 'goto two' -x processes -x 'goto one,two' -x processes -x 'goto end' -x processes r.heaptap
	[ "$status" -eq 0 ]
	[ "$(grep -o 'in [0-9]* blocks' <<<"$output" | tr -dc '0-9\n' | tr '\n' ' ')" = '10 13 3 14 ' ]
	run "$HEAPTAP" console -q -x 'goto never' -x processes r.heaptap
	[ "$status" -eq 2 ]
	has 'in 14 blocks'
	[ "$("$HEAPTAP" console -q --between one,two -x processes r.heaptap | grep -c 'in 3 blocks')" -eq 1 ]
}

@test "console: depth and filter, while it goes on" {
	stepping
	asking "$TARGET" -q
	step 'alloc 1 100'
	ask 'depth 1'
	ask 'depth many'
	has 'must be a number'
	step 'alloc 1 300'
	ask 'caller 2'
	has 'step_allocates'
	lacks 'main at'
	ask 'filter 50 200'
	step 'alloc 2 20'
	step 'alloc 3 60'
	[ "$(live_blocks)" -eq 5 ]
	ask status
	has '2 allocations left out'
	ask filter
	step 'alloc 2 20'
	[ "$(live_blocks)" -eq 7 ]
	leave 2
	untouched "$TARGET"
}

# bats test_tags=full
@test "console: monitor: a line each time; save; --output at the end" {
	stepping
	asking "$TARGET" -q -o end.json
	step 'alloc 10 100'
	ask 'monitor 10ms 3'
	[ "$(grep -c 'live 1,000 B in 10 blocks' <<<"$output")" -eq 3 ]
	ask 'save now.json'
	step 'alloc 1 1'
	leave
	[ "$(jq .processes[0].totals.live_blocks now.json)" -eq 10 ]
	[ "$(jq .processes[0].totals.live_blocks end.json)" -eq 11 ]
	jq -e '.processes[0].scan.definite' end.json
}

# bats test_tags=full
@test "console: watch: a command again and again" {
	stepping
	asking "$TARGET" -q
	step 'alloc 10 100'
	ask 'watch 10ms 3 top live-bytes 1'
	[ "$(grep -c 'step_allocates < main' <<<"$output")" -eq 3 ]
	ask 'watch 10ms 2 processes > seen'
	[ -z "$output" ]
	[ "$(grep -c 'in 10 blocks' seen)" -eq 2 ]
	for bad in 'watch 1s' 'watch kill' 'watch watch top' 'watch 1s 2 nonsense' 'watch caller' 'watch 0s top'; do
		ask "$bad"
		has 'watch: '
	done
	leave 2
	spinning
	"$ROOT/tests/lib/talk.py" "$HEAPTAP" console -q "$TARGET" <<SCRIPT
expect heaptap> 
send watch 10ms top
expect until Ctrl-C or Enter
expect spin_allocates
expect until Ctrl-C or Enter
send 
expect heaptap> 
send watch 10ms status
expect until Ctrl-C or Enter
type \\x03
expect heaptap> 
send quit
end 0
SCRIPT
}

# bats test_tags=core
@test "console: wait: for a number, a time, the end" {
	stepping
	asking "$TARGET" -q
	printf 'wait blocks>=10\nprocesses\nwait live<=400\nprocesses\n' >&"${CON[1]}"
	step 'alloc 10 100'
	wait_for fate_line 'in 10 blocks'
	step 'free 6'
	wait_for fate_line 'in 4 blocks'
	ask 'wait 10ms'
	[ -z "$output" ]
	ask 'wait live>10M 20ms'
	has 'wait: live>10M: not in the time'
	ask 'wait blocks>4 20ms'
	has 'wait: blocks>4: not in the time'
	for bad in 'wait live' 'wait live>' 'wait live>x' 'wait soon' 'wait 1s 1s' 'wait end never' 'wait size>3' 'wait live=>3'; do
		ask "$bad"
		has 'wait: '
	done
	printf 'wait end\nprocesses\nwait blocks>100\n' >&"${CON[1]}"
	echo quit >&"${STEP[1]}"
	wait_for fate_line 'exited with status 0'
	ask status
	has 'wait: blocks>100: the processes have ended'
	leave 2
}

# fate_line WORDS: the next line that the console says has them
fate_line() {
	local line
	read -r -t 120 line <&"${CON[0]}" && [[ $line == *$1* ]]
}

# bats test_tags=full
@test "console: scan and why: verdicts on a process that waits" {
	mkfifo in
	exec 7<>in
	start bash -c "exec '$T/leak_kinds' wait <'$BATS_TEST_TMPDIR/in'"
	wait_for has_comm "$PID" leak_kinds
	asking "$PID" -q
	echo >&7
	wait_for built
	ask scan
	has '10 blocks definite'
	ask 'blocks 0 0'
	addr=$(awk '/keep_in_global/ { print $1; exit }' <<<"$output")
	ask "why $addr"
	has 'reachable: held by global_list'
	addr=$(awk '/lose_plain/ { print $1; exit }' <<<"$output")
	ask 'why 0x10'
	has 'in no live block'
	leave
	echo >&7
	exec 7>&-
}

has_comm() { [ "$(cat "/proc/$1/comm")" = "$2" ]; }
built() { says bash built; }

@test "console: kill: only with leave, and only what is traced" {
	stepping
	asking "$TARGET" -q
	ask kill
	has "kill $TARGET yes"
	is_running "$TARGET"
	ask 'kill 1 yes'
	has 'no such process is traced'
	ask "kill $TARGET NOSUCH yes"
	has 'kill: NOSUCH: must be a PID, a signal such as TERM, or yes'
	ask "kill $TARGET STOP yes"
	wait_for is_stopped "$TARGET"
	ask "kill SIGCONT yes"
	wait_for works_on "$TARGET"
	ask "kill $TARGET yes"
	wait_for gone "$TARGET"
	wait_for fate 'killed by signal 15'
	ask status
	has 'calls       none seen'
	leave 2
}

works_on() { ! is_stopped "$1"; }

# fate WORDS: of the one process
fate() {
	ask processes
	has "$1" >/dev/null
}

@test "console: the target is killed while the prompt waits: what was known stays (A1)" {
	stepping
	asking "$TARGET" -q
	step 'alloc 10 100'
	[ "$(live_blocks)" -eq 10 ]
	kill -KILL "$TARGET"
	wait_for fate 'killed by signal 9'
	[ "$(live_blocks)" -eq 10 ]
	leave
}

@test "console: heaptap is killed, or asked to end: no probe stays (A3, A5)" {
	spinning
	asking "$TARGET" -q
	kill -KILL "$CON_PID"
	wait_for gone "$CON_PID"
	untouched "$TARGET"
	asking "$TARGET" -q
	pid=$CON_PID
	kill -TERM "$pid"
	ended "$pid" 0
	untouched "$TARGET"
}

# bats test_tags=full
@test "console: on another machine: events, commands, a verdict, the end of the target" {
	stepping
	mkdir -m 700 sock
	start "$HEAPTAP" serve --max-pause 60s --listen "unix:$PWD/sock/s" --allow-kill "$TARGET"
	wait_for grep -qs 'heaptap connect' "$BATS_TEST_TMPDIR/heaptap.err"
	asking "unix:$PWD/sock/s" -q
	step 'alloc 10 100'
	wait_for has_blocks 10
	ask stop
	step 'free 3'
	ask start
	step 'alloc 2 10'
	wait_for has_blocks 12
	ask scan
	has '10 blocks unsure'
	ask reset
	step 'alloc 3 10'
	wait_for has_blocks 3
	# A number here means another process than there.
	ask "kill $$ yes"
	wait_for gone "$TARGET"
	wait_for fate 'killed by signal 15'
	is_running $$
	leave
}

has_blocks() { [ "$(live_blocks)" -eq "$1" ]; }

# bats test_tags=full
@test "console: several processes, each by its number" {
	spinning
	first=$TARGET
	spinning
	run "$HEAPTAP" console -q -x processes -x "set process $first" -x status -p "$first" -p "$TARGET"
	[ "$status" -eq 0 ]
	[ "$(grep -c 'still running' <<<"$output")" -eq 3 ]
	has "spin (pid $first)"
	lacks "spin (pid $TARGET)"
}

# share: of a CPU, in percent without what follows the point, as the last status has it
share() { unbroken <<<"$output" | grep -oE 'a second\), [0-9]+[^,]* of a CPU' | sed 's/.*), //; s/[^0-9].*//'; }

# bats test_tags=full
@test "console: heaptap takes no more CPU than there is, and shows no share at once" {
	local shown
	spinning
	run "$HEAPTAP" console -q "$TARGET" -x status -x "wait 1s" -x status
	[ "$status" -eq 0 ]
	# A moment after the attach a share of a CPU would mean nothing.
	fails grep -E ' events in [0-9.,]+ [num]s .* of a CPU' <<<"$output"
	[ "$(share | wc -l)" -ge 1 ]
	# The time that it took to attach is not counted, and its CPU time must not be either.
	for shown in $(share); do
		[ "$shown" -le $((110 * $(nproc --all))) ] || { echo "$output"; return 1; }
	done
}

@test "console: no such process, none that may be" {
	run "$HEAPTAP" console -x status no-such-program-anywhere
	[ "$status" -eq 4 ]
	[ "${#lines[@]}" -eq 1 ]
	run "$HEAPTAP" console
	[ "$status" -eq 2 ]
}

@test "console: by hand: completion, abbreviations, history, Ctrl-C and the end of input" {
	recording
	ldd "$HEAPTAP" | grep -q readline || skip "built without readline"
	"$ROOT/tests/lib/talk.py" "$HEAPTAP" console r.heaptap <<'SCRIPT'
expect heaptap> 
type stat\t
expect status
send 
expect exited with status 0
expect heaptap> 
type nonsense\x03
expect heaptap> 
send proc
expect leaks 1,442 B in 10 blocks, and with them 848 B in 13, exited
expect heaptap> 
type top tot\t
expect total-b
type y\t
expect tes
send  1
expect leave_pointer_in_freed
expect heaptap> 
send bad
expect no such command
expect heaptap> 
type \x04
end 0
SCRIPT
	[ "$(stat -c %a state/heaptap/history)" = 600 ]
	[ "$(stat -c %a state/heaptap)" = 700 ]
	grep -qx proc state/heaptap/history
	"$ROOT/tests/lib/talk.py" "$HEAPTAP" console r.heaptap <<'SCRIPT'
expect heaptap> 
type \x1b[A\x1b[A
expect top total-bytes
send 
expect leave_pointer_in_freed
expect heaptap> 
send quit
end 0
SCRIPT
}

@test "console: by hand, on a process: Ctrl-C leaves the command, kill asks, quit detaches" {
	spinning
	"$ROOT/tests/lib/talk.py" "$HEAPTAP" console "$TARGET" <<SCRIPT
expect heaptap> 
send monitor 10ms
expect allocated
expect allocated
type \\x03
expect heaptap> 
send kill
expect (yes or no)
send no
expect heaptap> 
send processes
expect still running
expect heaptap> 
send quit
end 0
SCRIPT
	untouched "$TARGET"
}
