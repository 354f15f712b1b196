#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# The live view: the status line of attach and run, and heaptap top, on a terminal of the test's own.

load ../lib/common
load ../lib/screen

setup() {
	export HEAPTAP_RUN_DIR=$BATS_TEST_TMPDIR/run
	STARTED=()
	cd "$BATS_TEST_TMPDIR" || return 1
}

teardown() {
	end_screen
	end_started
}

# ---- the status line ----

# A whole line of the screen, with the numbers that any trace has.
LINE='^[0-9]*:[0-9][0-9]  live [0-9][0-9.,]* [KM]*i*B in [0-9,]* blocks*  [+-][0-9]'

# no_mixing: each line of the screen that has a part of the status line is one
no_mixing() { ! screen_now | grep -E ' blocks? +[+-]|events/s' | grep -v "$LINE"; }

# bats test_tags=full
@test "status: attach on a terminal has a line that is removed before messages and reports" {
	with_tmux
	spinning
	on_screen 160x40 "$HEAPTAP" attach -n 1 "$TARGET"
	shows "$LINE.* lost 0  .*[1-9][0-9,]* events/s  heaptap .* of a CPU"
	no_mixing
	kill -USR1 "$(screen_pid)"
	shows '^spin (pid '
	shows "$LINE"
	no_mixing
	keys C-c
	left 0
	# Two reports, and nothing of the line is left.
	[ "$(screen_now | grep -c '^spin (pid ')" -ge 1 ]
	screen_lacks 'events/s'
	untouched "$TARGET"
}

# bats test_tags=full
@test "status: 20 columns have the part that matters, on one line" {
	with_tmux
	spinning
	on_screen 20x20 "$HEAPTAP" attach "$TARGET"
	shows '^[0-9]*:[0-9][0-9]  live [0-9]'
	# Drawn again and again in its place.
	shows '^0:0[3-9]  live [0-9]'
	[ "$(screen_now | grep -c ' *live [0-9]')" -eq 1 ]
	keys C-c
	left 0
}

# bats test_tags=full
@test "status: no escape codes reach the terminal, and none at all with -q, a pipe or a file" {
	with_tmux
	spinning
	on_screen 120x40 env TERM=dumb "$HEAPTAP" attach -n 1 "$TARGET"
	shows "$LINE"
	keys C-c
	left 0
	drawn 'events/s'
	never_drawn $'\033'
	end_screen

	on_screen 120x40 bash -c '"$0" attach -t 3s "$1" | cat' "$HEAPTAP" "$TARGET"
	left 0
	never_drawn 'events/s'
	end_screen

	on_screen 120x40 "$HEAPTAP" attach -q -t 3s "$TARGET"
	left 0
	never_drawn 'events/s'

	"$HEAPTAP" attach -t 3s "$TARGET" >out 2>err
	never_in err $'\r'
}

# bats test_tags=full
@test "status: run has the line with --status only" {
	with_tmux
	on_screen 120x40 "$HEAPTAP" run -t 4s "$T/spin"
	shows '^spin (pid '
	never_drawn 'events/s'
	end_screen
	on_screen 120x40 "$HEAPTAP" run --status -n 1 "$T/spin"
	shows ' live .* events/s'
	shows ready
	kill -TERM "$(pgrep -x -P "$(screen_pid)" spin)"
	left 0
	shows '^spin (pid '
}

# bats test_tags=full
@test "status: reports of --interval have their number and the time of day" {
	spinning
	start "$HEAPTAP" attach -q -n 1 -i 100ms "$TARGET"
	wait_for says heaptap '^Report 2, '
	kill -INT "$PID"
	ended "$PID" 0
	cp heaptap.out out
	grep -qE '^Report 1, [0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2}$' out
	grep -q '^Report 2, ' out
	"$HEAPTAP" attach -q -n 1 -t 100ms "$TARGET" >out
	never_in out '^Report'
}

# slowly REGEX: heaptap gets the CPU for a moment, and has not ended; has it drawn this?
slowly() {
	kill -STOP "$TAP" || return 1
	sleep 0.1
	kill -CONT "$TAP"
	drawn "$1"
}

