# SPDX-License-Identifier: GPL-2.0-or-later
# The files that make install puts on a machine: the program, its manuals, completions of command lines.
#
# bats file_tags=full
load ../lib/common

setup() { cd "$BATS_TEST_TMPDIR" || return; }

installed() { make -s -C "$ROOT" O="$O" DESTDIR="$PWD/root" prefix=/usr "$@"; }

# completed WORD...: what bash offers for the last word of this command line
completed() {
	bash -c 'source root/usr/share/bash-completion/completions/heaptap
		COMP_WORDS=(heaptap "$@") COMP_CWORD=$#
		_heaptap 2>/dev/null
		printf "%s\n" "${COMPREPLY[@]}"' _ "$@"
}

@test "install: the installed program traces, and uninstall leaves nothing" {
	installed install
	root/usr/bin/heaptap run -q -o r.json -- "$T/leak"
	jq -e '.processes[0].scan.definite.blocks == 32' r.json
	[ -s root/usr/share/man/man1/heaptap.1 ]
	[ "$(file -b root/usr/bin/heaptap | grep -c 'not stripped')" -eq 0 ]
	installed uninstall
	[ -z "$(find root -type f)" ]
}

@test "install: bash completes commands, options and values" {
	installed install
	[ "$(completed att)" = attach ]
	[ "$(completed run --back)" = --backend ]
	[ "$(completed run --backend p)" = ptrace ]
	[ "$(completed diff --no-scan)" = "" ]
	# --sort=live-by is three words.
	[ "$(completed run --sort = live-by)" = live-bytes ]
	[ "$(completed run --sort =)" = "$(completed run --sort "")" ]
	# Behind --output come files, and no endings of names.
	[ "$(completed run --output .j)" = "" ]
	completed attach "" >processes
	fails grep -qx kthreadd processes
}

# commands_by_help, options_by_help COMMAND: what heaptap itself says that there is, one a line, sorted
commands_by_help() { "$HEAPTAP" help | sed -nE 's/^  ([a-z]+) .*/\1/p' | LC_ALL=C sort; }
options_by_help() { "$HEAPTAP" help --all "$1" | sed -nE 's/^  (-[A-Za-z], |    )(--[a-z-]+)( .*)?$/\2/p' | LC_ALL=C sort; }

bash_offers() { completed "$@" | LC_ALL=C sort; }

# zsh_offers WORD...: functions that print stand for those of zsh that ask its line editor
zsh_offers() {
	zsh -f -c '_arguments() { print -rl -- "$@" }
		_describe() { print -rl -- "--${(@)^described%%:*}" }
		words=(heaptap "$@") CURRENT=$((${#words}))
		. root/usr/share/zsh/site-functions/_heaptap' - "$@" | sed -nE 's/^\*?(--[a-z-]+).*/\1/p' | LC_ALL=C sort
}

fish_offers() {
	fish -c 'source root/usr/share/fish/vendor_completions.d/heaptap.fish; complete -C "heaptap $argv"' -- "$@" |
		cut -f1 | LC_ALL=C sort
}

# offers_all SHELL: its completion has each command and each option of the help, and no other
offers_all() {
	local command nr=0
	[ "$("$1_offers" "" | sed 's/^--//')" = "$(commands_by_help)" ] || { echo "$1: commands"; return 1; }
	for command in $(commands_by_help); do
		options_by_help "$command" >wanted
		"$1_offers" "$command" -- >offered
		diff wanted offered || { echo "$1: $command"; return 1; }
		nr=$((nr + $(wc -l <wanted)))
	done
	[ "$nr" -gt 300 ]
}

@test "install: completions of bash have each command and each option, and no other" {
	installed install
	grep -qx -- --push <(options_by_help attach)
	offers_all bash
}

@test "install: completions of zsh have each command and each option, and no other" {
	command -v zsh >/dev/null || skip "no zsh here"
	installed install
	zsh -n root/usr/share/zsh/site-functions/_heaptap
	offers_all zsh
	# Without = zsh offers no values behind --sort=.
	grep -qF "'*'{--sort=,-s+}'[" root/usr/share/zsh/site-functions/_heaptap
	run zsh -fc 'compadd() { shift; print -l "${(P)1[@]}"; }
		_alternative() { for a; do [[ $a != *compadd* ]] || eval "${a##*:}"; done; }
		_arguments() { :; }; words=(heaptap attach "") CURRENT=2 _describe() { :; }
		. root/usr/share/zsh/site-functions/_heaptap; _heaptap_processes'
	[[ $output == *zsh* && $output != *kthreadd* ]]
}

@test "install: completions of fish have each command and each option, and no other" {
	command -v fish >/dev/null || skip "no fish here"
	installed install
	export HOME=$PWD
	offers_all fish
	fish_offers attach "" >processes
	grep -qx fish processes
	fails grep -qx kthreadd processes
}

@test "install: the demo of a stripped program names its functions, and explains them" {
	installed install
	root/usr/bin/heaptap demo >out
	grep -q '^leaks 5,120 B in 10 blocks, from demo_open_session (heaptap)$' out
	[ "$(grep -c '^    ^ ' out)" -ge 8 ]
	grep -A1 'demo_handle_request in heaptap' out | grep -q 'the place to mend'
}
