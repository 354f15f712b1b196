#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Builds the .deb and the .rpm, has lintian and rpmlint read them, and installs each in a fresh root of the release of
# this machine, where the installed program must find the leaks of a target. Needs root, the mirror of packages that
# apt of this machine uses, lintian, rpm, rpmlint, and some minutes.
#
#   O=build VERSION=0.1.0   from the Makefile
#   HEAPTAP_ROOTS=DIR       keeps the root there
set -euo pipefail

say() { printf 'packages: %s\n' "$*"; }
die() { printf 'packages: %s\n' "$*" >&2; exit 1; }
. "$(dirname "$0")/root.bash"

begin_roots
trap remove_roots EXIT
root=$roots/packages
log=$roots/packages.log
for tool in lintian:lintian rpm:rpm rpmbuild:rpm rpmlint:rpmlint dpkg-shlibdeps:dpkg-dev; do
	command -v "${tool%:*}" >/dev/null || die "no ${tool%:*}: apt install ${tool#*:}"
done

# quietly COMMAND...: its words only if it fails
quietly() { "$@" >"$log" 2>&1 || { tail -30 "$log"; die "$1 $2 failed"; }; }

inside() { env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 chroot "$root" "$@"; }

# finds_leaks: the installed program on a target, and the files that came with it
finds_leaks() {
	local file
	for file in /usr/share/man/man1/heaptap.1.gz /usr/share/man/man5/heaptap-report.5.gz /usr/include/heaptap.h \
		/usr/share/bash-completion/completions/heaptap; do
		[ -s "$root$file" ] || die "$1: no $file"
	done
	inside heaptap run -q -o - -- /leak >"$log" 2>&1 || { cat "$log"; die "$1: heaptap run failed"; }
	# Lines are broken at 80 columns.
	tr -s ' \n' ' ' <"$log" | grep -q ' leaks 10.8 KiB in 32 blocks, and with them 480 B in 20, most of it from open_session (leak.c:' ||
		{ cat "$log"; die "$1: other leaks were found"; }
	grep -q '^  lost        nothing$' "$log" || { cat "$log"; die "$1: events were lost"; }
}

# leaves_nothing KIND: no file of heaptap is left in the root
leaves_nothing() {
	local left
	left=$(find "$root/usr" "$root/etc" -iname '*heaptap*')
	[ -z "$left" ] || die "$1: left behind: $left"
}

try_deb() {
	quietly lintian --allow-root --fail-on error,warning "$deb"
	cp "$deb" "$root/heaptap.deb"
	# apt installs what the package depends on; without recommended packages.
	quietly inside apt-get update
	quietly inside apt-get install -y --no-install-recommends /heaptap.deb
	finds_leaks deb
	quietly inside apt-get purge -y heaptap
	leaves_nothing deb
	say "deb: lintian has nothing to say; installed, used and removed: passed"
}

# The libraries of the deb are still in the root. Debian's rpm knows nothing of them, so that each is looked for here.
try_rpm() {
	local library
	quietly rpmlint --strict -c "$top/packaging/rpmlint.toml" "$rpm"
	RPM_STEP=--spec "$top/packaging/rpm.sh" >"$roots/heaptap.spec"
	quietly rpmlint --strict -c "$top/packaging/rpmlint.toml" "$roots/heaptap.spec"
	while read -r library; do
		inside ldconfig -p | grep -qF "	$library " || die "rpm: needs $library, which the root has not"
	done < <(rpm -qp --requires "$rpm" | sed -nE 's/^(lib[^(]*\.so[^(]*)\(.*/\1/p' | sort -u)
	rpm -qp --recommends "$rpm" | grep -q '^libmicrohttpd' || die "rpm: does not recommend the library of --metrics"
	quietly rpm --root "$root" --install --nodeps "$rpm"
	finds_leaks rpm
	rpm --root "$root" --verify --nodeps heaptap || die "rpm: other files than in the package"
	quietly rpm --root "$root" --erase heaptap
	leaves_nothing rpm
	say "rpm: rpmlint has nothing to say; installed, used and removed: passed"
}

say "make deb rpm"
quietly make -C "$top" O="$O" deb rpm
deb=$O/heaptap_$VERSION-1_$(dpkg --print-architecture).deb
rpm=$(compgen -G "$O/heaptap-$VERSION-1*.$(uname -m).rpm") || die "make rpm made no package"
mkdir -p "$root"
make_root "$(. /etc/os-release && echo "$VERSION_CODENAME")" "$root" ca-certificates
cp "$O/tests/targets/leak" "$root/leak"
for place in /proc /sys /dev; do attach "$root" "$place"; done
try_deb
try_rpm
