# SPDX-License-Identifier: GPL-2.0-or-later
# The files that make install puts on a machine: the program, its manuals, completions of command lines.
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
}

@test "install: zsh and fish read their completions" {
	local nr=0
	installed install
	if command -v zsh >/dev/null; then
		zsh -n root/usr/share/zsh/site-functions/_heaptap
		nr=$((nr + 1))
	fi
	if command -v fish >/dev/null; then
		run fish -c 'source root/usr/share/fish/vendor_completions.d/heaptap.fish; complete -C "heaptap run --back"'
		[[ $output == --backend* ]]
		nr=$((nr + 1))
	fi
	[ "$nr" -gt 0 ] || skip "neither zsh nor fish is installed"
}

@test "install: the demo of a stripped program names its functions, and explains them" {
	installed install
	root/usr/bin/heaptap demo >out
	grep -q '^leaks 5,120 B in 10 blocks, 1 place (demo_open_session in heaptap)$' out
	[ "$(grep -c '^    ^ ' out)" -ge 8 ]
	grep -A1 'demo_handle_request in heaptap' out | grep -q 'the place to mend'
}
