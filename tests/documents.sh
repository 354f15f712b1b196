#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# The rules for documents that a program can check: sizes, and that all they name exists. One line per finding;
# tests/style.sh runs it.
set -euo pipefail
cd "$(dirname "$0")/.."

mapfile -t pages < <(find . -name '*.md' -not -path './build*' -not -path './.git/*' | sed 's|^\./||' | LC_ALL=C sort)

# Lines of 100 columns; a line of a table, and text between ``` (what a program printed), may be longer.
check_columns() {
	awk '
	FNR == 1 { in_block = 0 }
	/^```/ { in_block = !in_block }
	length > 100 && !in_block && !/^\|/ { printf "%s:%d: %d columns, more than 100\n", FILENAME, FNR, length }' "${pages[@]}"
}

check_words() {
	local page most words
	while read -r page most; do
		words=$(wc -w <"$page")
		[ "$words" -le "$most" ] || echo "$page: $words words, more than $most: move what few need to doc/"
	done < <(printf '%s\n' 'README.md 1800' 'HACKING.md 2000'; printf '%s 2500\n' doc/*.md)
	words=$(cat doc/*.md | wc -w)
	[ "$words" -le 25000 ] || echo "doc: $words words, more than 25000: shorten a page"
}

# Each WORD of a page that matches REGEX: "PAGE:LINE<tab>WORD".
words() { grep -noHE "$1" "${pages[@]}" | sed 's/^\([^:]*:[0-9]*\):/\1\t/'; }

# Paths that begin at the root. Names in capitals are placeholders.
check_paths() {
	words '(^|[^A-Za-z0-9_/.-])(user|call|bpf|arch|fallback|vmlinux|tests|doc|man|\.ci)/[A-Za-z0-9_./*-]+' |
		sed 's/\t[^A-Za-z0-9_/.-]/\t/; s/[.]*$//' | sort -u |
		while IFS=$'\t' read -r where path; do
			case $path in
			*/README.md | LICENSE) ;;
			*[A-Z][A-Z]* | tests/oracle/*) continue ;;
			esac
			compgen -G "$path" >/dev/null || echo "$where: names $path, which does not exist"
		done
}

# Links between pages, with the heading that they lead to.
check_links() {
	local where link page file heading
	local -A slugs=()
	while IFS= read -r link; do slugs[$link]=1; done < <(grep -H '^#' "${pages[@]}" |
		awk '{ page = file = $0; sub(/:.*/, "", page); sub(/^[^:]*:#+ /, "", file); print page "\t" file }' |
		awk -F'\t' '{ slug = tolower($2); gsub(/ /, "-", slug); gsub(/[?:,()`]/, "", slug); print $1 "#" slug }')
	words '\]\(([A-Za-z0-9_./-]+\.(md|svg))?(#[a-z0-9-]+)?\)' | while IFS=$'\t' read -r where link; do
		link=${link#](} link=${link%)} page=${where%:*}
		file=${link%%#*} heading=${link#"$file"}
		[[ -z $file || $page != */* ]] || file=${page%/*}/$file
		file=${file:-$page}
		while [[ $file =~ ^(.*/)?[^/.]+/\.\./(.*)$ ]]; do file=${BASH_REMATCH[1]}${BASH_REMATCH[2]}; done
		if [ ! -f "$file" ]; then
			echo "$where: leads to $link, which does not exist"
		elif [[ -n $heading && -z ${slugs[$file$heading]:-} ]]; then
			echo "$where: leads to the heading $heading, which $file does not have"
		fi
	done
}

# Pages that no other page leads to, and rooms that the tour of the source leaves out.
check_complete() {
	awk '
	FNR == 1 && FILENAME ~ /^doc\/[^\/]*$/ { names[FILENAME] = substr(FILENAME, 5) }
	{ while (match($0, /[A-Za-z0-9_-]+\.md/)) { led[substr($0, RSTART, RLENGTH), FILENAME] = 1; $0 = substr($0, RSTART + RLENGTH) } }
	END {
		for (key in led) {
			split(key, part, SUBSEP)
			if ("doc/" part[1] != part[2])
				is_led[part[1]] = 1
		}
		for (page in names)
			if (!(names[page] in is_led))
				print page ": no other page leads to it"
	}' "${pages[@]}"
	sed -n "/^rooms='/,/^'/s/^\([a-z/]*\):.*/\1/p" tests/style.sh | missing '| `' '/` |' doc/tour.md |
		sed 's|.*|doc/tour.md: has no row for the room &/|'
}

