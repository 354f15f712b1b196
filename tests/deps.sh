#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Installs what a purpose needs, and says what; nothing, no network and no root when all is there. Asks no questions.
#   deps.sh [-n] [PURPOSE...]	build (the default), check, check-all, bench, viewers, packaging, machines, peers,
#				collectors, fresh; -n only says what is missing, and how much that is
set -euo pipefail

say() { printf 'deps: %s\n' "$*"; }
die() { printf 'deps: %s\n' "$*" >&2; exit 1; }

# Each row: who needs it, its packages in Debian (apt), Fedora (dnf), Arch (pacman).
# "a|b" = the first one that this release has; "?a" = only if it has one; "a,b" = both; "-" = none is needed there;
# "x86:a" = on x86_64 only; "program=a" = not if the program is there already.
table='
build      gcc                  gcc                       gcc
build      make                 make                      make
build      clang                clang                     clang
build      libbpf-dev           libbpf-devel              libbpf
build      libelf-dev           elfutils-libelf-devel     libelf
build      libdw-dev            elfutils-devel            -
build      libiberty-dev        binutils-devel            binutils
build      zlib1g-dev           zlib-devel                zlib
build      x86:libcapstone-dev  x86:capstone-devel        x86:capstone
build      libzstd-dev          libzstd-devel             zstd
build      libreadline-dev      readline-devel            readline
build      libncurses-dev       ncurses-devel             ncurses
build      libmicrohttpd-dev    ?libmicrohttpd-devel      ?libmicrohttpd
build      libcurl4-gnutls-dev  ?libcurl-devel            -

check,viewers,collectors,packaging  g++  gcc-c++         -
check      libcmocka-dev        libcmocka-devel           cmocka
check      bats                 bats                      bats
check      perl                 perl-Test-Harness         perl
check      python3              python3                   python
check,collectors  jq            jq                        jq
check,packaging,fresh  git      git                       git
check      codespell            codespell                 codespell
check      clang-format-14|clang-format  clang-tools-extra  -
check      cppcheck             cppcheck                  cppcheck
check      -                    glibc-static,libstdc++-static  -
check      musl-tools           ?musl-gcc                 musl
check      x86:libc6-dev-i386   x86:?glibc-devel(x86-32)  x86:?lib32-glibc
check      x86:lib32gcc-GCC-dev  x86:?libgcc(x86-32)      x86:?lib32-gcc-libs
check      libclang-rt-dev|libclang-rt-14-dev  compiler-rt  compiler-rt
check      llvm                 llvm                      llvm
check      gdb                  gdb                       gdb
check      valgrind             valgrind                  valgrind
check      strace               strace                    strace
check      tmux                 tmux                      tmux
check      less                 less                      less
check      file                 file                      file
check      procps               procps-ng                 procps-ng
check      util-linux           util-linux                util-linux
check      iproute2             iproute                   iproute2
check      libcap2-bin          libcap                    libcap
check      systemd              systemd                   systemd
check,collectors  curl          curl                      curl
check      xz-utils             xz                        xz
check      zstd                 zstd                      zstd
check,packaging  dpkg-dev       ?dpkg-dev                 ?dpkg
check      libxml2-utils        libxml2                   libxml2
check      libjemalloc2         jemalloc                  jemalloc
check      libtcmalloc-minimal4|libtcmalloc-minimal4t64  gperftools-libs  gperftools
check      libmimalloc2.0|libmimalloc3|libmimalloc2.1  mimalloc  mimalloc
check      libglib2.0-0|libglib2.0-0t64  glib2            glib2
check      libdebuginfod1|libdebuginfod1t64  elfutils-debuginfod-client  debuginfod
check      redis-server,redis-tools  redis|valkey         redis|valkey
check      sqlite3              sqlite                    sqlite
check,packaging  python3-yaml   python3-pyyaml            python-yaml
check      python3-prometheus-client  ?python3-prometheus_client  ?python-prometheus_client
check      libbz2-dev           -                         -
check      liblzma-dev          -                         -

