#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# The header of markers with the compilers that are here, for the CPUs that they know: notes as readelf reads them.
#
# bats file_tags=full

load ../lib/common

setup() {
	cd "$BATS_TEST_TMPDIR" || return 1
	cat >use.c <<'END'
#include "include/heaptap.h"
#ifdef __cplusplus
extern "C"
#endif
void use(void *p, unsigned long size, int more, const char *name);
void use(void *p, unsigned long size, int more, const char *name)
{
	HEAPTAP_MARK(name);
	if (more)
		HEAPTAP_PAUSE();
	else
		HEAPTAP_RESUME();
	HEAPTAP_ALLOC(p, size + (unsigned long)more);
	HEAPTAP_FREE((char *)p + 1);
	HEAPTAP_LEAK_CHECK();
}
END
}

# has_notes FILE: one note for each marker, without a semaphore, with as many arguments of a pointer's size as it has
has_notes() {
	local size=8
	readelf -h "$1" | grep -q 'Class: *ELF64' || size=4
	LC_ALL=C readelf -nW "$1" | awk -v size="$size" '
		/Provider: / { provider = $NF }
		/^ *Name: / { name = $2 }
		/Semaphore: / && $NF !~ /^0x0+$/ { bad = bad " semaphore" }
		/Arguments:/ {
			for (i = 2; i <= NF; i++)
				if ($i !~ "^" size "@[^ ]")
					bad = bad " " $i
			print provider ":" name, NF - 1
		}
		END { if (bad) print "bad:" bad }' | sort >found
	printf 'heaptap:%s\n' "alloc 2" "free 1" "leak_check 0" "mark 1" "pause 0" "resume 0" | diff - found
}

# compiles WHAT COMPILER...: use.c as C and as C++, optimized or not, with all warnings as errors
compiles() {
	local what=$1 std level
	shift
	for std in "c -std=c99" "c -std=gnu17" "c++ -std=c++98" "c++ -std=c++20"; do
		for level in -O0 -O2 "-Os -fPIC -ffunction-sections"; do
			# shellcheck disable=SC2086
			"$@" -x $std $level -Wall -Wextra -Wshadow -Wundef -pedantic -Werror -I "$ROOT" -c -o use.o use.c &&
				has_notes use.o || { echo "$what: $std $level"; return 1; }
		done
	done
}

@test "markers, compilers: gcc and clang, C and C++, 64 and 32 bits, have each note" {
	compiles gcc gcc
	compiles clang clang
	case $(uname -m) in
	x86_64)
		compiles "gcc -m32" gcc -m32
		compiles "gcc -mx32" gcc -mx32
		;;
	esac
}

@test "markers, compilers: clang for other CPUs has each note" {
	local cpu tried=0
	for cpu in x86_64-linux-gnu i386-linux-gnu aarch64-linux-gnu {armv7,thumbv7}-linux-gnueabihf riscv{64,32}-linux-gnu \
		powerpc{64le,64,}-linux-gnu mips{,el,64el}-linux-gnu; do
		# A build of clang may leave some CPUs out.
		if ! clang --target=$cpu -x c -c -o empty.o - </dev/null 2>said; then
			echo "# clang does not know $cpu: $(head -n 1 said)" >&3
			continue
		fi
		compiles "clang for $cpu" clang "--target=$cpu"
		tried=$((tried + 1))
	done
	[ "$tried" -ge 2 ]
}

@test "markers, compilers: the compilers for other CPUs that are installed have each note" {
	local compiler tried=0
	for compiler in $(compgen -c | grep -E '^[a-z0-9_]+-linux-gnu[a-z0-9]*-gcc$' | sort -u); do
		# The C part of a cross compiler may be there alone.
		if ! "$compiler" -x c++ -c -o empty.o - </dev/null 2>/dev/null; then
			"$compiler" -std=c99 -O2 -Wall -Wextra -pedantic -Werror -I "$ROOT" -c -o use.o use.c
			has_notes use.o || { echo "$compiler"; return 1; }
		else
			compiles "$compiler" "$compiler"
		fi
		tried=$((tried + 1))
	done
	[ "$tried" -gt 0 ] || skip "no cross compiler is installed; clang stands for them"
}

@test "markers, compilers: no notes with HEAPTAP_NO_MARKERS, arguments are used all the same" {
	for compiler in gcc clang; do
		$compiler -Wall -Wextra -Werror -DHEAPTAP_NO_MARKERS -I "$ROOT" -c -o use.o use.c
		run ! grep -q stapsdt <(readelf -SW use.o)
	done
}

@test "markers, compilers: programs of clang mark, pause and hand out as those of gcc do" {
	local level
	for level in -O0 -O2 "-O2 -fPIE -pie" "-O2 -static"; do
		# shellcheck disable=SC2086
		clang -std=gnu11 -D_GNU_SOURCE $level -g -fno-builtin -I "$ROOT" -o marked "$ROOT/tests/targets/marked.c" -pthread
		rec=$BATS_TEST_TMPDIR/marked.heaptap
		rm -f "$rec"
		traced --record "$rec" -- ./marked sections
		[ "$status" -eq 0 ]
		nothing_lost
		[ "$(of_function keep live_bytes)" -eq 410 ] || { echo "$level"; return 1; }
		[ "$("$HEAPTAP" report --events "$rec" | awk '$1 == "mark" { print $3 }')" = "$(printf 'before\nafter')" ]
	done
	traced -- ./marked pool
	is '.functions.HEAPTAP_ALLOC' 13
}
