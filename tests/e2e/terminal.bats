#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# Reports on a terminal and elsewhere: colours, and lines that fit.

load ../lib/common

setup() {
	cd "$BATS_TEST_TMPDIR"
	# Without debug information no path of a source file is longer than a line.
	objcopy --strip-debug "$T/leak_kinds" kinds
	"$HEAPTAP" run -q -w r.heaptap -- ./kinds >/dev/null 2>err
	unset NO_COLOR
	export TERM=xterm
}

# on_terminal COLUMNS ARGUMENTS...: what heaptap writes to a terminal of this width, in $shown
on_terminal() {
	local columns=$1
	shift
	SHELL=/bin/bash script -qec "stty cols $columns; '$HEAPTAP' $*" /dev/null </dev/null >shown 2>&1
	as_seen <shown >shown.plain
	shown=$(sed 's/\x1b\[[0-9;]*m//g' shown.plain)
	[ "$(grep -c . <<<"$shown")" -gt 20 ]
}

# without_end: a report without its last paragraph, which is the answer again
without_end() { awk 'BEGIN { RS = "" } NR > 1 { print last } { last = $0 }'; }

has_colours() { grep -q $'\x1b\\[' "$1"; }

widest() { awk '{ n = length($0); if (n > most) most = n } END { print most }'; }

# words FILE...: the words of reports, without the line breaks and colours
words() { sed 's/\x1b\[[0-9;]*m//g' "$@" | tr -s ' \n' '\n\n'; }

# bats test_tags=anyone,full
@test "terminal: what is bad has a colour, and nothing has one without a terminal, with NO_COLOR or on a dumb one" {
	on_terminal 80 report r.heaptap -n 10
	# The verdict and the losses, if there are any, are yellow.
	[[ "$(head -1 shown.plain)" == $'\x1b[33mleaks 1,442 B'* ]]
	"$HEAPTAP" report r.heaptap >piped
	fails has_colours piped
	"$HEAPTAP" report -o written.txt r.heaptap
	fails has_colours written.txt
	"$HEAPTAP" report --color always r.heaptap >piped
	has_colours piped
	on_terminal 80 report -n 10 --color never r.heaptap
	fails has_colours shown
	NO_COLOR=1 on_terminal 80 report r.heaptap -n 10
	fails has_colours shown
	TERM=dumb on_terminal 80 report r.heaptap -n 10
	fails has_colours shown
}

@test "terminal: the report of run begins on a line of its own, in a file, too, and a pipe has its bytes alone" {
	for text in 1 '1\n'; do
		SHELL=/bin/bash script -qec "stty cols 80; '$HEAPTAP' run -q -- printf '$text'" /dev/null </dev/null >shown 2>&1
		# Behind the last of its 80 columns a terminal goes on in a new line.
		grep -qE $'^1? {80}\rno leaks; ' shown
		"$HEAPTAP" run -q -- printf "$text" >log 2>&1
		[ "$(head -2 log | cut -d ';' -f 1)" = $'1\nno leaks' ]
	done
	"$HEAPTAP" run -q -- printf 1 2>&1 | head -c 9 | grep -qx '1no leaks'
}

# bats test_tags=anyone
@test "terminal: lines fit its width, elsewhere 80 columns, and say the same" {
	local columns
	"$HEAPTAP" report r.heaptap >piped
	[ "$(widest <piped)" -le 80 ]
	[ "$(widest <piped)" -gt 60 ]
	"$HEAPTAP" report -o written.txt r.heaptap
	cmp piped written.txt
	for columns in 64 79 100; do
		on_terminal "$columns" report r.heaptap -n 10
		[ "$(widest <<<"$shown")" -le "$columns" ] || { awk -v n="$columns" 'length($0) > n' <<<"$shown"; return 1; }
	done
	# At 300 columns nothing is broken: the other widths have lost no word.
	on_terminal 300 report r.heaptap -n 10
	# The answer comes again at the end, behind an empty line.
	diff <(words piped) <(without_end <<<"$shown" | words)
	[ "$(tail -1 <<<"$shown")" = "$(head -1 <<<"$shown")" ]
	[ "$(head -1 <<<"$shown")" = "leaks 1,442 B in 10 blocks, and with them 848 B in 13, the largest part from sharing_head (kinds)" ]
}

# too_wide COLUMNS: lines of $shown that are wider, and could have been broken at a blank
too_wide() { awk -v n="$1" 'length($0) > n && NF > 1 && $0 !~ /^ *(at|in|by|<) [^ ]*$/' <<<"$shown"; }

# bats test_tags=anyone,full
@test "terminal: few columns have all words, on lines that fit" {
	"$HEAPTAP" report r.heaptap >piped
	for columns in 20 30 39; do
		on_terminal "$columns" report r.heaptap -n 10
		[ -z "$(too_wide "$columns")" ] || { too_wide "$columns"; return 1; }
		diff <(words piped) <(without_end <<<"$shown" | words)
	done
	on_terminal 1 report r.heaptap -n 10
	diff <(words piped) <(without_end <<<"$shown" | words)
}

# bats test_tags=anyone,full
@test "terminal: the help fits, elsewhere 100 columns, and says the same" {
	"$HEAPTAP" help >piped
	[ "$(widest <piped)" -le 100 ]
	[ "$(widest <piped)" -gt 80 ]
	for columns in 80 99; do
		on_terminal "$columns" help
		[ "$(widest <<<"$shown")" -le "$columns" ]
		diff <(words piped) <(words <<<"$shown")
	done
	for columns in 1 20 40; do
		on_terminal "$columns" help
		diff <(words piped) <(words <<<"$shown")
	done
	# Texts stand below the options.
	on_terminal 40 help run
	grep -qx '  -h, --help' <<<"$shown"
}

@test "terminal: without -n the answer, three callers and the way on fit into 24 lines of 80 columns" {
	SHELL=/bin/bash script -qec "stty cols 80; '$HEAPTAP' report r.heaptap" /dev/null </dev/null 2>&1 | as_seen | sed 's/\x1b\[[0-9;]*m//g' >shown
	[ "$(wc -l <shown)" -le 24 ]
	[ "$(widest <shown)" -le 80 ]
	head -2 shown | unbroken | grep -q '^leaks 1,442 B in 10 blocks, and with them 848 B in 13, the largest part from sharing_head (kinds)'
	[ "$(grep -c '^#' shown)" -eq 3 ]
	grep -q '^        lose_plain (kinds) < build < main$' shown
	tail -1 shown | grep -q '^All callers, whole stacks and details: -n 0, -v, or a file'
	SHELL=/bin/bash script -qec "stty cols 20; '$HEAPTAP' report r.heaptap" /dev/null </dev/null | grep -q leaks
	SHELL=/bin/bash TERM=dumb script -qec "'$HEAPTAP' report r.heaptap" /dev/null </dev/null | grep -q 'leaks 1,442 B'
	[ "$("$HEAPTAP" report r.heaptap | wc -l)" -gt 24 ]
}

@test "terminal: with reports in files the answer goes to standard error, without -q" {
	"$HEAPTAP" report -o r.json r.heaptap 2>err
	grep -q '^heaptap: kinds (pid [0-9]*): leaks 1,442 B in 10 blocks, and with them 848 B in 13, ' err
	"$HEAPTAP" report -q -o q.json r.heaptap 2>err
	[ ! -s err ]
}
