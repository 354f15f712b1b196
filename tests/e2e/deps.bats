#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# tests/deps.sh on a machine of made-up packages: what it installs, and what it says. No root, no network.

load ../lib/common

# fake NAME: a command of this machine; its text is on stdin
fake() {
	{ echo '#!/bin/sh'; cat; } >"$BATS_TEST_TMPDIR/bin/$1"
	chmod 755 "$BATS_TEST_TMPDIR/bin/$1"
}

# Of packages those in the file "installed" are there, and all others can be had but those in "unknown".
setup() {
	cd "$BATS_TEST_TMPDIR" || return 1
	mkdir bin
	export PATH=$BATS_TEST_TMPDIR/bin:$PATH HERE=$BATS_TEST_TMPDIR
	: >installed
	: >unknown
	: >calls
	fake id <<<'echo "${FAKE_UID:-0}"'
	fake gcc <<<'echo 12'
	fake dpkg-query <<-'END'
		case $3 in
		*Eflag*) cat "$HERE/half" 2>/dev/null || true ;;
		*) sed 's/^/installed /' "$HERE/installed" ;;
		esac
	END
	fake apt-cache <<<'for last; do :; done; grep -qxF -- "$last" "$HERE/unknown" || echo "  Candidate: 1"'
	fake apt-get <<-'END'
		case " $* " in
		*" -s "*) printf 'Inst %s\n' one two ;;
		*" --print-uris "*) echo "'http://x/one.deb' one.deb 3000000 MD5" ;;
		*) echo "$*" >>"$HERE/calls" ;;
		esac
	END
}

deps() { run --separate-stderr "$ROOT/tests/deps.sh" "$@"; }

# asked: the packages that apt was to install
asked() { sed -n 's/^install .*Timeout=[0-9]* //p' calls | tr ' ' '\n'; }

@test "deps: only what building needs; what is there is not asked for" {
	printf '%s\n' gcc make libelf-dev >installed
	FAKE_UID=0 deps
	[ "$status" -eq 0 ]
	[[ $output == *'deps: to install: 2 packages, 3 MB: clang libbpf-dev'* ]]
	asked | grep -qx clang
	run ! grep -qxE 'gcc|make|libelf-dev|bats|jq|chromium|openssh-server' <(asked)
}

# bats test_tags=full
@test "deps: what check needs is what building needs, and more, but no browser and no server for ssh" {
	deps check
	[ "$status" -eq 0 ]
	for package in clang bats jq g++ valgrind clang-format-14; do
		asked | grep -qx -- "$package" || { echo "not asked for: $package"; return 1; }
	done
	run ! grep -qE 'chromium|openssh-server|lintian|heaptrack' <(asked)
}

@test "deps: when all is there, no root, no network and no call of apt-get" {
	deps -n check
	sed 's/.*: //' <<<"$output" | tr ' ' '\n' >installed
	: >calls
	FAKE_UID=1000 deps check
	[ "$status" -eq 0 ]
	[ "$output" = 'deps: everything is there' ]
	[ ! -s calls ]
}

@test "deps: not root: says what is missing, and calls nothing" {
	FAKE_UID=1000 deps
	[ "$status" -eq 1 ]
	[[ $stderr == 'deps: not root: installing gcc make clang '*': use sudo' ]]
	[ ! -s calls ]
}

@test "deps: a package that half failed to install before is named with the command that mends it, before all else" {
	printf '%s\n' 'installed ok gcc' 'config-files ok old' 'half-configured ok libfoo' 'half-installed reinstreq bar' >half
	deps
	[ "$status" -eq 1 ]
	[ "$stderr" = "deps: not installed to the end: libfoo half-configured,bar half-installed: type: sudo sh -c 'dpkg --configure -a; apt-get -y -f install; apt-get -y --reinstall install bar'" ]
	[ ! -s calls ]
}

# bats test_tags=full
@test "deps: a package that the release lacks: the next name, or a word that it is optional, or an error" {
	printf '%s\n' clang-format-14 bpftrace >unknown
	deps check-all
	[ "$status" -eq 0 ]
	asked | grep -qx clang-format
	[[ $output == *'deps: not in this distribution, tests that need it are skipped: bpftrace'* ]]
	echo bats >unknown
	: >calls
	deps check
	[ "$status" -eq 1 ]
	[ "$stderr" = 'deps: not in this distribution: bats' ]
	[ -z "$(asked)" ]
}

@test "deps: an unknown purpose is refused with the list of them" {
	deps everything
	[ "$status" -eq 1 ]
	[[ $stderr == 'deps: no such purpose: everything: build check '*machines* ]]
}
