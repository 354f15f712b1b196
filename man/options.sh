#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# options.sh HEAPTAP DIRECTORY: writes the pages of man/ into DIRECTORY, with the options as HEAPTAP's help has them. "make
# manual" writes them in place; tests/e2e/options.bats compares. Only the lines from a marker to the line .\" end are replaced:
#
#   .\" options COMMAND   the most used options of COMMAND with their texts, and the names of all others; without limits
#   .\" names COMMAND     the names of all options of COMMAND
#   .\" option NAME       one option with its text
set -euo pipefail
export LC_ALL=C
pages=$(cd "$(dirname "$0")" && pwd)

for command in $("$1" help | sed -nE 's/^  ([a-z]+) .*/\1/p'); do
	echo "@ $command"
	"$1" help --all "$command"
done | awk -v directory="$2" '
	function fail(why) { print "options.sh: " why >"/dev/stderr"; status = 1 }
	function roff(text) { gsub(/\\/, "\\e", text); gsub(/-/, "\\-", text); return text }
	# One option as a paragraph with a heading.
	function entry(name, is_short,   text) {
		text = help[name]
		if (is_short)
			sub(/ \((default|one of|[0-9])[^()]*\)$/, "", text)
		text = roff(text)
		print ".TP\n" head[name] "\n" (text ~ /^[.\x27]/ ? "\\&" : "") toupper(substr(text, 1, 1)) substr(text, 2) "." >out
		is_told[name] = 1
	}
	function names(command, from,   g, i, n, list) {
		for (g = from; g <= nr_groups; g++) {
			list = ""
			for (i = 1; i <= nr[command, g]; i++)
				list = list (list == "" ? "" : ", ") "\\fB" roff("--" row[command, g, i]) "\\fP"
			if (list != "")
				print ".TP\n" title[g] "\n" list >out
		}
	}
	function options(command,   g, i, last) {
		last = total[command] > 16 ? 1 : nr_groups
		for (g = 1; g <= last; g++)
			for (i = 1; i <= nr[command, g]; i++)
				entry(row[command, g, i], 1)
		if (last == nr_groups)
			return
		print ".PP\n.BR heaptap\\-options (7)\nexplains all options. Further ones:" >out
		names(command, 2)
	}
	FILENAME == "-" && /^@ / { command = $2; known[command] = 1; next }
	FILENAME == "-" && /^[A-Z][^:]*:$/ {
		sub(/:$/, "")
		if (!($0 in number)) { number[$0] = ++nr_groups; title[nr_groups] = $0 }
		group = number[$0]
		next
	}
	FILENAME == "-" && match($0, /^  (-[A-Za-z], |    )--[a-z-]+( [^ ]+)?/) {
		text = substr($0, RLENGTH + 1)
		split(substr($0, 1, RLENGTH), part, " ")
		at = part[1] ~ /,$/ ? 2 : 1
		name = substr(part[at], 3)
		row[command, group, ++nr[command, group]] = name
		total[command]++
		head[name] = (at == 2 ? "\\fB" roff(substr(part[1], 1, 2)) "\\fP, " : "") "\\fB" roff(part[at]) "\\fP" \
			(part[at + 1] == "" ? "" : " \\fI" roff(part[at + 1]) "\\fP")
		sub(/^ +/, "", text)
		help[name] = text
		next
	}
	FILENAME == "-" && /^        / { sub(/^ +/, ""); help[name] = help[name] (help[name] == "" ? "" : " ") $0; next }
	FILENAME == "-" { next }
	FNR == 1 { out = FILENAME; sub(/.*\//, directory "/", out); out = out ".new"; is_skipping = 0 }
	/^\.\\" end$/ { is_skipping = 0 }
	!is_skipping { print >out }
	/^\.\\" (options|names|option) / {
		is_skipping = 1
		if ($2 == "option" ? !($3 in help) : !($3 in known))
			fail(FILENAME ":" FNR ": there is no " $2 " " $3)
		else if ($2 == "option")
			entry($3)
		else if ($2 == "options")
			options($3)
		else
			names($3, 1)
		if ($2 == "option")
			is_explained[$3] = 1
	}
	END {
		for (name in help)
			if (!(name in is_explained))
				fail("heaptap-options.7 does not explain --" name)
		exit status
	}' - "$pages"/*.[0-9]
for new in "$2"/*.[0-9].new; do mv "$new" "${new%.new}"; done