# bats test_tags=full
@test "status: a scan says on a terminal what it does, from a second on, and the line goes" {
	with_tmux
	start python3 -c 'import signal; x = bytearray(b"x") * (200 << 20); print("ready", flush=True); signal.pause()'
	wait_for says python3 ready
	on_screen 120x40 "$HEAPTAP" scan --max-pause 60s "$PID"
	wait_for screen_pid
	TAP=$(screen_pid)
	wait_for slowly "scan: PID $PID: [a-z].*, [0-9]* s"
	left 0
	screen_lacks "scan: PID $PID: "
	# There is no such line in a file.
	"$HEAPTAP" scan --max-pause 60s "$PID" >out 2>&1
	no_line "scan: PID $PID: " out
}

# ---- top ----

# topping [COLUMNSxROWS] -- [OPTIONS] TARGET...: heaptap top on it, as soon as it shows callers or says why not
topping() {
	local size=120x40
	[ "$1" = -- ] || { size=$1; shift; }
	shift
	with_top
	on_screen "$size" "$HEAPTAP" top --max-pause 60s "$@"
	shows 'q quit'
}

with_top() {
	with_tmux
	"$HEAPTAP" top 1 2>&1 </dev/null | grep -q 'without ncurses' && skip "heaptap was built without ncurses" || true
}

# row_of FUNCTION: the first line of the list that has it
row_of() { screen_now | grep -m1 -- " $1[ ,]"; }

# row_is_first FUNCTION: the line below the heading has it
row_is_first() { screen_now | grep -A1 'CALLER' | tail -1 | grep -q -- "$1"; }

# terminal_is_back: echo and lines, as a shell needs them, and the alternate screen is left
terminal_is_back() {
	local tty=$BATS_TEST_TMPDIR/on_screen.stty
	wait_for grep -Eqs '(^| )icanon ' "$tty"
	grep -Eq '(^| )isig ' "$tty" && grep -Eq '(^| )echo ' "$tty" &&
		[ "$(tm display-message -p '#{alternate_on}')" = 0 ]
}

# bats test_tags=core
@test "top: shows callers with the numbers of the report, finds the planted leak, leaves all as it was" {
	kinds
	topping -- "$TARGET"
	built
	shows ' lose_plain '
	screen_lacks 'definite'
	# Before a verdict there is room for the function, its file and its line.
	shows 'ALLOCS/S  CALLER '
	shows 'lose_plain (leak_kinds.c:[0-9]*) < '
	keys l
	shows ' definite '
	# 5 blocks of 100 bytes, by construction.
	shows '^ *500 B .*  500 B  lose_plain '
	shows 'ALLOCS/S     LEAKED  CALLER '
	keys s
	shows 'save a report as:'
	keys "$BATS_TEST_TMPDIR/saved.json" Enter
	shows "report: $BATS_TEST_TMPDIR/saved.json"
	report=$BATS_TEST_TMPDIR/saved.json
	as_told definite
	[ "$(of_function lose_plain live_bytes)" -eq 500 ]
	row_of lose_plain | grep -q ' 5 .* 500 B '
	keys q
	left 0
	terminal_is_back
	untouched "$TARGET"
}

@test "top: sort keys, filter, stack, why, help and freeze" {
	kinds
	topping -- "$TARGET"
	built
	shows ' lose_plain '
	keys o
	shows 'sort by: .*live-blocks'
	keys total-blo
	shows 'sort by: total-blo  *total-blocks'
	keys Enter
	shows 'by blocks allocated'
	shows 'TOTAL'
	keys '<'
	shows 'by bytes allocated'

	keys / lose_plain Enter
	shows '1 by .*/lose_plain'
	[ "$(screen_now | grep -c ' < ')" -eq 1 ]
	keys Enter
	shows '^500 B .*allocated in 5 blocks'
	shows '^ *main '
	keys w
	shows 'Who holds the oldest block of lose_plain '
	shows 'is in a block of 100 B, definite'
	keys q
	shows 'q quit'

	keys '?'
	shows 'Ctrl-C'
	keys Escape
	hides 'Ctrl-C'
	keys Space
	shows 'FROZEN'
	keys Space
	hides 'FROZEN'
	keys / C-u Enter
	hides '/lose_plain'
	keys q
	left 0
	untouched "$TARGET"
}

