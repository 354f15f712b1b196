#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Makes a .deb of a build by make install and dpkg-deb; "make deb" calls it.
#
#   O=build VERSION=0.1.0 MAKE=make   from the Makefile
#   MAINTAINER="Name <address>"       for the package (default: the author of the last commit)
#   OUT=file.deb                      (default: in $O)
#   SOURCE_DATE_EPOCH=seconds         date of the changelog (default: of the last commit)
set -euo pipefail
umask 022

top=$(cd "$(dirname "$0")/.." && pwd)
say() { printf '  DEB     %s\n' "$*"; }
die() { printf 'deb: %s\n' "$*" >&2; exit 1; }

for tool in dpkg-deb dpkg-shlibdeps; do
	command -v "$tool" >/dev/null || die "no $tool here: apt install dpkg-dev"
done

arch=$(dpkg --print-architecture)
maintainer=${MAINTAINER:-$(git -C "$top" log -1 --format='%an <%ae>' 2>/dev/null || true)}
[ -n "$maintainer" ] || die "not a git clone: type MAINTAINER='Name <address>' make deb"
: "${SOURCE_DATE_EPOCH:=$(git -C "$top" log -1 --format=%ct 2>/dev/null || stat -c %Y "$top/NEWS.md")}"
export SOURCE_DATE_EPOCH

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
root=$work/debian/heaptap
doc=$root/usr/share/doc/heaptap

fill_root() {
	"${MAKE:-make}" -s -C "$top" O="$O" DESTDIR="$root" prefix=/usr install install-docs
	# Debian's zsh looks in a directory of its own.
	mkdir -p "$root/usr/share/zsh"
	mv "$root/usr/share/zsh/site-functions" "$root/usr/share/zsh/vendor-completions"
	find "$root/usr/share/man" -type f -exec gzip -9n {} +
	install -m 644 "$top/packaging/copyright" "$doc/copyright"
	install -D -m 644 "$top/packaging/lintian-overrides" "$root/usr/share/lintian/overrides/heaptap"
	gzip -9nc "$top/NEWS.md" >"$doc/changelog.gz"
	printf 'heaptap (%s-1) unstable; urgency=medium\n\n  * Package of heaptap %s.\n\n -- %s  %s\n' "$VERSION" \
		"$VERSION" "$maintainer" "$(date -u -R -d "@$SOURCE_DATE_EPOCH")" | gzip -9nc >"$doc/changelog.Debian.gz"
}

# dpkg-shlibdeps reads debian/control, and prints shlibs:Depends=...
libraries() {
	printf 'Source: heaptap\n\nPackage: heaptap\nArchitecture: any\n' >"$work/debian/control"
	(cd "$work" && dpkg-shlibdeps -Sdebian/heaptap -O debian/heaptap/usr/bin/heaptap) | sed -n 's/^shlibs:Depends=//p'
}

control() {
	local depends
	depends=$(libraries)
	[ -n "$depends" ] || die "dpkg-shlibdeps found no library"
	mkdir -p "$root/DEBIAN"
	sed -e "s|@VERSION@|$VERSION-1|; s|@ARCH@|$arch|; s|@DEPENDS@|$depends|; s|@MAINTAINER@|$maintainer|" \
		-e "s|@SIZE@|$(du -k -s --apparent-size "$root/usr" | cut -f1)|" \
		"$top/packaging/control.in" >"$root/DEBIAN/control"
	(cd "$root" && find usr -type f -print0 | sort -z | xargs -0 md5sum) >"$root/DEBIAN/md5sums"
}

fill_root
control
file=${OUT:-$O/heaptap_$VERSION-1_$arch.deb}
dpkg-deb --root-owner-group -Zxz --build "$root" "$file" >/dev/null
say "$file"
