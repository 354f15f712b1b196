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

@test "status: attach on a terminal has a line that is removed before messages and reports" {
	with_tmux
	spinning
	on_screen 120x40 "$HEAPTAP" attach -n 1 "$TARGET"
	shows "$LINE.* lost 0  [1-9][0-9,]* events/s  heaptap .* of a CPU"
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

@test "status: run has the line with --status only" {
	with_tmux
	on_screen 120x40 "$HEAPTAP" run -t 4s "$T/spin"
	shows '^spin (pid '
	never_drawn 'events/s'
	end_screen
	on_screen 120x40 "$HEAPTAP" run --status -n 1 "$T/spin"
	shows ' live .* events/s'
	kill -TERM "$(pgrep -x -P "$(screen_pid)" spin)"
	left 0
	shows '^spin (pid '
}

@test "status: reports of --interval have their number and the time of day" {
	spinning
	"$HEAPTAP" attach -q -n 1 -i 1s -t 2500ms "$TARGET" >out
	grep -qE '^Report 1, [0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2}$' out
	grep -q '^Report 2, ' out
	"$HEAPTAP" attach -q -n 1 -t 1s "$TARGET" >out
	never_in out '^Report'
}