# bats test_tags=full
@test "top: any size of the terminal, changed while it runs" {
	kinds
	topping -- "$TARGET"
	built
	shows ' lose_plain '
	for size in 20x12 300x60 20x2 12x1 80x24 20x40; do
		resize "$size"
		keys Enter
		keys '?'
		keys Escape Escape
	done
	# The heading is gone and back: all was drawn anew.
	shows ' *LIVE .*CALLER'
	shows '^ *500 B lose_plain'
	[ "$(screen_now | awk 'length > 20' | wc -l)" -eq 0 ]
	keys C-c
	left 0
	terminal_is_back
}

# bats test_tags=full
@test "top: growth counts from b on; SIGTERM and the end of the time give the terminal back" {
	kinds
	topping -- "$TARGET"
	built
	shows '+500 B .* lose_plain '
	keys b
	shows ' 0  .* lose_plain '
	kill -TERM "$(screen_pid)"
	left 0
	terminal_is_back
	untouched "$TARGET"
	end_screen
	on_screen 100x30 "$HEAPTAP" top -t 100ms -o last.json "$TARGET"
	left 0
	terminal_is_back
	jq -e '.processes[0].scan != null' last.json
}

# bats test_tags=full
@test "top: processes that end stay on the screen; text of theirs cannot act on the terminal" {
	with_top
	cp "$T/leak_kinds" "$BATS_TEST_TMPDIR/"$'a\033[7mb'
	mkfifo lines
	start bash -c 'exec "$0" wait <lines >told' "$BATS_TEST_TMPDIR/"$'a\033[7mb'
	local named=$PID
	exec 7>lines
	wait_for grep -qs ready told
	spinning
	topping 100x30 -- "$named" "$TARGET"
	shows '2 processes'
	screen_lacks 'ENDED'
	shows ' PID .*CALLER'
	kill -TERM "$TARGET"
	shows 'a\\x1b\[7mb (pid '
	echo >&7
	shows ' lose_plain '
	echo >&7
	shows ' ENDED  '
	shows ' lose_plain '
	keys q
	left 0
}

# bats test_tags=full
@test "top: the head says what the target pays, and its resident memory" {
	spinning
	topping 160x30 -- "$TARGET"
	shows 'resident [0-9]'
	if [[ ${HEAPTAP_BACKEND:-} == @(ptrace|inline) ]]; then
		shows "target's cost not measured"
	else
		shows 'target pays [0-9]* [nu]s a call, .* of a CPU'
	fi
	keys q
	left 0
}

# bats test_tags=full
@test "top: an address shows the processes of another machine" {
	with_top
	kinds
	mkdir -m 700 served
	start "$HEAPTAP" serve --listen "unix:$BATS_TEST_TMPDIR/served/s" "$TARGET"
	wait_for grep -qs 'heaptap connect' "$BATS_TEST_TMPDIR/heaptap.err"
	topping -- --sysroot / "unix:$BATS_TEST_TMPDIR/served/s"
	shows 'leak_kinds (pid '
	built
	shows '^ *500 B .* lose_plain '
	keys l
	shows '^ *500 B .*  500 B  lose_plain '
	screen_lacks resident
	keys q
	left 0
	untouched "$TARGET"
}

@test "top: says what is missing: a terminal, a terminal that can place text, a process" {
	with_top
	run "$HEAPTAP" top $$ </dev/null
	[ "$status" -eq 2 ]
	[[ $output == *'top: needs a terminal'* ]]
	spinning
	on_screen 80x20 env TERM=dumb "$HEAPTAP" top "$TARGET"
	left 3
	shows "top: terminal type 'dumb'"
	untouched "$TARGET"
	end_screen
	on_screen 80x20 "$HEAPTAP" top no-such-program
	left 4
	drawn 'no-such-program'
}

@test "top: NO_COLOR and --color never have no colours, and all words" {
	kinds
	with_top
	built
	on_screen 100x30 env NO_COLOR=1 "$HEAPTAP" top --max-pause 60s "$TARGET"
	shows 'q quit'
	keys l
	shows ' leaks .*definite'
	keys q
	left 0
	never_drawn $'\033\[[0-9;]*3[13]m'
}
