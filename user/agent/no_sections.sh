#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# no_sections.sh PROGRAM: take the table of sections out of a linked program, about 1 KiB. Only debuggers read it.
set -euo pipefail

program=$1
end=0
while read -r _ offset _ _ size _; do
	((end = offset + size > end ? offset + size : end))
done < <(readelf -lW "$program" | grep -E '^  [A-Z_]+ +0x')
[ "$end" -gt 0 ] || { echo "no_sections.sh: $program: no segments" >&2; exit 1; }

zero() { # zero OFFSET BYTES
	dd if=/dev/zero of="$program" bs=1 seek="$1" count="$2" conv=notrunc status=none
}

truncate -s "$end" "$program"
# e_shoff; e_shnum and e_shstrndx
case $(od -An -tu1 -j4 -N1 "$program") in
*2) zero 40 8 && zero 60 4 ;;
*) zero 32 4 && zero 48 4 ;;
esac
