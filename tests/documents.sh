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
	done <<-END
		README.md 1800
		HACKING.md 2000
	END
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
	words '\]\(([A-Za-z0-9_./-]+\.(md|svg))?(#[a-z0-9-]+)?\)' | while IFS=$'\t' read -r where link; do
		link=${link#](} link=${link%)} page=${where%:*}
		file=${link%%#*} heading=${link#"$file"}
		file=${file:+$(dirname "$page")/$file} file=${file:-$page}
		if [ ! -f "$file" ]; then
			echo "$where: leads to $link, which does not exist"
		elif [ -n "$heading" ] && ! grep '^#' "$file" | tr 'A-Z ' 'a-z-' | tr -d '?:,()`' | grep -qx -- "##*-${heading#\#}"; then
			echo "$where: leads to the heading $heading, which $file does not have"
		fi
	done
}

# Pages that no other page leads to, and rooms that the tour of the source leaves out.
check_complete() {
	local page room
	for page in doc/*.md; do
		grep -lF "${page##*/}" "${pages[@]}" | grep -qvxF "$page" || echo "$page: no other page leads to it"
	done
	sed -n "/^rooms='/,/^'/s/^\([a-z/]*\):.*/\1/p" tests/style.sh | while read -r room; do
		grep -qF "| \`$room/\` |" doc/tour.md || echo "doc/tour.md: has no row for the room $room/"
	done
}

# Functions, tables and types in `name()`, `name[]`, `struct name`. Those of the kernel that no source names are listed.
check_functions() {
	local known=' force_sig force_sig_info_to_task ' where name
	words '`((struct|enum) [a-z0-9_]+|[a-z0-9_]+(\(|\[\]))' | sed 's/`//; s/[](\[]*$//' | while IFS=$'\t' read -r where name; do
		case $known in *" $name "*) continue ;; esac
		grep -rqwF "$name" user call bpf arch fallback tests --include='*.[ch]' --include='*.bash' ||
			echo "$where: names $name, which no source has"
	done
}

# Commands and options of heaptap in README.md, and targets of make in all pages.
check_commands() {
	local where word
	grep -noE '`(sudo )?(build/)?heaptap [a-z]+' README.md | sed 's/:.* /\t/' | while IFS=$'\t' read -r where word; do
		grep -qF "\"$word\"," user/cli/options.c || echo "README.md:$where: heaptap has no command $word"
	done
	grep -noE -e '--[a-z][a-z-]+' README.md | tr ':' '\t' | while IFS=$'\t' read -r where word; do
		grep -qF "\"${word#--}\"" user/cli/options*.c || echo "README.md:$where: heaptap has no option $word"
	done
	words '`(sudo )?make [a-z][a-z0-9-]*[` ]' | sed 's/`.*make //; s/[` ]$//' | while IFS=$'\t' read -r where word; do
		grep -qE "^$word:" Makefile user/agent/agent.mk tests/targets/targets.mk tests/unit32.mk tests/fuzz/fuzz.mk tests/analysis.mk packaging/packaging.mk || echo "$where: there is no make $word"
	done
}

# Pages and pictures that a command makes.
check_made() {
	tests/faults.sh --undefined
	tests/faults.sh | cmp -s - doc/faults.md || echo "doc/faults.md: is not what the tests say: make faults-doc"
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
