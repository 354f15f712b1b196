#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# The shapes of many.c by allocator, as a table in Markdown (root): allocators.sh [SHAPE...]. A cell has what is found of
# the lost blocks by run/attach/census, in per cent (once where all are equal), and +N for N blocks that are called possibly
# lost. A shape that loses nothing has the number of blocks that are called lost. Fails if a block is called lost that is not.
set -euo pipefail

root=$(cd "$(dirname "$0")/../.." && pwd)
: "${O:=$root/build}"
export O
many=$O/tests/verdicts/many
allocators=(glibc musl jemalloc mimalloc tcmalloc)
declare -A library=([jemalloc]=libjemalloc [mimalloc]=libmimalloc [tcmalloc]=libtcmalloc)
wrong=0

# program_of ALLOCATOR: sets PROGRAM and PRELOAD; false if it is not installed
program_of() {
	PROGRAM=$many PRELOAD=
	case $1 in
	glibc) ;;
	musl) PROGRAM=$many-musl ;;
	*) PRELOAD=$(ldconfig -p | awk -v want="^${library[$1]}(_minimal)?[.]so" '$1 ~ want && $0 ~ /x86-64|AArch64/ { print $NF; exit }')
		[ -n "$PRELOAD" ] ;;
	esac
	[ -x "$PROGRAM" ]
}

# cell NUMBER HOW
cell() {
	local line found false possible
	line=$(HOW=$2 PROGRAM=$PROGRAM PRELOAD=$PRELOAD "$root/tests/leaks/run.sh" 1 1000 "$1" 2>&1 | grep ' heaps, ' || true)
	[[ $line =~ ,\ ([0-9]+)\ lost,\ found\ ([0-9.]+)\ %.*\ wrong\ ([0-9]+),\ possible\ ([0-9]+) ]] || { echo -; return; }
	found=${BASH_REMATCH[2]} false=${BASH_REMATCH[3]} possible=${BASH_REMATCH[4]}
	[ "${BASH_REMATCH[1]}" -gt 0 ] || found=$false
	[ "$false" -eq 0 ] || found="**$found, $false false**"
	[ "$possible" -eq 0 ] || found+="+$possible"
	echo "$found"
}

printf '| shape |'
printf ' %s |' "${allocators[@]}"
printf '\n|---|'
printf '%.s---|' "${allocators[@]}"
number=0
for shape in $("$many"); do
	if [ $# -eq 0 ] || [[ " $* " == *" $shape "* ]]; then
		printf '\n| %s |' "$shape"
		for allocator in "${allocators[@]}"; do
			program_of "$allocator" || { printf ' not installed |'; continue; }
			cells=
			for how in run attach census; do
				cells+="${cells:+/}$(cell "$number" "$how")"
			done
			[ "$cells" != "${cells%%/*}/${cells%%/*}/${cells%%/*}" ] || cells=${cells%%/*}
			printf ' %s |' "$cells"
			[[ $cells != *false\*\** ]] || wrong=1
		done
	fi
	number=$((number + 1))
done
echo
exit "$wrong"
