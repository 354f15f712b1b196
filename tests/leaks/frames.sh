#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# How many lost blocks do old pointers on a stack in use hide? (root) Builds tests/leaks/frames.c with several
# optimizations, and prints a table: all blocks of the program are lost.
set -euo pipefail

root=$(cd "$(dirname "$0")/../.." && pwd)
: "${O:=$root/build}"
: "${HEAPTAP:=$O/heaptap}"
dir=$(mktemp -d "${TMPDIR:-/tmp}/heaptap-frames.XXXXXX")
trap 'rm -rf "$dir"' EXIT
mkfifo "$dir/in"
exec 7<>"$dir/in"

echo '| waits in | -O0 | -O1 | -O2 | -O3 |'
echo '|---|---|---|---|---|'
for level in 0 1 2 3; do
	${CC:-gcc} "-O$level" -g -fno-builtin -fno-ipa-icf -o "$dir/frames$level" "$root/tests/leaks/frames.c" -pthread
done
for way in read getchar pause sleep poll spin cond; do
	echo -n "| $way |"
	for level in 0 1 2 3; do
		timeout -k 5 60 "$HEAPTAP" run -q --force -o "$dir/report.json" -- "$dir/frames$level" "$way" <&7 2>"$dir/err" || true
		jq -j '.processes[0] | " \(.scan.definite.blocks) of \(.totals.live_blocks) |"' "$dir/report.json" ||
			{ cat "$dir/err"; exit 1; }
	done
	echo
done
