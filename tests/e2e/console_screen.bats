#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# The console on a terminal that a person would have: tmux types into it, and looks at the screen.

load ../lib/common
load ../lib/screen

setup() {
	export HEAPTAP_RUN_DIR=$BATS_TEST_TMPDIR/run XDG_STATE_HOME=$BATS_TEST_TMPDIR/state
	STARTED=()
	cd "$BATS_TEST_TMPDIR" || return 1
}

teardown() {
	end_screen
	end_started
}

# with_editing: completion and history need readline
with_editing() { ldd "$HEAPTAP" | grep -q readline || skip "built without readline"; }

# prompted: wait until the prompt is the last line, and nothing is typed
at_prompt() { screen_now | grep -v '^$' | tail -n 1 | grep -qx 'heaptap> *'; }
prompted() { wait_for at_prompt || { screen_now; return 1; }; }

# type_line TEXT
type_line() { keys "$1" Enter; }

# bats test_tags=core
@test "console, tmux: completion, history, a prompt of its own for each line" {
	with_tmux
	with_editing
	spinning
	on_screen 100x40 "$HEAPTAP" console "$TARGET"
	prompted
	keys stat Tab
	shows '^heaptap> status'
	keys Enter
	shows '^spin (pid '
	keys re Tab Tab
	shows 'record .*report .*reset'
	keys C-u Up
	shows '^heaptap> status *$'
	keys C-u
	type_line 'help core'
	shows 'core FILE \[ID\]'
	type_line nonsense
	shows 'nonsense: no such command'
	type_line quit
	left 0
	untouched "$TARGET"
}

@test "console, tmux: top refreshes, Ctrl-C leaves it, long output is paged" {
	with_tmux
	spinning
	on_screen 100x20 env PAGER=less "$HEAPTAP" console "$TARGET"
	prompted
	type_line 'watch 100ms top 3'
	shows ' malloc < spin_allocates'
	keys C-c
	prompted
	type_line 'help'
	# less waits at the end of a screen.
	shows '^:\|^lines \|(END)'
	keys q
	prompted
	type_line quit
	left 0
	untouched "$TARGET"
}

# bats test_tags=full
@test "console, tmux: 20 columns, and other sizes while it runs" {
	with_tmux
	spinning
	on_screen 20x40 env PAGER=cat "$HEAPTAP" console "$TARGET"
	prompted
	type_line processes
	shows 'still r'
	prompted
	type_line 'top 2'
	shows '^ *1 '
	prompted
	type_line 'stacks 1'
	shows '^#1 '
	prompted
	type_line status
	shows '^  lost'
	# Lines are broken at blanks, and the rest is indented.
	shows '^  .*at most$'
	prompted
	[ "$(screen_now | awk 'length > 20' | wc -l)" -eq 0 ]
	for size in 200x10 9x5 20x2 80x24; do
		resize "$size"
		type_line processes
	done
	type_line 'help quit'
	shows '^  quit '
	keys C-c
	type_line quit
	left 0
	untouched "$TARGET"
}

@test "console, tmux: a terminal that can place no text" {
	with_tmux
	spinning
	on_screen 80x24 env TERM=dumb "$HEAPTAP" console "$TARGET"
	prompted
	type_line processes
	shows '^ *[0-9]* .*spin\|spin (pid '
	type_line quit
	left 0
	never_drawn $'\033\[[0-9;]*[mHJK]'
	untouched "$TARGET"
}
