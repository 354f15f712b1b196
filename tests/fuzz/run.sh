#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# run.sh DIRECTORY SECONDS [NAME...]: searches with each fuzzer in DIRECTORY/tests/fuzz for so long, side by side.
#
# A search begins with the inputs of tests/fuzz/corpus/NAME, and keeps new ones in DIRECTORY/corpus/NAME. What ends a
# fuzzer is in DIRECTORY/corpus/NAME.finding-*; give such a file to the fuzzer as its argument to see it again.
# NEW=1: first make tests/fuzz/corpus/ smaller: only inputs that reach something new, none longer than 256 bytes.
set -uo pipefail
cd "$(dirname "$0")/../.."

directory=$1
seconds=$2
shift 2
: "${JOBS:=$(nproc)}"

# search PROGRAM: its last lines, if it found something, and its number of inputs
search() {
	local name=${1##*/} kept=$directory/corpus/${1##*/} seeds=tests/fuzz/corpus/${1##*/} status=0
	mkdir -p "$kept"
	[ -d "$seeds" ] || seeds=
	# The limit of memory is that of a heaptap on a small machine; a single input may take ten seconds.
	"$1" -max_total_time="$seconds" -timeout=20 -rss_limit_mb=2560 -print_final_stats=1 -artifact_prefix="$kept.finding-" \
		"$kept" ${seeds:+"$seeds"} >"$kept.log" 2>&1 || status=$?
	if [ "$status" -eq 0 ]; then
		awk -v name="$name" '/number_of_executed_units/ { nr = $2 } / cov: / { for (i = 1; i < NF; i++) if ($i == "cov:") cov = $(i + 1) }
			END { printf "%-14s %9d inputs, %5d places reached, no finding\n", name, nr, cov }' "$kept.log"
		return 0
	fi
	echo "$name: a finding: $kept.log"
	grep -E 'SUMMARY|runtime error|Test unit written|ALARM|deadly signal' "$kept.log"
	return 1
}

if [ -n "${NEW:-}" ]; then
	for program in "$directory"/tests/fuzz/fuzz_*[a-z]; do
		name=${program##*/}
		mkdir -p "tests/fuzz/corpus/$name"
		"$program" -merge=1 -max_len=256 "tests/fuzz/corpus/$name" "$directory/corpus/$name" 2>/dev/null
	done
	exit
fi

export directory seconds
export -f search
programs=()
for program in "$directory"/tests/fuzz/fuzz_*; do
	[[ -x $program && ! $program == *.* ]] || continue
	[ $# -eq 0 ] || [[ " $* " == *" ${program##*/} "* ]] || continue
	programs+=("$program")
done
printf '%s\n' "${programs[@]}" | xargs -P "$JOBS" -I{} bash -c 'search {}'
