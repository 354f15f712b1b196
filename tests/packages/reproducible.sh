#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Builds these sources in two directories with different names, time zones, languages, numbers of jobs and masks of
# permissions, and compares heaptap and its package byte by byte. No root, no network.
#   reproducible.sh		CC=... and MAKE=... as for make
set -euo pipefail

top=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d /tmp/heaptap-twice-XXXXXX)
trap 'rm -rf "$work"' EXIT
export MAINTAINER="Nobody <nobody@example.com>" SOURCE_DATE_EPOCH=1700000000
unset O MAKEFLAGS MAKELEVEL MFLAGS

# sources DIR: a copy of the sources there
sources() {
	mkdir -p "$1"
	if git -C "$top" rev-parse --is-inside-work-tree >/dev/null 2>&1; then
		(cd "$top" && git ls-files -z | tar -c --null -T - -f -) | tar -x -C "$1" -f -
	else
		(cd "$top" && tar -c --exclude=./build -f - .) | tar -x -C "$1" -f -
	fi
}

# build DIR JOBS: heaptap, and a package where dpkg-deb is
build() {
	"${MAKE:-make}" -s -C "$1" -j"$2" ${CC:+CC="$CC"} all >"$work/log" 2>&1 || { tail -20 "$work/log"; exit 1; }
	! command -v dpkg-shlibdeps >/dev/null ||
		"${MAKE:-make}" -s -C "$1" ${CC:+CC="$CC"} deb >"$work/log" 2>&1 || { tail -20 "$work/log"; exit 1; }
}

one=$work/one two=$work/the-other/directory
sources "$one"
(umask 022; TZ=UTC LC_ALL=C build "$one" 2)
umask 077
sources "$two"
TZ=Pacific/Auckland LC_ALL=C.UTF-8 HOME=$work build "$two" 3
files=(build/heaptap)
compgen -G "$one/build/*.deb" >/dev/null && files+=("build/$(basename "$one"/build/*.deb)")
for file in "${files[@]}"; do
	cmp "$one/$file" "$two/$file" || { echo "reproducible: $file differs" >&2; exit 1; }
	printf 'reproducible: %s: %s\n' "$file" "$(sha256sum <"$one/$file" | cut -c1-64)"
done
[ "${#files[@]}" -eq 2 ] || echo "reproducible: skipped: the package: no dpkg-dev here"
