#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# Packages: what is in them, that they can be installed, and that the installed program traces.
#
# bats file_tags=full

load ../lib/common

bats_require_minimum_version 1.5.0

setup() { cd "$BATS_TEST_TMPDIR" || return; }

# need_dpkg: $deb is a package of the program that is built already
need_dpkg() {
	command -v dpkg-shlibdeps >/dev/null || skip "no dpkg-shlibdeps here (dpkg-dev)"
	deb=$BATS_TEST_TMPDIR/heaptap.deb
	MAINTAINER="Test <test@example.com>" O="$O" VERSION=1.2.3 OUT="$deb" "$ROOT/packaging/deb.sh"
}

@test "packages: the deb has the program, its manuals and what it needs" {
	local page
	need_dpkg
	[ "$(dpkg-deb -f "$deb" Package Version)" = "Package: heaptap
Version: 1.2.3-1" ]
	[[ "$(dpkg-deb -f "$deb" Depends)" == *"libbpf"*"libc6 (>= "*"libelf1"* ]]
	dpkg-deb -x "$deb" root
	dpkg-deb -e "$deb" root/DEBIAN
	(cd root && md5sum -c --quiet DEBIAN/md5sums)
	[ "$(wc -l <root/DEBIAN/md5sums)" -eq "$(find root/usr -type f | wc -l)" ]
	for page in "$ROOT"/man/*.[0-9]; do
		gzip -t "root/usr/share/man/man${page##*.}/$(basename "$page").gz"
	done
	zcat root/usr/share/doc/heaptap/changelog.Debian.gz | head -1 | grep -qF 'heaptap (1.2.3-1)'
	[ -s root/usr/share/doc/heaptap/copyright ]
	# Each page that the README links to is beside it, and so is what to run as a service.
	for page in $(grep -oE '\]\((doc|packaging)/[^)#]+' root/usr/share/doc/heaptap/README.md | cut -c3-); do
		[ -s "root/usr/share/doc/heaptap/$page" ] || { echo "no $page"; return 1; }
	done
	[ -s root/usr/share/doc/heaptap/doc/faq.md ]
	[ -s root/usr/share/doc/heaptap/packaging/grafana-dashboard.json ]
	[ -s root/usr/lib/systemd/system/heaptap@.service ] && [ -s root/usr/lib/systemd/system/heaptap-system.service ]
	root/usr/bin/heaptap run -q -o r.json -- "$T/leak"
	jq -e '.processes[0].scan.definite.blocks == 32' r.json
}

@test "packages: dpkg installs the deb, and removes it again" {
	[ "$(id -u)" = 0 ] || skip "needs root"
	need_dpkg
	mkdir -p root/var/lib/dpkg/{updates,info,triggers}
	: >root/var/lib/dpkg/status
	dpkg --root="$PWD/root" --force-not-root --force-depends --install "$deb"
	[ -x root/usr/bin/heaptap ]
	dpkg --root="$PWD/root" --verify heaptap
	dpkg --root="$PWD/root" --purge heaptap
	[ ! -e root/usr/bin/heaptap ]
	[ -z "$(find root/usr -type f)" ]
}

@test "packages: lintian finds no error and no warning in the deb" {
	command -v lintian >/dev/null || skip "no lintian here"
	need_dpkg
	run lintian --allow-root --fail-on error,warning "$deb"
	[ "$status" -eq 0 ] || { echo "$output"; return 1; }
}

@test "packages: the spec file is one for rpm" {
	command -v rpmspec >/dev/null || skip "no rpmspec here (rpm-build, or rpm)"
	mkdir o
	: >o/heaptap-1.2.3.tar.gz
	run -0 env O="$PWD/o" VERSION=1.2.3 RPM_STEP=--parse "$ROOT/packaging/rpm.sh"
	[[ "$output" == *"Version:        1.2.3"* ]]
	[[ "$output" == *"%files"*"/usr/bin/heaptap"* ]]
}

@test "packages: rpmlint finds no error and no warning in the spec file" {
	command -v rpmlint >/dev/null || skip "no rpmlint here"
	VERSION=1.2.3 MAINTAINER="Test <test@example.com>" RPM_STEP=--spec "$ROOT/packaging/rpm.sh" >heaptap.spec
	grep -qE '^\* [A-Z][a-z]{2} [A-Z][a-z]{2} [0-9]{2} [0-9]{4} Test <test@example.com> - 1\.2\.3-1$' heaptap.spec
	run rpmlint --strict -c "$ROOT/packaging/rpmlint.toml" heaptap.spec
	[ "$status" -eq 0 ] || { echo "$output"; return 1; }
	[[ "$output" == *" 1 specfiles checked"* ]]
}

@test "packages: the list of libraries is that of the program" {
	"$ROOT/packaging/dependencies.sh" "$HEAPTAP" >list
	grep -qE "^libc\.so	[0-9][^	]*	LGPL" list
	grep -qE "^libdw\.so	[0-9][^	]*	LGPL-3\+ or GPL-2\+	" list
	# A program with another library than those.
	echo 'int main(void) { return 0; }' >other.c
	"${CC:-cc}" -o other other.c -Wl,--no-as-needed -lcrypt 2>/dev/null || skip "no other library to link with"
	run -1 "$ROOT/packaging/dependencies.sh" other
	[[ "$output" == *"libcrypt.so.1: not in packaging/dependencies.tsv"* ]]
	[[ "$output" == *"libdw.so: in packaging/dependencies.tsv, but not linked"* ]]
}

@test "packages: the source archive is the last commit" {
	git -C "$ROOT" rev-parse HEAD >/dev/null 2>&1 || skip "not a git clone"
	make -s -C "$ROOT" O="$PWD/o" dist
	tar -tzf o/heaptap-*.tar.gz >files
	[ "$(grep -cv '/$' files)" -eq "$(git -C "$ROOT" ls-tree -r --name-only HEAD | wc -l)" ]
	grep -q '^heaptap-[0-9.]*/user/cli/main.c$' files
}
