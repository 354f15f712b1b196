#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Does what README.md tells a new user, in fresh roots of Debian releases: installs, builds, traces. Needs root, the
# mirror of packages that apt of this machine uses, and some minutes for each release.
#   fresh_root.sh [RELEASE...]	the default is bookworm trixie; HEAPTAP_ROOTS=DIR keeps the roots there
set -euo pipefail

say() { printf 'fresh-root: %s\n' "$*"; }
die() { printf 'fresh-root: %s\n' "$*" >&2; exit 1; }

[ "$(id -u)" -eq 0 ] || die "not root: a root file system is made: type: sudo make check-fresh"
command -v debootstrap >/dev/null || die "no debootstrap: apt install debootstrap"

top=$(git -C "$(dirname "$0")" rev-parse --show-toplevel)
roots=${HEAPTAP_ROOTS:-$(mktemp -d /tmp/heaptap-roots-XXXXXX)}
mounted=()

unmount() {
	local i
	for ((i = ${#mounted[@]} - 1; i >= 0; i--)); do umount -l "${mounted[i]}"; done
	mounted=()
	[ -n "${HEAPTAP_ROOTS:-}" ] || rm -rf --one-file-system "$roots"
}
trap unmount EXIT

# mirror: where apt of this machine has Debian's packages from
mirror() {
	apt-get indextargets --format '$(REPO_URI) $(ORIGIN) $(LABEL)' 'Created-By: Packages' |
		awk '$2 == "Debian" && $3 == "Debian" { print $1; exit }'
}

# attach ROOT PLACE: bind PLACE of this machine
attach() {
	mkdir -p "$1$2"
	mount --rbind "$2" "$1$2"
	mount --make-rslave "$1$2"
	mounted+=("$1$2")
}

# make_root RELEASE ROOT MIRROR: the smallest system, make, and the settings of apt that reach the mirror
make_root() {
	local setting
	[ -e "$2/etc/debian_version" ] || debootstrap --variant=minbase --include=make,ca-certificates "$1" "$2" "$3" >"$2.log" 2>&1 ||
		{ tail -5 "$2.log"; die "$1: debootstrap failed"; }
	apt-config dump | grep -E '^Acquire::(https?)::' >"$2/etc/apt/apt.conf.d/90this-machine" || true
	for setting in /etc/resolv.conf /etc/hosts; do cp -L "$setting" "$2$setting"; done
	mkdir -p "$2/usr/local/share/ca-certificates"
	find /usr/local/share/ca-certificates -name '*.crt' -exec cp -t "$2/usr/local/share/ca-certificates" {} +
	chroot "$2" update-ca-certificates >>"$2.log" 2>&1
}

# in_root ROOT COMMAND...: as a new user would type it
in_root() {
	local root=$1
	shift
	env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 chroot "$root" sh -c "cd /heaptap && $*"
}

# try_release RELEASE: the two commands of the README, and what they must show
try_release() {
	local root=$roots/$1
	mkdir -p "$root"
	make_root "$1" "$root" "$(mirror)"
	rm -rf "$root/heaptap"
	mkdir -p "$root/heaptap"
	git -C "$top" archive HEAD | tar -x -C "$root/heaptap"
	for place in /proc /sys /dev; do attach "$root" "$place"; done
	say "$1: make deps demo"
	in_root "$root" make deps demo >"$root.log" 2>&1 || { tail -20 "$root.log"; die "$1: make deps demo failed: $root.log"; }
	grep -q '^leaks 10.8 KiB in 32 blocks, 2 places (worst: open_session at ' "$root.log" ||
		{ tail -20 "$root.log"; die "$1: the demo found other leaks"; }
	! grep -E '^[a-z/_0-9.]+:[0-9]+:.* warning: ' "$root.log" || die "$1: warnings"
	say "$1: heaptap run ls"
	in_root "$root" build/heaptap run ls >"$root.ls" 2>&1 || { cat "$root.ls"; die "$1: heaptap run ls failed"; }
	grep -q '^  lost        nothing$' "$root.ls" || { cat "$root.ls"; die "$1: events were lost"; }
	grep -q 'source bpf' "$root.ls" || die "$1: not by BPF"
	say "$1: passed"
}

[ -n "$(mirror)" ] || die "apt of this machine knows no mirror of Debian"
[ $# -gt 0 ] || set -- bookworm trixie
for release in "$@"; do
	try_release "$release"
done