# Files that make processes and threads have a row in doc/processes.md, and its rows are of such files.
check_processes() {
	local made named
	made=$(find user fallback arch call -name '*.c' ! -path user/lib/thread.c ! -path user/lib/helper_process.c -exec awk '
	/^ \*/ { next }
	{ sub(/\/\*.*\*\//, "") }
	/(^|[^a-z_>.])(fork|helper_process_fork|clone|posix_spawnp?|pthread_create|thread_start(_sized)?)\(/ && !told[FILENAME]++ { print FILENAME }' {} + |
		LC_ALL=C sort)
	named=$(grep -E '^\|' doc/processes.md | grep -oE '`(user|fallback)/[a-z_/]+\.c`' | tr -d '`' | LC_ALL=C sort -u)
	comm -23 <(echo "$made") <(echo "$named") | sed 's|.*|doc/processes.md: has no row for &, which starts a process or a thread|'
	comm -13 <(echo "$made") <(echo "$named") | sed 's|.*|doc/processes.md: &: starts no process and no thread|'
}

# missing BEFORE AFTER FILE...: those lines of standard input that, with BEFORE and AFTER around them, are in no FILE
missing() {
	awk -v before="$1" -v after="$2" '
	FILENAME == "-" { wanted[++n] = $0; next }
	{ for (i = 1; i <= n; i++) if (!(i in found) && index($0, before wanted[i] after)) found[i] = 1 }
	END { for (i = 1; i <= n; i++) if (!(i in found)) print wanted[i] }' - "${@:3}"
}

# unknown FILE: those of the words of standard input, "PAGE:LINE<tab>WORD", that are no line of FILE
unknown() {
	awk -F'\t' 'FILENAME != "-" { known[$0] = 1; next } !($2 in known)' "$1" -
}

# Functions, tables and types in `name()`, `name[]`, `struct name`. Those of the kernel that no source names are listed.
check_functions() {
	local named
	named=$(words '`((struct|enum) [a-z0-9_]+|[a-z0-9_]+(\(|\[\]))' | sed 's/`//; s/[](\[]*$//')
	unknown <({
		printf '%s\n' force_sig force_sig_info_to_task
		grep -rhowF -f <(cut -f 2 <<<"$named" | sort -u) user call bpf arch fallback tests --include='*.[ch]' --include='*.bash' |
			awk '!told[$0]++ { print } / / && !told[$2]++ { print $2 }'
	}) <<<"$named" | awk -F'\t' '{ print $1 ": names " $2 ", which no source has" }'
}

# Commands and options of heaptap in README.md, and targets of make in all pages. A workflow runs the README's commands.
check_commands() {
	grep -oE '^sudo make [a-z -]*[a-z]' README.md | sed 's/^sudo //' | missing '' '' .github/workflows/check.yml |
		sed 's/^/.github\/workflows\/check.yml: does not run /'
	grep -noE '`(sudo )?(build/)?heaptap [a-z]+' README.md | sed 's/:.* /\t/' |
		unknown <(tr '\n' ' ' <user/cli/commands.c | grep -oE '(\{ |COMMAND_OF_(HOST|BOOKS)\()[[:space:]]*"[a-z]+",' | cut -d '"' -f 2) |
		awk -F'\t' '{ print "README.md:" $1 ": heaptap has no command " $2 }'
	grep -noE -e '--[a-z][a-z-]+' README.md | tr ':' '\t' |
		unknown <(grep -ohE '"[a-z][a-z-]+"' user/cli/option*.* | sed 's/"//g; s/^/--/') |
		awk -F'\t' '{ print "README.md:" $1 ": heaptap has no option " $2 }'
	words '`(sudo )?make [a-z][a-z0-9-]*[` ]' | sed 's/`.*make //; s/[` ]$//' |
		unknown <(grep -ohE '^[a-z][a-z0-9-]*:' Makefile user/agent/agent.mk tests/targets/targets.mk tests/unit32.mk \
			tests/fuzz/fuzz.mk tests/analysis.mk packaging/packaging.mk | tr -d :) |
		awk -F'\t' '{ print $1 ": there is no make " $2 }'
}

# The table of faults, and a picture that a command makes.
check_made() {
	tests/faults.sh --findings
	doc/flow.sh | cmp -s - doc/flow.svg || echo "doc/flow.svg: is not what doc/flow.txt says: make flow-picture"
}

check_columns
check_words
check_paths
check_links
check_complete
check_functions
check_commands
check_made
check_processes
