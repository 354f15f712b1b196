#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Prints the table of end-to-end tests (make gate, which has the lists of jobs): how many of each file run in make check,
# by each source, and how many only in make check-all.
#
# GATE="JOB..." and ALL="JOB..." are jobs of tests/run.py.
set -euo pipefail
cd "$(dirname "$0")/.."

echo '| file | by BPF | by ptrace | by inline |'
echo '|---|---|---|---|'
# shellcheck disable=SC2086 # jobs are words
{
	tests/run.py --count --tags '!full' $GATE | sed 's/^/gate\t/'
	tests/run.py --count $ALL | sed 's/^/all\t/'
} | awk -F'\t' '
	{ split($2, job, ":"); n[$1, job[2], job[1]] = $3; if (job[1] != "plain") files[job[2]] = 1 }
	function cell(file, kind,   a) {
		a = n["all", file, kind]
		return a == "" ? "" : a == n["gate", file, kind] + 0 ? a : n["gate", file, kind] + 0 " of " a
	}
	END { for (f in files) printf "| `%s` | %s | %s | %s |\n", f, cell(f, "e2e"), cell(f, "ptrace"), cell(f, "inline") }' |
	sort
