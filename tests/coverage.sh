#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# coverage.sh [FILE...]: runs unit tests and end-to-end tests on an instrumented heaptap in $O, and counts its lines.
#
# FILEs are those of tests/e2e, without ending; none = all in "usual". $O/lines.txt has the lines of each room, and
# $O/missing.txt how many of each file no test has run.
#   REPORT=1  only count again
#   PIECE=1   do not count: more tests will follow
#   UNITS=    no unit tests
# A test that fails here does not end it: an instrumented heaptap is slow and has a file more than a usual one.
set -uo pipefail
cd "$(dirname "$0")/.."

: "${O:=$PWD/build/coverage}" "${JOBS:=2}"
export O JOBS HEAPTAP=$O/heaptap HEAPTAP_ROUNDS=2
raw=$O/raw

usual=(options mistakes errors counts formats formats_ci report_keys recording between series names census remote
	metrics top attach run follow ptrace inline inline_follow scan leaks losses steer system why doctor badinput inject
	events rights rights_files stacks markers programs terminal unwatched census_allocators faults_lifecycle
	faults_memory faults_files faults_environment faults_allocators broken_off servers sanitizers console
	console_core console_memory console_log console_files console_break again links)

# Processes of other users write there, too. %c: the counters are the file, so that no process has to write it at its end.
begin() {
	mkdir -p "$raw"
	chmod 1777 "$raw"
	export LLVM_PROFILE_FILE=$raw/%p-%m%c.profraw
}

run_tests() {
	local files=("$@")
	[ ${#files[@]} -gt 0 ] || files=("${usual[@]}")
	if [ "${UNITS-yes}" ]; then
		find "$O/tests/unit" -name 'test_*' -type f -executable -print0 | sort -z |
			sed -z "s/^/unit:/" | xargs -0 tests/run.py >"$O/unit.log" 2>&1
	fi
	files=("${files[@]/#/e2e:tests/e2e/}")
	tests/run.py "${files[@]/%/.bats}" >>"$O/e2e.log" 2>&1
}

# merge: counters of many processes into one file, a thousand at a time; what has been merged is removed
merge() {
	local part
	find "$raw" -name '*.profraw' -size +0 | split -l 1000 - "$O/part."
	for part in "$O"/part.*; do
		[ -e "$part" ] || continue
		[ ! -e "$O/all.profdata" ] || echo "$O/all.profdata" >>"$part"
		llvm-profdata merge -sparse -failure-mode=all -f "$part" -o "$O/next.profdata" 2>>"$O/merge.log" &&
			mv "$O/next.profdata" "$O/all.profdata"
		grep profraw "$part" | xargs rm -f
		rm "$part"
	done
}

# by_room: lines and lines that were run, of each directory. Counters belong to functions by name and contents, so those of
# the unit tests, which are programs of their own, are among heaptap's.
by_room() {
	llvm-cov export -summary-only -instr-profile="$O/all.profdata" "$O/heaptap" 2>>"$O/merge.log" |
		jq -r --arg top "$PWD/" '.data[0].files[] | .filename as $n | .summary.lines as $l |
			($n | sub("^(\\./|" + $top + ")"; "")) as $n | select($n | test("^(user|arch|fallback|call)/")) |
			[($n | sub("/[^/]*$"; "")), $n, $l.count, $l.covered] | @tsv' >"$O/files.tsv"
	awk -F'\t' '{ lines[$1] += $3; run[$1] += $4 }
		{ part = $1 == "user/console" ? "console" : "rest"; lines[part] += $3; run[part] += $4 }
		END {
			for (room in lines)
				if (room != "rest" && room != "console")
					printf "%-16s %6d lines, %5.1f %%\n", room, lines[room], 100 * run[room] / lines[room] | "sort"
			close("sort")
			printf "without console  %6d lines, %5.1f %%\n", lines["rest"], 100 * run["rest"] / lines["rest"]
		}' "$O/files.tsv" | tee "$O/lines.txt"
	awk -F'\t' '{ printf "%5.1f %%  %5d missing  %s\n", 100 * $4 / ($3 ? $3 : 1), $3 - $4, $2 }' "$O/files.tsv" |
		sort -k3,3nr >"$O/missing.txt"
}

if [ -z "${REPORT:-}" ]; then
	begin
	run_tests "$@"
	merge
fi
[ -n "${PIECE:-}" ] || by_room
