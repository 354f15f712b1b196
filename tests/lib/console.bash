# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
# A console that tests talk to, command by command.

# asking [OPTIONS] TARGET: a console on it that takes commands by ask "..."
asking() {
	coproc CON { HEAPTAP_RUN_DIR=${HEAPTAP_RUN_DIR:-$BATS_TEST_TMPDIR/run} \
		XDG_STATE_HOME=${XDG_STATE_HOME:-$BATS_TEST_TMPDIR} exec "$HEAPTAP" console --max-pause 60s "$@" 2>&1 3>&-; }
	TAP=$CON_PID
	STARTED+=("$TAP")
	ask status
}

# ask CMD: its output in $output. A command whose output is known marks the end.
ask() {
	local line
	printf '%s\nhelp quit\n' "$1" >&"${CON[1]}"
	output=
	while read -r -t 120 line <&"${CON[0]}"; do
		[[ $line != quit*leave* ]] || return 0
		output+=$line$'\n'
	done
	echo "the console has gone: $output"
	return 1
}

has() { grep -qF -- "$1" <<<"$output" || { echo "not said: $1"; echo "$output"; return 1; }; }
lacks() { ! grep -qF -- "$1" <<<"$output" || { echo "said: $1"; echo "$output"; return 1; }; }

# leave [STATUS]
leave() {
	local pid=$CON_PID
	echo quit >&"${CON[1]}"
	ended "$pid" "${1:-0}"
}
