#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Makes an .rpm of the source archive by rpmbuild; "make rpm" calls it after "make dist".
#
#   O=build VERSION=0.1.0   from the Makefile
#   MAINTAINER="Name <address>"   for the changelog (default: the author of the last commit)
#   SOURCE_DATE_EPOCH=seconds     its date (default: of the last commit)
#   RPM_STEP=-ba            what rpmbuild does: -bb by default, --parse for the spec file alone, --spec to print it
set -euo pipefail

top=$(cd "$(dirname "$0")/.." && pwd)
die() { printf 'rpm: %s\n' "$*" >&2; exit 1; }

maintainer=${MAINTAINER:-$(git -C "$top" log -1 --format='%an <%ae>' 2>/dev/null || true)}
[ -n "$maintainer" ] || die "not a git clone: type MAINTAINER='Name <address>' make rpm"
: "${SOURCE_DATE_EPOCH:=$(git -C "$top" log -1 --format=%ct 2>/dev/null || stat -c %Y "$top/NEWS.md")}"

# spec: the spec file, whose changelog has one entry
spec() {
	sed -e "s|@VERSION@|$VERSION|g; s|@MAINTAINER@|$maintainer|" \
		-e "s|@DATE@|$(LC_ALL=C date -u -d "@$SOURCE_DATE_EPOCH" '+%a %b %d %Y')|" "$top/packaging/heaptap.spec.in"
}

[ "${RPM_STEP:-}" != --spec ] || { spec; exit; }
command -v rpmbuild >/dev/null || die "no rpmbuild here: dnf install rpm-build, or apt install rpm"

# Outside of the build directory, whose lists of dependencies make reads.
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
mkdir -p "$tree/SOURCES" "$tree/SPECS"
cp "$O/heaptap-$VERSION.tar.gz" "$tree/SOURCES/"
spec >"$tree/SPECS/heaptap.spec"
[ "${RPM_STEP:-}" != --parse ] || { rpmspec --parse "$tree/SPECS/heaptap.spec"; exit; }

# On a distribution of other packages rpm knows nothing of what is installed.
has_packages() { rpm -q rpm >/dev/null 2>&1; }
options=()
has_packages || options=(--nodeps)
rpmbuild "${RPM_STEP:--bb}" "${options[@]}" --define "_topdir $tree" "$tree/SPECS/heaptap.spec" >"$tree/log" 2>&1 ||
	{ tail -40 "$tree/log" >&2; die "rpmbuild failed"; }
find "$tree/RPMS" -name '*.rpm' -exec cp {} "$O/" ';' -printf "  RPM     $O/%f\n"
