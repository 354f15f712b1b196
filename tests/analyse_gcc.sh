#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# analyse_gcc.sh FILE...: gcc -fanalyzer on each FILE; prints what it finds that is not in tests/analyse_gcc.tsv.
#
# That table has findings that were read and are none: kind, file, function and the reason, which all findings of this kind
# in this function share. A row that nothing fits is named too. The analyser of each gcc is another one: the table is for
# gcc 12, and others are left out. JOBS says how many files are read at a time.
set -uo pipefail
cd "$(dirname "$0")/.."

table=tests/analyse_gcc.tsv
: "${GCC:=gcc}" "${JOBS:=2}"
version=$("$GCC" -dumpversion 2>/dev/null) || version=none
[ "${version%%.*}" = 12 ] || { echo "analyse-gcc: skipped: the table is for gcc 12, here is $version"; exit 0; }

found=$(mktemp -d)
trap 'rm -rf "$found"' EXIT
export GCC found

# analyse FILE: what the compiler says, into a file of its own
analyse() {
	LC_ALL=C "$GCC" -I. -D_GNU_SOURCE -DHEAPTAP_VERSION='""' -std=gnu11 -O2 -g -fanalyzer -fdiagnostics-plain-output \
		-fdiagnostics-path-format=none -c -o /dev/null "$1" 2>"$found/${1//\//_}" || { cat "$found/${1//\//_}"; return 1; }
}
export -f analyse
printf '%s\n' "$@" | xargs -P "$JOBS" -I{} bash -c 'analyse {}' || exit 1

awk -F'\t' '
	FNR == 1 { function_name = "-" }
	FILENAME == ARGV[1] { if (NF == 4 && !/^#/) known[$1 " " $2 " " $3] = 0; next }
	match($0, /In function .[^,:]*/) {
		function_name = substr($0, RSTART + 12, RLENGTH - 12)
		gsub(/[^A-Za-z0-9_.]/, "", function_name)
		sub(/\.(isra|part|constprop)\..*/, "", function_name)
	}
	/\[-Wanalyzer-/ {
		kind = $0
		sub(/.*\[-Wanalyzer-/, "", kind)
		sub(/\].*/, "", kind)
		file = $0
		sub(/:.*/, "", file)
		sub(/^\.\//, "", file)
		key = kind " " file " " function_name
		if (key in known)
			known[key]++
		else {
			print "analyse-gcc: " key ": " $0
			failed = 1
		}
	}
	END {
		for (key in known)
			if (!known[key]) {
				print "analyse-gcc: tests/analyse_gcc.tsv: no such finding any more: " key
				failed = 1
			}
		exit failed
	}' "$table" "$found"/*
