#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Random heaps with known verdicts: run.sh [SEEDS [BLOCKS [FIRST]]] (root). Each seed runs four times: run, run with
# freed memory overwritten, attach, census without a trace; or in the ways that HOW lists, which may be census_stop,
# census_fork and census_precopy, too. PRELOAD: an allocator to use instead of that of libc. PROGRAM: another one with the
# same output. Fails if a block is called lost that is not lost. Prints a line of sums for each.
set -euo pipefail

root=$(cd "$(dirname "$0")/../.." && pwd)
: "${O:=$root/build}"
: "${HEAPTAP:=$O/heaptap}"
: "${PRELOAD:=}"
seeds=${1:-20}
blocks=${2:-100000}
first=${3:-1}
read -ra ways <<<"${HOW:-run perturb attach census}"
dir=$(mktemp -d "${TMPDIR:-/tmp}/heaptap-leaks.XXXXXX")
: "${PROGRAM:=$O/tests/leaks/heap}"
target=

cleanup() {
	[ -z "$target" ] || kill "$target" 2>/dev/null || true
	rm -rf "$dir"
}
trap cleanup EXIT

# waits COMMAND...: waits until COMMAND succeeds, half a minute at most
waits() {
	local i
	for ((i = 0; i < 600; i++)); do
		"$@" && return
		sleep 0.05
	done
	return 1
}

# by_run SEED [OPTION]
by_run() {
	LD_PRELOAD=$PRELOAD timeout -k 5 300 "$HEAPTAP" run -q --depth 8 --max-pause 10s ${2:+"$2"} -o "$dir/report.json" -- \
		"$PROGRAM" "$1" "$blocks" >"$dir/out" 2>"$dir/err"
}
by_perturb() { by_run "$1" --perturb; }

by_attach() {
	local tap status=0
	rm -f "$dir/lines"
	mkfifo "$dir/lines"
	LD_PRELOAD=$PRELOAD "$PROGRAM" "$1" "$blocks" wait <"$dir/lines" >"$dir/out" &
	target=$!
	exec 8>"$dir/lines"
	waits grep -qs ready "$dir/out" || return
	timeout -k 5 300 "$HEAPTAP" attach --depth 8 --max-pause 10s -o "$dir/report.json" "$target" 2>"$dir/err" &
	tap=$!
	waits grep -qs 'attached to' "$dir/err" || return
	echo >&8
	waits grep -qs built "$dir/out" || return
	kill -INT "$(pgrep -P "$tap")"
	wait "$tap" || status=$?
	exec 8>&-
	wait "$target" || status=$?
	target=
	return "$status"
}

# The program runs without a trace. Its list of blocks must be that of the census, to the byte.
# by_census SEED [WAY]: WAY of the snapshot; it fails where that way is not to be had
by_census() {
	local status=0
	rm -f "$dir/lines"
	mkfifo "$dir/lines"
	LD_PRELOAD=$PRELOAD "$PROGRAM" "$1" "$blocks" list <"$dir/lines" >"$dir/out" &
	target=$!
	exec 8>"$dir/lines"
	waits grep -qsx built "$dir/out" || return
	timeout -k 5 300 "$HEAPTAP" scan -q --max-pause 10s --snapshot "${2:-auto}" \
		-o "$dir/report.csv" "$target" 2>"$dir/err" || return
	if grep -q ': no fork: \|: no precopy: ' "$dir/err"; then return 1; fi
	exec 8>&-
	wait "$target" || status=$?
	target=
	return "$status"
}

by_census_stop() { by_census "$1" stop; }
by_census_fork() { by_census "$1" fork; }
by_census_precopy() { by_census "$1" precopy; }

# judge HOW: prints a line of sums
judge() {
	if [[ $1 == census* ]]; then
		awk -f "$root/tests/leaks/judge_census.awk" "$dir/out" "$dir/report.csv"
	else
		jq -c -L "$root/tests/lib" --rawfile told "$dir/out" -f "$root/tests/leaks/judge.jq" "$dir/report.json"
	fi
}

# one HOW SEED: adds a line of sums to $dir/HOW; false at a wrong verdict
one() {
	rm -f "$dir/report.json" "$dir/report.csv" "$dir/out" "$dir/err"
	"by_$1" "$2" || { echo "leaks: seed $2, $1: failed"; cat "$dir/err"; return 1; }
	judge "$1" >"$dir/line"
	cat "$dir/line" >>"$dir/$1"
	jq -e '.wrong == 0 and .foreign == 0 and .differ == [] and (.no_verdict | not)' "$dir/line" >/dev/null ||
		{ echo "leaks: seed $2, $1: $(cat "$dir/line")"; return 1; }
}

wrong=0
for ((seed = first; seed < first + seeds; seed++)); do
	for how in "${ways[@]}"; do
		one $how "$seed" || wrong=$((wrong + 1))
	done
done
for how in "${ways[@]}"; do
	[ ! -s "$dir/$how" ] || jq -rs --arg how $how 'def part($found; $lost): if $lost > 0 then $found * 10000 / $lost | round / 100 else 100 end;
		"leaks: \($how): \(length) heaps, \(map(.blocks) | add) blocks, \(map(.lost) | add) lost, "
		+ "found \(part(map(.found) | add; map(.lost) | add)) %, worst heap "
		+ "\(map(part(.found; .lost)) | min) %, wrong \(map(.wrong + .foreign) | add), possible \(map(.possible_found) | add)"' "$dir/$how"
done
exit $((wrong > 0))
