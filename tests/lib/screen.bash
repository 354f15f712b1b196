# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
# A terminal that tests type into and look at: tmux, with a server of the test's own.

with_tmux() { command -v tmux >/dev/null || skip "tmux is not installed: make check-deps"; }

tm() { tmux -L heaptap -f /dev/null "$@" 3>&-; }

# on_screen COLUMNSxROWS COMMAND...: run it on a new terminal, which stays when it ends and then has its status in its
# last line. All bytes that reach the terminal are in $bytes.
on_screen() {
	local size=$1
	shift
	bytes=$BATS_TEST_TMPDIR/bytes
	# A server of its own for each screen: that of the last one may not have gone yet.
	mkdir -p "$BATS_TEST_TMPDIR/tmux"
	TMUX_TMPDIR=$(mktemp -d "$BATS_TEST_TMPDIR/tmux/XXXX")
	export TMUX_TMPDIR
	: >"$bytes"
	unset TMUX
	# The command waits for its first line until its bytes are kept.
	{
		echo '#!/bin/bash'
		echo 'read -r'
		printf '%q ' "$@"
		echo
		echo 'echo "ended with status $?"; stty -a >"$0.stty"; exec sleep 1000'
	} >"$BATS_TEST_TMPDIR/on_screen"
	chmod +x "$BATS_TEST_TMPDIR/on_screen"
	tm new-session -d -x "${size%x*}" -y "${size#*x}" "$BATS_TEST_TMPDIR/on_screen"
	tm pipe-pane "cat >>'$bytes'"
	keys Enter
}

# keys KEY...: as tmux names them; text as it is
keys() { tm send-keys "$@"; }

screen_now() { tm capture-pane -p; }

screen_has() { screen_now | grep -q -- "$1"; }
screen_lacks() { ! screen_now | grep -q -- "$1"; }

# shows REGEX, hides REGEX: wait until a line of the screen has it; until none has
shows() { wait_for screen_has "$1" || { screen_now; return 1; }; }
hides() { wait_for screen_lacks "$1" || { screen_now; return 1; }; }

resize() { tm resize-window -x "${1%x*}" -y "${1#*x}"; }

# left STATUS: the command on the screen has ended with it
left() { shows "^ended with status $1\$"; }

# screen_pid: of the command on the screen
screen_pid() { pgrep -o -P "$(tm display-message -p '#{pane_pid}')"; }

# drawn REGEX, never_drawn REGEX: bytes that have reached the terminal; never_in FILE REGEX
drawn() { grep -q -- "$1" "$bytes"; }
never_in() { ! grep -q -- "$2" "$1"; }
never_drawn() { never_in "$bytes" "$1"; }

end_screen() { [ -z "${bytes:-}" ] || tm kill-server 2>/dev/null || true; }
