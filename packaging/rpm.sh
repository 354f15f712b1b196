#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Makes an .rpm of the source archive by rpmbuild; "make rpm" calls it after "make dist".
#
#   O=build VERSION=0.1.0   from the Makefile
#   RPM_STEP=-ba            what rpmbuild does: -bb by default, --parse for the spec file alone
set -euo pipefail

top=$(cd "$(dirname "$0")/.." && pwd)
die() { printf 'rpm: %s\n' "$*" >&2; exit 1; }

command -v rpmbuild >/dev/null || die "no rpmbuild here: dnf install rpm-build, or apt install rpm"

# Outside of the build directory, whose lists of dependencies make reads.
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
mkdir -p "$tree/SOURCES" "$tree/SPECS"
cp "$O/heaptap-$VERSION.tar.gz" "$tree/SOURCES/"
sed "s|@VERSION@|$VERSION|" "$top/packaging/heaptap.spec.in" >"$tree/SPECS/heaptap.spec"
[ "${RPM_STEP:-}" != --parse ] || { rpmspec --parse "$tree/SPECS/heaptap.spec"; exit; }

# On a distribution of other packages rpm knows nothing of what is installed.
has_packages() { rpm -q rpm >/dev/null 2>&1; }
options=()
has_packages || options=(--nodeps)
rpmbuild "${RPM_STEP:--bb}" "${options[@]}" --define "_topdir $tree" "$tree/SPECS/heaptap.spec" >"$tree/log" 2>&1 ||
	{ tail -40 "$tree/log" >&2; die "rpmbuild failed"; }
find "$tree/RPMS" -name '*.rpm' -exec cp {} "$O/" ';' -printf "  RPM     $O/%f\n"
