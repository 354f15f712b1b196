#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Does what README.md tells a new user, in fresh roots of Debian releases: installs, builds, traces, installs what the
# tests need, and compiles them. Needs root, the mirror of packages that apt of this machine uses, and some minutes for
# each release.
#   fresh_root.sh [-c] [RELEASE...]	the default is bookworm trixie; -c runs make check, too; HEAPTAP_ROOTS=DIR
#					keeps the roots there
#   fresh_root.sh -w			writes into HACKING.md how much is installed on an empty bookworm, and
#					installs nothing
set -euo pipefail

say() { printf 'fresh-root: %s\n' "$*"; }
die() { printf 'fresh-root: %s\n' "$*" >&2; exit 1; }

. "$(dirname "$0")/root.bash"

begin_roots
trap remove_roots EXIT

# in_root ROOT COMMAND...: as a new user would type it
in_root() {
	local root=$1
	shift
	env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 chroot "$root" sh -c "cd /heaptap && $*"
}

# fresh RELEASE: $root, with the last commit in it
fresh() {
	root=$roots/$1
	mkdir -p "$root"
	make_root "$1" "$root" make,ca-certificates
	rm -rf "$root/heaptap"
	mkdir -p "$root/heaptap"
	git -C "$top" archive HEAD | tar -x -C "$root/heaptap"
	for place in /proc /sys /dev; do attach "$root" "$place"; done
}

# how_much PURPOSE: "76 packages, 117 MB"
how_much() {
	in_root "$root" tests/deps.sh -n "$1" >"$root.log" 2>&1 || { tail -5 "$root.log"; die "tests/deps.sh -n $1 failed"; }
	sed -n 's/^deps: missing, to install: \([0-9]* packages, [0-9]* MB\):.*/\1/p' "$root.log" | grep . ||
		die "tests/deps.sh -n $1 says nothing"
}

# write_figures: into the rows of the two commands
write_figures() {
	local purpose command figure
	fresh bookworm
	for purpose in build check; do
		command=deps
		[ "$purpose" = build ] || command=check-deps
		figure=$(how_much "$purpose")
		say "make $command: $figure"
		sed -i "/^| .make $command. |/s/[0-9]* packages, [0-9]* MB/$figure/" "$top/HACKING.md"
	done
}

# try_release RELEASE: the commands of the README, and what they must show
try_release() {
	local root
	fresh "$1"
	say "$1: an empty machine lacks $(how_much build) to build, $(how_much check) to test"
	say "$1: make deps demo"
	in_root "$root" make deps demo >"$root.log" 2>&1 || { tail -20 "$root.log"; die "$1: make deps demo failed: $root.log"; }
	# Lines are broken at 80 columns.
	tr -s ' \n' ' ' <"$root.log" | grep -q 'leaks 10.8 KiB in 32 blocks, and with them 480 B in 20, most of it from open_session (leak.c:' ||
		{ tail -20 "$root.log"; die "$1: the demo found other leaks"; }
	! grep -E '^[a-z/_0-9.]+:[0-9]+:.* warning: ' "$root.log" || die "$1: warnings"
	say "$1: heaptap run ls"
	in_root "$root" build/heaptap run ls >"$root.ls" 2>&1 || { cat "$root.ls"; die "$1: heaptap run ls failed"; }
	grep -q '^  lost        nothing$' "$root.ls" || { cat "$root.ls"; die "$1: events were lost"; }
	grep -q 'source bpf' "$root.ls" || die "$1: not by BPF"
	say "$1: make check-deps${check:+ check}"
	in_root "$root" make check-deps "${check:-build-tests}" >"$root.log" 2>&1 ||
		{ tail -20 "$root.log"; die "$1: make check-deps ${check:-build-tests} failed: $root.log"; }
	[ "$check" ] || [ "$1" != bookworm ] || ! grep -E 'not in this distribution| SKIP |skipped:' "$root.log" ||
		die "$1: something is missing"
	[ "$(in_root "$root" tests/deps.sh check)" = 'deps: everything is there' ] || die "$1: make check-deps installed too little"
	say "$1: passed"
}

check=
case ${1:-} in
-c) check=check; shift ;;
-w) write_figures; exit ;;
esac
[ $# -gt 0 ] || set -- bookworm trixie
for release in "$@"; do
	try_release "$release"
done
