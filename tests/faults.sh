#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Prints the faults of tests/faults.tsv with the tests that carry their ids, as tables (make faults): test_NAME is a unit
# test, fuzz_NAME a fuzzer, each other NAME is tests/e2e/NAME.bats (board: tests/arch/board.bats).
# faults.sh --findings: instead one line for each id that a test cites and the table does not define, and for each row
# of the table without a test and without a note that says how else it is tried.
#
# A test carries ids in parentheses: "(A4, B2)" in the name of an @test, or in the comment above a C test; in the
# comment at the head of a file they are those of the whole file.
set -euo pipefail
cd "$(dirname "$0")/.."

# Lines "ID<tab>FILE<tab>LINE".
cited() {
	find tests -type f ! -path tests/faults.sh \( -name '*.bats' -o -name '*.c' -o -name '*.cc' -o -name '*.sh' \) | LC_ALL=C sort | xargs awk '
	function give(    group, ids, i, nr) {
		while (match(pending, /\([A-HST][0-9]+(, [A-HST][0-9]+)*\)/)) {
			group = substr(pending, RSTART + 1, RLENGTH - 2)
			pending = substr(pending, RSTART + RLENGTH)
			nr = split(group, ids, ", ")
			for (i = 1; i <= nr; i++) printf "%s\t%s\t%d\n", ids[i], FILENAME, FNR
		}
		pending = ""
	}
	FNR == 1 { pending = ""; in_head = 1 }
	/^@test "/ {
		in_head = 0
		pending = substr($0, 8)
		give()
		next
	}
	/^(#|\/\*| \*)/ { pending = pending " " $0; next }
	in_head { in_head = 0; give(); next }
	/^static void [a-z0-9_]+\(/ { give() }
	{ pending = "" }'
}

if [ "${1-}" = --findings ]; then
	cited | awk -F '\t' '
		NR == FNR { if (!/^#/) { defined[$1] = 1; has_note[$1] = $4 != "" } next }
		{ is_tested[$1] = 1 }
		!($1 in defined) { printf "%s:%d: fault %s has no row in tests/faults.tsv\n", $2, $3, $1 }
		END {
			for (id in defined)
				if (!is_tested[id] && !has_note[id]) print "tests/faults.tsv: no test carries the fault " id
		}' tests/faults.tsv -
	exit
fi

cited | awk -F '\t' '
NR == FNR {
	name = $2
	sub(/.*\//, "", name)
	sub(/\.[a-z]*$/, "", name)
	if (!(($1, name) in seen)) tests[$1] = tests[$1] (tests[$1] ? ", " : "") name
	seen[$1, name] = 1
	next
}
/^#/ { printf "\n## %s\n\n|id|fault|expected|tests|\n|---|---|---|---|\n", substr($0, 3); next }
{ printf "|%s|%s|%s|%s|\n", $1, $2, $3 ($4 == "" ? "" : ". " $4), tests[$1] }' - tests/faults.tsv
