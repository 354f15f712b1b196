#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# own_libraries.sh COMMAND...: runs COMMAND where the libraries that tests trace are copies of their own (root).
#
# A uprobe belongs to a file. A trace by BPF that follows children has probes in every process that uses the file, also in
# those of other tests, and such a probe disturbs a breakpoint of the ptrace source. In a mount namespace with copies of
# the C library, of the allocators and of the traced programs, tests run side by side and do not disturb each other.
# Without a mount namespace COMMAND is not run, and the status is 99.
set -euo pipefail
cd "$(dirname "$0")/.."

: "${O:=$PWD/build}"

# The library files of this machine that tests trace, each once, without links.
libraries() {
	local name paths=()
	for name in libc.so.6 libc.so libc_malloc_debug.so.0 'ld-linux*.so.*' 'libstdc++.so.6' 'libjemalloc.so.*' \
		'libtcmalloc*.so.*' 'libmimalloc*.so*'; do
		# Unquoted: a pattern, in /usr/lib, /usr/lib64, /usr/lib/x86_64-linux-gnu and the like.
		paths+=(/lib/$name /lib64/$name /usr/lib*/$name /usr/lib/*-linux-*/$name)
	done
	# A pattern without a file stays itself, and no file has this name.
	{ readlink -e "${paths[@]}" || true; } | sort -u
}

# is_elf FILE: a linker script such as glibc's libc.so is no library
is_elf() {
	local magic
	LC_ALL=C read -r -N 4 magic <"$1" && [ "$magic" = $'\x7fELF' ]
}

# bind_copy PATH COPY: from now on PATH is a copy of itself, in this namespace
bind_copy() {
	cp -a "$1" "$2"
	mount --bind "$2" "$1"
}

if [ "${1:-}" = --inside ]; then
	copies=$2
	shift 2
	while read -r file; do
		! is_elf "$file" || bind_copy "$file" "$copies/${file//\//_}"
	done < <(libraries)
	for directory in targets oracle; do
		[ ! -d "$O/tests/$directory" ] || bind_copy "$O/tests/$directory" "$copies/$directory"
	done
	exec "$@"
fi

if ! why=$(unshare -m --propagation private true 2>&1); then
	echo "own_libraries.sh: no mount namespace: $why" >&2
	exit 99
fi
copies=$(mktemp -d "$O/tests/own.XXXXXX")
trap 'rm -rf "$copies"' EXIT
unshare -m --propagation private "$PWD/tests/own_libraries.sh" --inside "$copies" "$@"
