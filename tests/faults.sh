#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Makes doc/faults.md, on standard output, of tests/faults.tsv and of the fault ids that tests carry.
# faults.sh --undefined: instead one line for each id that a test cites and the table does not define.
#
# A test carries ids in parentheses: "(A4, B2)" in the name of an @test, or in the comment above a C test; in the
# comment at the head of a file they are those of the whole file.
set -euo pipefail
cd "$(dirname "$0")/.."

# Lines "ID<tab>FILE<tab>LINE<tab>NAME"; NAME is empty for a whole file.
cited() {
	find tests -type f ! -path tests/faults.sh \( -name '*.bats' -o -name '*.c' -o -name '*.cc' -o -name '*.sh' \) | LC_ALL=C sort | xargs awk '
	function give(name,    group, ids, i, nr) {
		while (match(pending, /\([A-HST][0-9]+(, [A-HST][0-9]+)*\)/)) {
			group = substr(pending, RSTART + 1, RLENGTH - 2)
			pending = substr(pending, RSTART + RLENGTH)
			nr = split(group, ids, ", ")
			for (i = 1; i <= nr; i++) printf "%s\t%s\t%d\t%s\n", ids[i], FILENAME, FNR, name
		}
		pending = ""
	}
	FNR == 1 { pending = ""; in_head = 1 }
	/^@test "/ {
		in_head = 0
		name = pending = substr($0, 8)
		sub(/".*/, "", name)
		sub(/ *\([A-HST][0-9]+(, [A-HST][0-9]+)*\)$/, "", name)
		give(name)
		next
	}
	/^(#|\/\*| \*)/ { pending = pending " " $0; next }
	in_head { in_head = 0; give(""); next }
	/^static void [a-z0-9_]+\(/ { name = $3; sub(/\(.*/, "", name); give(name) }
	{ pending = "" }'
}

if [ "${1-}" = --undefined ]; then
	cited | awk -F '\t' '
		NR == FNR { if (!/^#/) defined[$1] = 1; next }
		!($1 in defined) { printf "%s:%d: fault %s has no row in tests/faults.tsv\n", $2, $3, $1 }' tests/faults.tsv -
	exit
fi

cat <<'HEAD'
# Faults and their tests

Made by `make faults-doc` from `tests/faults.tsv` and the ids that tests carry.
Change those and not this page.

In every case:

1. Exit status, output and final memory of the target are those of a run without heaptap.
2. heaptap ends with a documented status, without a finding of a sanitizer, and within 5 s.
3. Afterwards the code of the target equals its file, nobody traces or stops it, and no link or map
   of heaptap is left.
4. Seen plus reported lost is the true count.

`make check-ptrace` runs the main tests again with breakpoints in place of BPF.
HEAD

cited | awk -F '\t' '
NR == FNR {
	line = $4 == "" ? "`" $2 "`: the whole file" : $2 ~ /\.bats$/ ? "`" $2 "`: " $4 : "`" $2 "`: `" $4 "`"
	if (!(($1, line) in seen)) tests[$1] = tests[$1] "- " line "\n"
	seen[$1, line] = 1
	next
}
/^#/ { printf "\n## %s\n", substr($0, 3); next }
{
	printf "\n### %s: %s\n\n", $1, $2
	print "Expected: " $3 "."
	if ($4 != "") print $4
	if ($1 in tests) printf "\n%s", tests[$1]
	else if ($4 == "") print "No test carries this id."
}' - tests/faults.tsv | awk '
# Lines of at most 100 columns; headings stay whole.
/^#/ || length <= 100 { print; next }
{
	lead = /^- / ? "  " : ""
	rest = $0
	while (length(rest) > 100) {
		at = 100
		while (substr(rest, at + 1, 1) != " " && at > 40) at--
		print substr(rest, 1, at)
		rest = lead substr(rest, at + 2)
	}
	print rest
}'