check-all  ?clang-tidy          -                         -
check-all  openssh-server,openssh-client  openssh-server,openssh-clients  openssh
check-all  ?graphviz            graphviz                  graphviz
check-all  ?zsh                 ?zsh                      ?zsh
check-all  ?fish                ?fish                     ?fish
check-all,bench            ?bpftrace          ?bpftrace      ?bpftrace
check-all,bench            ?heaptrack         ?heaptrack     ?heaptrack
check-all,bench,viewers    chromium=?chromium  chromium-browser=?chromium  ?chromium
check-all,bench            ?chromium-driver   ?chromedriver  -
check-all,bench            google-pprof=?google-perftools  google-pprof=?pprof  -
check-all,viewers,collectors  go=?golang-go   go=?golang     go=?go
check-all,packaging        ?lintian           -              -
check-all,packaging        ?rpm               ?rpm-build     ?rpm-tools
check-all,packaging        ?rpmlint           ?rpmlint       -
bench      ?libjemalloc-dev     ?jemalloc-devel           -
viewers    npm=npm              npm=npm                   npm=npm
viewers    python3-jsonschema   python3-jsonschema        python-jsonschema
collectors prometheus           ?prometheus               ?prometheus
peers      bzip2,mawk,?ripgrep  bzip2,?ripgrep            bzip2,?ripgrep
packaging  docker.io,runc,systemd-container  -            -
packaging,fresh  debootstrap    -                         -
machines   qemu-system-x86,qemu-system-arm,qemu-system-mips,qemu-system-ppc,qemu-system-misc  -  -
machines   cpio,flex,bison,bc   -                         -
machines   g++-aarch64-linux-gnu  -                       -
machines   gcc-arm-linux-gnueabihf,libc6-dev-armhf-cross  -  -
machines   ?gcc-i686-linux-gnu,?libc6-dev-i386-cross  -   -
machines   ?gcc-mipsel-linux-gnu,?libc6-dev-mipsel-cross  -  -
machines   ?gcc-powerpc-linux-gnu,?libc6-dev-powerpc-cross  -  -
machines   ?gcc-riscv64-linux-gnu,?libc6-dev-riscv64-cross  -  -
'

# with_needed PURPOSE: prints it, and those whose packages it needs too
with_needed() {
	case $1 in
	build | fresh) echo "$1" ;;
	check | viewers | collectors | packaging) echo "build $1" ;;
	check-all | bench | peers | machines) echo "build check $1" ;;
	*) die "no such purpose: $1: $(awk '$1 != "" { print $1 }' <<<"$table" | tr , '\n' | awk '!seen[$0]++' | paste -sd ' ')" ;;
	esac
}

# wanted_packages COLUMN PURPOSE...: those of the table, one a line
wanted_packages() {
	local column=$1 IFS=' '
	shift
	awk -v column="$column" -v purposes=" $* " -v cpu="$(uname -m)" '
		NF {
			wanted = 0
			for (n = split($1, who, ","); n; n--) wanted += index(purposes, " " who[n] " ")
			if (!wanted || $column == "-") next
			n = split($column, names, ",")
			for (i = 1; i <= n; i++)
				if (!sub(/^x86:/, "", names[i]) || cpu == "x86_64") print names[i]
		}' <<<"$table"
}

