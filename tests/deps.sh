#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Installs what building and testing need, and says what; nothing, and no network, when all is there.
set -euo pipefail

say() { printf 'deps: %s\n' "$*"; }
die() { printf 'deps: %s\n' "$*" >&2; exit 1; }

need_root() {
	[ "$(id -u)" -eq 0 ] || die "not root: installing packages: type: sudo make deps"
}

# Package lists. "a|b" = the first one that this release has; "?a" = only if it has one.
apt_packages=(
	# to build
	gcc make clang llvm libbpf-dev libelf-dev libdw-dev libiberty-dev zlib1g-dev libzydis-dev libzstd-dev libreadline-dev libncurses-dev '?libmicrohttpd-dev' '?libcurl4-gnutls-dev'
	pkg-config
	# to test
	g++ libcmocka-dev bats perl jq gdb valgrind graphviz musl-tools libjemalloc2 'libtcmalloc-minimal4|libtcmalloc-minimal4t64'
	'?libmimalloc2.0|libmimalloc3|libmimalloc2.1' redis-server redis-tools sqlite3 python3 git codespell
	'clang-format-14|clang-format' '?clang-tidy' '?cppcheck' procps util-linux file binutils xz-utils openssh-server openssh-client iproute2 strace tmux
	libxml2-utils '?heaptrack' zstd curl
	# for tests of its objects
	'?libglib2.0-0|libglib2.0-0t64'
	# to read metrics
	'?python3-prometheus-client'
	# for make check-peers to compare
	bzip2 mawk '?ripgrep'
	# to open HTML reports
	'?chromium' '?chromium-driver'
	# for make static, which has no Zydis
	'?libcapstone-dev' '?libbz2-dev' '?liblzma-dev'
	# for make check-fresh
	'?debootstrap'
	# for make check-packages
	'?lintian' '?rpm' '?rpmlint' dpkg-dev '?python3-yaml'
	# to read completions
	'?zsh' '?fish'
	# for make bench to compare with; without it those rows are not measured
	'?bpftrace'
)
dnf_packages=(
	gcc make clang llvm libbpf-devel elfutils-libelf-devel elfutils-devel binutils-devel zlib-devel zydis-devel
	libzstd-devel readline-devel ncurses-devel '?libmicrohttpd-devel' '?libcurl-devel' pkgconf-pkg-config zstd glibc-static libstdc++-static
	gcc-c++ libcmocka-devel bats perl-Test-Harness jq gdb valgrind graphviz '?musl-gcc' jemalloc gperftools-libs mimalloc
	'redis|valkey' sqlite python3 git codespell clang-tools-extra procps-ng util-linux file binutils xz '?bpftrace'
	'?chromium' '?chromedriver' openssh-server openssh-clients iproute strace tmux libxml2 curl '?python3-prometheus_client' '?heaptrack' '?glibc-devel(x86-32)' '?libgcc(x86-32)'
)
pacman_packages=(
	gcc make clang llvm libbpf libelf binutils zlib zydis zstd readline ncurses '?libmicrohttpd' pkgconf
	cmocka bats perl jq gdb valgrind graphviz musl jemalloc gperftools mimalloc 'redis|valkey' sqlite python git codespell
	'?chromium' procps-ng util-linux file xz openssh iproute2 strace tmux libxml2 curl '?python-prometheus_client' '?heaptrack' '?bpftrace' '?lib32-glibc' '?lib32-gcc-libs'
)

# 32-bit targets: the compiler's other half, whose name has its version in it.
apt_32bit_packages() {
	[ "$(dpkg --print-architecture)" = amd64 ] || return 0
	echo '?libc6-dev-i386'
	command -v gcc >/dev/null || return 0
	echo "?lib32gcc-$(gcc -dumpversion | cut -d. -f1)-dev"
}

# For each kind of package manager: is PACKAGE installed, can it be had, get PACKAGES.
apt_has() { dpkg-query -W -f '${db:Status-Status}\n' "$1" 2>/dev/null | grep -qx installed; }
# A name that only other packages mention has no candidate.
apt_knows() { [[ $(apt-cache policy "$1" 2>/dev/null) == *"Candidate: "[^\(]* ]]; }
apt_get() {
	local policy=/usr/sbin/policy-rc.d
	# No server that a package brings may be started: tests start their own.
	if [ ! -e "$policy" ]; then
		trap "rm -f $policy" EXIT
		printf '#!/bin/sh\nexit 101\n' >"$policy"
		chmod 755 "$policy"
	fi
	DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "$@"
}
# Lists of what there is: fetched when there are none or they are older than a day.
apt_refresh() {
	[ -z "$(find /var/lib/apt/lists -name '*Packages*' -mtime -1 -print -quit 2>/dev/null)" ] || return 0
	say "apt-get update"
	apt-get update
}

dnf_has() { rpm -q --whatprovides "$1" >/dev/null 2>&1; }
dnf_knows() { dnf -q list --available "$1" >/dev/null 2>&1 || dnf -q repoquery --whatprovides "$1" 2>/dev/null | grep -q .; }
dnf_get() { dnf install -y --setopt=install_weak_deps=False "$@"; }
dnf_refresh() { :; }

pacman_has() { pacman -Q "$1" >/dev/null 2>&1; }
pacman_knows() { pacman -Si "$1" >/dev/null 2>&1; }
pacman_get() { pacman -S --needed --noconfirm "$@"; }
pacman_refresh() { [ -n "$(ls /var/lib/pacman/sync/*.db 2>/dev/null)" ] || pacman -Sy; }

# any_installed KIND A|B...
any_installed() {
	local name names
	IFS='|' read -ra names <<<"${2#\?}"
	for name in "${names[@]}"; do
		"$1_has" "$name" && return 0
	done
	return 1
}

# first_known KIND A|B...: prints it
first_known() {
	local name names
	IFS='|' read -ra names <<<"${2#\?}"
	for name in "${names[@]}"; do
		"$1_knows" "$name" && { echo "$name"; return 0; }
	done
	return 1
}

# install KIND PACKAGE...: those that are missing
install() {
	local kind=$1 missing=() wanted=() spec name
	shift
	for spec in "$@"; do
		any_installed "$kind" "$spec" || missing+=("$spec")
	done
	[ "${#missing[@]}" -gt 0 ] || return 0
	# Missing and not to be had is nothing to do, unless it has to be there.
	for spec in "${missing[@]}"; do
		if [ "${spec:0:1}" != '?' ] || first_known "$kind" "$spec" >/dev/null; then
			need_root
			"${kind}_refresh"
			break
		fi
	done
	for spec in "${missing[@]}"; do
		if name=$(first_known "$kind" "$spec"); then
			wanted+=("$name")
		elif [ "${spec:0:1}" = '?' ]; then
			say "not in this distribution, tests that need it are skipped: ${spec#\?}"
		else
			die "not in this distribution: $spec"
		fi
	done
	[ "${#wanted[@]}" -gt 0 ] || return 0
	say "installing: ${wanted[*]}"
	"${kind}_get" "${wanted[@]}"
	did_install=yes
}

did_install=no
if command -v apt-get >/dev/null; then
	install apt "${apt_packages[@]}"
	mapfile -t more < <(apt_32bit_packages)
	install apt "${more[@]}"
elif command -v dnf >/dev/null; then
	install dnf "${dnf_packages[@]}"
elif command -v pacman >/dev/null; then
	install pacman "${pacman_packages[@]}"
else
	die "no package manager that is known here (apt-get, dnf, pacman): install by hand: ${apt_packages[*]}"
fi
[ "$did_install" = yes ] || say "everything is there"
