#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# The rules of HACKING.md that a program can check: layers, sizes, names, layout, spelling. One line per finding.
set -euo pipefail
cd "$(dirname "$0")/.."

status=0

# report FINDINGS: prints them and remembers that there were some
report() {
	[ -z "$1" ] && return
	printf '%s\n' "$1"
	status=1
}

# All files of the project, also those not committed yet.
list() {
	if git rev-parse --is-inside-work-tree >/dev/null 2>&1; then
		git ls-files -co --exclude-standard -- "$@" | while read -r f; do [ ! -f "$f" ] || echo "$f"; done
	else
		local names=()
		for pattern in "$@"; do names+=(-o -name "$pattern"); done
		find . -path ./build -prune -o -type f \( "${names[@]:1}" \) -print | sed 's|^\./||'
	fi
}

mapfile -t sources < <(list '*.c' '*.h' '*.cc' | grep -v '^vmlinux/')
mapfile -t others < <(list '*.S' '*.sh' '*.bash' '*.bats' '*.mk' Makefile '.ci/run')

# Who may include whom (HACKING.md, layers).
check_layers() {
	awk '
	function bad(why) { printf "%s:%d: includes %s: %s\n", FILENAME, FNR, file, why }
	/^[ \t]*#[ \t]*include[ \t]*"/ {
		split($0, part, "\"")
		file = part[2]
		if (FILENAME ~ /^user\/lib\// && file !~ /^user\/lib\//)
			bad("user/lib may include only user/lib")
		else if (FILENAME ~ /^bpf\// && file !~ /^(bpf|vmlinux)\// && file != "user/lib/types.h")
			bad("bpf may include only bpf and vmlinux")
		else if (FILENAME ~ /^arch\// && file !~ /^(arch|user\/lib)\//)
			bad("arch may include only arch and user/lib")
		else if (FILENAME ~ /^fallback\// && file !~ /^(fallback|arch|user\/lib)\// && file != "bpf/event.h" && file != "bpf/cfi_rule.h")
			bad("fallback may include only fallback, arch, user/lib, bpf/event.h and bpf/cfi_rule.h")
		else if (FILENAME ~ /^user\// && file ~ /^tests\//)
			bad("user may not include tests")
		else if (file !~ /\//)
			bad("paths begin at the root of the project")
	}' "${sources[@]}"
}

# The first line; the second one after #!.
check_licence() {
	awk '
	FNR == 1 && /^#!/ { next }
	FNR <= 2 && !(FILENAME in seen) {
		seen[FILENAME] = 1
		if (!/SPDX-License-Identifier: GPL-2.0-or-later/)
			printf "%s:%d: does not begin with the SPDX line\n", FILENAME, FNR
	}' "${sources[@]}" "${others[@]}"
}

# Functions 80 lines, files 800, headers 150 (those with BPF code count as files), nesting 3.
check_sizes() {
	awk '
	function end_file() {
		most = file ~ /\.h$/ && file !~ /\.bpf\.h$/ ? 150 : 800
		if (lines > most)
			printf "%s: %d lines, more than %d\n", file, lines, most
	}
	FNR == 1 { if (file) end_file(); file = FILENAME; start = 0 }
	{ lines = FNR }
	/^\{/ { start = FNR; name = last }
	/^\}/ && start {
		if (FNR - start - 1 > 80)
			printf "%s:%d: function of %d lines, more than 80: %s\n", FILENAME, start, FNR - start - 1, name
		start = 0
	}
	/^\t\t\t\t+(if|for|while|switch|do)[ (]/ && !/\\$/ { printf "%s:%d: nested deeper than 3\n", FILENAME, FNR }
	!/^[ \t]/ { last = $0 }
	END { if (file) end_file() }' "${sources[@]}"
}

# Names that belong to libbpf, the kernel or libc; typedefs of structs; line comments.
check_names() {
	awk '
	FNR == 1 { in_comment = 0 }
	{
		line = $0
		gsub(/\\./, "", line)
		gsub(/"[^"]*"/, "\"\"", line)
		if (in_comment) {
			if (!sub(/^.*\*\//, "", line)) next
			in_comment = 0
		}
		gsub(/\/\*[^*]*(\*[^\/*][^*]*)*\*\//, "", line)
		if (sub(/\/\*.*/, "", line)) in_comment = 1
	}
	line ~ /\/\// { printf "%s:%d: line comment\n", FILENAME, FNR }
	line ~ /typedef[ \t]+(struct|union|enum)/ { printf "%s:%d: typedef of a struct\n", FILENAME, FNR }
	line ~ /^[a-z_]/ && line !~ /;[ \t]*$/ && line ~ /\(/ {
		gsub(/__attribute__[ \t]*\(\(.*\)\)/, "", line)
		if (match(line, /[A-Za-z0-9_]+\(/)) {
			name = substr(line, RSTART, RLENGTH - 1)
			if (name ~ /^(bpf_|btf_|libbpf_|ring_buffer_|perf_buffer_|_[a-z])/)
				printf "%s:%d: name taken by others: %s\n", FILENAME, FNR, name
		}
	}' "${sources[@]}"
}

# The layout breaks code at 110; comments may be a little longer.
check_columns() {
	for f in "${sources[@]}"; do
		expand "$f" | awk -v f="$f" 'length > 120 { printf "%s:%d: %d columns, more than 120\n", f, NR, length }'
	done
}

# Other versions of clang-format lay out differently.
check_layout() {
	local format
	format=$(command -v clang-format-14 || command -v clang-format || true)
	if [ -z "$format" ] || ! "$format" --version | grep -q 'version 14\.'; then
		echo "style: skipped: layout: needs clang-format 14" >&2
		return
	fi
	printf '%s\n' "${sources[@]}" | grep '\.[ch]$' | xargs "$format" --dry-run 2>&1 |
		awk -F: '/: warning: code should be/ { if (!n[$1]++) first[$1] = $2 }
			END { for (f in n) printf "%s:%s: layout differs in %d places: clang-format -i\n", f, first[f], n[f] }'
}

check_spelling() {
	if ! command -v codespell >/dev/null; then
		echo "style: skipped: spelling: codespell is not installed" >&2
		return
	fi
	list '*' | grep -vE '^(vmlinux/|tests/fuzz/.*corpus)' | xargs codespell 2>&1 || true
}

report "$(check_layers)"
report "$(check_licence)"
report "$(check_sizes)"
report "$(check_names)"
report "$(check_columns)"
report "$(check_layout)"
report "$(check_spelling)"
[ "$status" -ne 0 ] || echo "style: ${#sources[@]} files, no findings"
exit "$status"