# For each kind of package manager: is PACKAGE installed, can it be had, get PACKAGES.
apt_has() {
	[ "$dpkg_says" ] || dpkg_says=$(dpkg-query -W -f '${db:Status-Status} ${Package}\n')
	[[ $'\n'$dpkg_says$'\n' == *$'\n'"installed $1"$'\n'* ]]
}
# A name that only other packages mention has no candidate.
apt_knows() { [[ $(apt-cache policy "$1" 2>/dev/null) == *"Candidate: "[^\(]* ]]; }
apt_install() { apt-get install -y --no-install-recommends -o Dpkg::Options::=--force-confold -o DPkg::Lock::Timeout=300 "$@"; }
apt_get() {
	local policy=/usr/sbin/policy-rc.d
	# No server that a package brings may be started: tests start their own.
	if [ ! -e "$policy" ]; then
		trap "rm -f $policy" EXIT
		printf '#!/bin/sh\nexit 101\n' >"$policy"
		chmod 755 "$policy"
	fi
	DEBIAN_FRONTEND=noninteractive apt_install "$@" </dev/null
}
# How many packages that are, with all that they need in turn, and what is to be fetched for them.
apt_sum() {
	printf ': %d packages, ' "$(apt_install -s "$@" | grep -c '^Inst ')"
	apt_install -qq --print-uris "$@" | awk '/^\047/ { bytes += $3 } END { printf "%.0f MB", bytes / 1e6 }'
}
# Lists of what there is: fetched when there are none or they are older than a day.
apt_refresh() {
	[ -z "$(find /var/lib/apt/lists -name '*Packages*' -mtime -1 -print -quit 2>/dev/null)" ] || return 0
	say "apt-get update"
	apt-get update
}
# Packages that dpkg began to install once and did not finish: apt installs nothing beside them.
apt_is_whole() {
	local half mend='dpkg --configure -a; apt-get -y -f install'
	half=$(dpkg-query -W -f '${db:Status-Status} ${db:Status-Eflag} ${Package}\n' |
		awk '/^(half-|unpacked|triggers-aw)/ || $2 != "ok" { print $3, $1 }')
	[ "$half" ] || return 0
	# Files of these may be missing.
	[[ $half != *half-installed* ]] || mend+="; apt-get -y --reinstall install $(awk '/half-installed/ { print $1 }' <<<"$half" | paste -sd ' ')"
	die "not installed to the end: $(paste -sd , <<<"$half"): type: sudo sh -c '$mend'"
}

dnf_has() { rpm -q --whatprovides "$1" >/dev/null 2>&1; }
dnf_knows() { dnf -q list --available "$1" >/dev/null 2>&1 || dnf -q repoquery --whatprovides "$1" 2>/dev/null | grep -q .; }
dnf_get() { dnf install -y --setopt=install_weak_deps=False "$@" </dev/null; }
# dnf and pacman say it themselves before they install.
dnf_sum() { :; }
dnf_refresh() { :; }
dnf_is_whole() { :; }

pacman_has() { pacman -Q "$1" >/dev/null 2>&1; }
pacman_knows() { pacman -Si "$1" >/dev/null 2>&1; }
pacman_get() { pacman -S --needed --noconfirm "$@" </dev/null; }
pacman_sum() { :; }
pacman_refresh() { [ -n "$(ls /var/lib/pacman/sync/*.db 2>/dev/null)" ] || pacman -Sy; }
pacman_is_whole() { :; }

# gcc_version: of the one that is here, or that would be installed; the name of the package with its other half has it
gcc_version() {
	gcc -dumpversion 2>/dev/null | cut -d. -f1 | grep . ||
		apt-cache depends gcc 2>/dev/null | sed -n 's/.* Depends: gcc-\([0-9][0-9]*\)$/\1/p' | grep . || echo GCC
}

# any_package TEST A|B...: prints the first one that passes TEST
any_package() {
	local name names
	IFS='|' read -ra names <<<"$2"
	for name in "${names[@]}"; do
		"$1" "$name" && { echo "$name"; return 0; }
	done
	return 1
}

# install KIND PACKAGE...: those that are missing
install() {
	local kind=$1 missing=() wanted=() spec name program is_needed=
	shift
	for spec in "${@/GCC/$(gcc_version)}"; do
		program=
		[[ $spec != *=* ]] || { program=${spec%%=*}; spec=${spec#*=}; }
		[ -z "$program" ] || ! command -v "$program" >/dev/null || continue
		any_package "${kind}_has" "${spec#\?}" >/dev/null && continue
		missing+=("$spec")
		# Missing and not to be had is nothing to do, unless it has to be there.
		[ "${spec:0:1}" = '?' ] && ! any_package "${kind}_knows" "${spec#\?}" >/dev/null || is_needed=yes
	done
	[ "${#missing[@]}" -gt 0 ] || return 0
	if [ "$is_needed" ]; then
		[ "$only_say" ] || [ "$(id -u)" -eq 0 ] || die "not root: installing ${missing[*]#\?}: use sudo"
		"${kind}_is_whole"
		[ "$(id -u)" -ne 0 ] || "${kind}_refresh"
	fi
	for spec in "${missing[@]/GCC/$(gcc_version)}"; do
		if name=$(any_package "${kind}_knows" "${spec#\?}"); then
			wanted+=("$name")
		elif [ "${spec:0:1}" = '?' ]; then
			say "not in this distribution, tests that need it are skipped: ${spec#\?}"
		else
			die "not in this distribution: $spec"
		fi
	done
	[ "${#wanted[@]}" -gt 0 ] || return 0
	say "${only_say:+missing, }to install$("${kind}_sum" "${wanted[@]}"): ${wanted[*]}"
	[ "$only_say" ] || "${kind}_get" "${wanted[@]}"
	did_install=yes
}

dpkg_says=
only_say=
[ "${1:-}" != -n ] || { only_say=yes; shift; }
[ $# -gt 0 ] || set -- build
purposes=()
for purpose in "$@"; do purposes+=("$(with_needed "$purpose")"); done
did_install=
if command -v apt-get >/dev/null; then
	kind=apt column=2
elif command -v dnf >/dev/null; then
	kind=dnf column=3
elif command -v pacman >/dev/null; then
	kind=pacman column=4
else
	die "no package manager that is known here (apt-get, dnf, pacman): install by hand: $(
		wanted_packages 2 "${purposes[@]}" | paste -sd ' ')"
fi
mapfile -t packages <<<"$(wanted_packages "$column" "${purposes[@]}")"
install "$kind" "${packages[@]}"
[ "$did_install" ] || say "everything is there"
