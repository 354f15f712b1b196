# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
# What guests of other CPUs get: the agent, targets, the libraries that those need. Built in $WORK.

TARGET_FLAGS=(-I. -D_GNU_SOURCE -O1 -g -fasynchronous-unwind-tables -fno-builtin
	-fno-optimize-sibling-calls -Wall -Wextra)

# build_agent ARCH ROOT
build_agent() {
	make AGENT=1 CROSS_COMPILE="$(cross_prefix "$1")" O="$WORK/build-$1" >&2 || return 1
	cp "$WORK/build-$1/heaptap-agent" "$2/agent"
}

# build_targets ARCH DIR NAME...: each target dynamic and static; on ARM in both instruction sets. Prints their names.
build_targets() {
	local arch=$1 dir=$2 cross name variant variants=("" "-static") flags libs=()
	shift 2
	cross=$(cross_prefix "$arch")
	[ "$arch" != armhf ] || variants=("" "-static" "-arm" "-arm-static")
	# CPUs without 64-bit atomic operations.
	case $arch in mipsel | powerpc) libs=(-l:libatomic.a) ;; esac
	for name; do
		for variant in "${variants[@]}"; do
			flags=()
			case $variant in *-static) flags+=(-static) ;; esac
			case $variant in -arm*) flags+=(-marm) ;; esac
			"${cross}gcc" "${TARGET_FLAGS[@]}" "${flags[@]}" -o "$dir/$name$variant" "tests/targets/$name.c" \
				-pthread "${libs[@]}" || return 1
			echo "$name$variant"
		done
	done
}

# copy_libraries CROSS FILE ROOT [FOLDER]: those of the cross compiler's C library, and the dynamic linker where the
# file wants it
copy_libraries() {
	local name path folder=${4:-/lib}
	readelf -ld "$2" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p; s/.*interpreter: \(.*\)\]/\1/p' | sort -u |
		while read -r name; do
			path=$("${1}gcc" -print-file-name="$(basename "$name")")
			case $name in /*) ;; *) name=$folder/$name ;; esac
			mkdir -p "$3$(dirname "$name")" && cp -L "$path" "$3$name" || return 1
		done
}
