#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# The rules of HACKING.md that a program can check: layers, sizes, names, layout, spelling, and tests/documents.sh for
# documents. One line per finding.
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
mapfile -t others < <(list '*.S' '*.inc' '*.sh' '*.bash' '*.bats' '*.mk' Makefile '.ci/run')

# Subjects of commits after this one are checked: the commit before the check came.
subjects_from=4925856

# Which rooms a room may include, one row per folder, from the bottom up; itself always. A folder without a row, and an
# include that its row does not name, are findings. Rows name only rooms of rows above them: so there is no circle.
# One header may be a room by itself, inside a folder that is a room.
rooms='
include:
vmlinux/x86_64/walk_cpu.h:
vmlinux/aarch64/walk_cpu.h:
user/lib:
bpf/stack_id.h: user/lib
bpf/event.h: user/lib bpf/stack_id.h
bpf/thread_stop.h: user/lib
call: user/lib bpf/event.h
bpf: user/lib call vmlinux
arch: user/lib vmlinux/x86_64/walk_cpu.h vmlinux/aarch64/walk_cpu.h
fallback: user/lib arch bpf call
inline: user/lib bpf call vmlinux/x86_64/walk_cpu.h vmlinux/aarch64/walk_cpu.h
user/target: user/lib bpf call
user/names: user/lib arch user/target
user/probe: user/lib arch call user/target
user/unwind: user/lib arch bpf fallback user/target user/names
user/inject: user/lib arch bpf call fallback inline
user/heap: user/lib bpf user/target
user/source: user/lib arch bpf call fallback inline user/target user/probe user/unwind user/inject
user/scan: user/lib arch user/target user/names user/unwind user/heap
user/core: user/lib arch user/scan
user/stream: user/lib bpf user/target user/heap user/source user/scan
user/report: user/lib arch user/target user/names user/heap user/source user/scan user/stream
user/census: user/lib arch user/target user/names user/heap user/scan user/report
user/session: user/lib bpf/thread_stop.h user/target user/names user/heap user/source user/scan user/stream user/report user/census user/core
user/remote: user/lib arch user/target user/heap user/source user/scan user/stream user/report user/session
user/metrics: user/lib user/target user/heap user/source user/scan user/report user/session user/remote
user/console: user/lib user/target user/heap user/source user/scan user/stream user/report user/session user/remote user/core
user/top: user/lib user/target user/heap user/source user/scan user/report user/session user/remote
user/system: user/lib user/target user/heap user/source user/scan user/report user/session user/metrics user/top
user/cli: user/lib user/target user/probe user/inject user/source user/scan user/stream user/report user/census user/session user/remote user/metrics user/console user/top user/system
user/agent: user/lib user/names user/scan user/source user/stream user/metrics user/cli
'

check_layers() {
	awk -v rooms="$rooms" '
	function bad(why) { printf "%s:%d: includes %s: %s\n", FILENAME, FNR, file, why }
	function allowed(room,   i, text) {
		for (i = 1; i <= n; i++)
			if (index(rows[i], room ":") == 1)
				text = substr(rows[i], length(room) + 2)
		return text ? text : " no other room"
	}
	function folder(path) { sub(/\/[^\/]*$/, "", path); return path }
	BEGIN {
		n = split(rooms, rows, "\n")
		for (i = 1; i <= n; i++) {
			if (rows[i] == "") continue
			nr = split(rows[i], words, /:? +|:/)
			room = words[1]
			for (j = 2; j <= nr; j++) {
				if (words[j] == "") continue
				if (!(words[j] in known) && words[j] != "vmlinux")
					printf "tests/style.sh: row of %s names %s, which has no row above it\n", room, words[j]
				may[room, words[j]] = 1
			}
			known[room] = 1
		}
	}
	FNR == 1 {
		room = (FILENAME in known) ? FILENAME : folder(FILENAME)
		is_room = FILENAME !~ /^(tests|vmlinux)\//
		if (is_room && !(room in known) && !told[room]++)
			printf "%s:1: room %s has no row in tests/style.sh: add one that says which rooms it may include\n",
				FILENAME, room
	}
	/^[ \t]*#[ \t]*include[ \t]*"/ {
		split($0, part, "\"")
		file = part[2]
		if (file !~ /\//)
			bad("paths begin at the root of the project")
		else if (is_room && (room in known) && folder(file) != room && !((room, folder(file)) in may) &&
			 !((room, file) in may))
			bad(room " may include only" allowed(room) ", not " folder(file) " (rooms in tests/style.sh)")
	}' "${sources[@]}"
}

# The longest chain of files of the project that include each other, the first and the last one counted.
most_included=9

check_depth() {
	awk -v most="$most_included" '
	function depth(file,   i, d, deepest) {
		if (!(file in depths)) {
			depths[file] = 0 # ends a circle
			for (i = 0; i < nr[file]; i++)
				if ((d = depth(includes[file, i])) > deepest) {
					deepest = d
					next_of[file] = includes[file, i]
				}
			depths[file] = deepest + 1
		}
		return depths[file]
	}
	FNR == 1 { files[FILENAME] }
	/^[ \t]*#[ \t]*include[ \t]*"/ {
		split($0, part, "\"")
		includes[FILENAME, nr[FILENAME]++] = part[2]
	}
	END {
		for (file in files)
			if (depth(file) > depths[deepest])
				deepest = file
		if (depths[deepest] <= most)
			exit
		printf "%s:1: chain of %d files that include each other, more than %d:", deepest, depths[deepest], most
		for (file = deepest; file; file = next_of[file])
			printf " %s", file
		print ""
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

# Functions 80 lines, files 800, headers 150 (those of code that BPF programs compile count as files), nesting 3.
check_sizes() {
	awk '
	function end_file() {
		most = file ~ /\.h$/ && file !~ /\.bpf\.h$|^(call\/life|bpf\/walk(_step)?)\.h$/ ? 150 : 800
		if (lines > most)
			printf "%s:%d: file of %d lines, more than %d: split it\n", file, most + 1, lines, most
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

# One tag means one thing. The agent has stand-ins for modules that it lacks, and CPUs have files of the same kind each.
check_tags() {
	printf '%s\n' "${sources[@]}" | grep -vE '^(tests|user/agent)/' | xargs awk '
	/^(static |const )*(struct|union|enum) [a-z_0-9]+ \{/ {
		sub(/^(static |const )*/, "")
		tag = $1 " " $2
		kind = FILENAME
		sub(/_(x86_64|aarch64)\./, "_CPU.", kind)
		if (tag in at && (kind == FILENAME || kind != kind_of[tag]))
			printf "%s:%d: %s is defined in %s too: one tag, one meaning\n", FILENAME, FNR, tag, at[tag]
		else if (!(tag in at)) {
			at[tag] = FILENAME
			kind_of[tag] = kind
		}
	}'
}

# A static function is found by its name: it has more than one word, and no more than two files have the same one. Two files
# that stand for each other, as arch/ has them, share the names of the room call/.
check_static_names() {
	printf '%s\n' "${sources[@]}" | grep -E '^(user|fallback|inline)/.*\.[ch]$' | grep -v '^user/agent/' | xargs awk '
	/^static / && !/;[ \t]*$/ {
		gsub(/__attribute__[ \t]*\(\(.*\)\)|__printf\([0-9, ]*\)/, "")
		if (!match($0, /[a-z_0-9]+\(/) || substr($0, 1, RSTART) ~ /=/)
			next
		name = substr($0, RSTART, RLENGTH - 1)
		if (name !~ /_/)
			printf "%s:%d: static function of one word: %s\n", FILENAME, FNR, name
		if (++nr[name] > 2)
			printf "%s:%d: %s is in more than two files\n", FILENAME, FNR, name
	}'
}

# Files that the README.md of their room does not name in its table. `names*` there stands for all that begin so.
check_readmes() {
	printf '%s\n' "${sources[@]}" | grep -E '^(user/[a-z]+|fallback|arch|call|bpf)/[^/]*$' | awk '
	# A pattern of the table as a regular expression: with or without the ending of the file.
	function regex(word) {
		gsub(/\./, "\\.", word)
		gsub(/\*|<[a-z]+>/, ".*", word)
		return "^" word "(\\.[a-z.]+)?$"
	}
	function read_table(room,   file, line, words, n, i) {
		file = room "/README.md"
		while ((getline line < file) > 0) {
			if (line !~ /^\|/)
				continue
			n = split(line, words, "`")
			for (i = 2; i <= n; i += 2)
				tables[room, nr[room]++] = regex(words[i])
		}
		close(file)
	}
	{
		room = $0
		sub(/\/[^\/]*$/, "", room)
		file = substr($0, length(room) + 2)
		base = file
		sub(/\..*/, "", base)
		if (!(room in nr)) {
			nr[room] = 0
			read_table(room)
		}
		for (i = 0; i < nr[room]; i++)
			if (file ~ tables[room, i] || base ~ tables[room, i] || tables[room, i] ~ "^\\^" base "\\\\\\.[a-z]")
				next
		if (nr[room] && !told[room, base]++)
			printf "%s/README.md: the table has no row for %s\n", room, base
	}'
}

# Variables that outlive a call and can change. Each one has a comment that says why: a signal handler or a callback
# without a context needs the variable, or it belongs to the process as a whole.
variables='
arch/insn_x86_decode.c:decoders
arch/insn_x86_decode.c:decoders_room
fallback/guardian_main.c:has_mail
fallback/guardian_main.c:is_out_of_time
user/agent/small_getopt.c:next_letter
user/agent/small_getopt.c:optarg
user/agent/small_getopt.c:optind
user/agent/small_users.c:found
user/agent/small_users.c:line
user/cli/cmd_demo.c:demo_kept
user/console/console_edit.c:edit
user/lib/crc32c.c:tables
user/lib/log.c:shown
user/lib/log.c:status_columns
user/lib/log.c:taker
user/lib/log.c:unread
user/lib/progress.c:work
user/names/symbol_server.c:current
user/session/busy_signals.c:stops_by
user/session/control.c:wish
user/source/caps_trial.c:lab_pids
user/source/launch_child.c:inherited
user/source/limits.c:is_out_of_cpu_time
user/source/limits.c:limits
'

check_variables() {
	printf '%s\n' "${sources[@]}" | grep -vE '^(tests|bpf)/' | xargs awk -v variables="$variables" '
	function found(line, name) {
		if (index(variables, "\n" FILENAME ":" name "\n") == 0)
			printf "%s:%d: %s can change and is static: pass it instead (variables in tests/style.sh)\n",
				FILENAME, line, name
	}
	function is_const(text) {
		return text ~ /\*/ ? text ~ /\* *const [^*]*$/ : text ~ /(^| )const /
	}
	start && /^\t*\} [a-z]/ { name = $2; sub(/[^a-z0-9_].*/, "", name); found(start, name); start = 0 }
	/^(\t*static |[a-z])/ {
		text = $0
		gsub(/\/\*.*/, "", text)
		gsub(/\[[^]]*\]/, "", text)
		sub(/ = .*/, ";", text)
		if (text ~ /^\t*static struct \{/) { start = FNR; next }
		if (text ~ /^(extern|typedef|return|goto|struct [a-z_0-9]+;|enum [a-z_0-9]+;|union [a-z_0-9]+;)/) next
		if (text ~ /^(struct|enum|union) [^=]*\{/) next
		if (text !~ /;[ \t]*$/ || (text ~ /\(/ && text !~ /\(\*/)) next
		if (text ~ /^[a-z]/ && text !~ /^static / && text ~ /[(]|^[a-z_0-9]+;/) next
		if (text ~ /\(\*/) sub(/\)\(.*/, ";", text)
		if (is_const(text)) next
		sub(/;[ \t]*$/, "", text)
		sub(/\).*/, "", text)
		sub(/.*[ *]/, "", text)
		found(FNR, text)
	}'
}

# The layout breaks code at 110; comments may be a little longer.
check_columns() {
	awk '
	{
		n = split($0, parts, "\t")
		columns = length(parts[1])
		for (i = 2; i <= n; i++)
			columns = int(columns / 8 + 1) * 8 + length(parts[i])
	}
	columns > 120 { printf "%s:%d: %d columns, more than 120\n", FILENAME, FNR, columns }' "${sources[@]}"
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

check_comments() {
	if ! command -v python3 >/dev/null; then
		echo "style: skipped: comments: python3 is not installed" >&2
		return
	fi
	tests/comments.py "${sources[@]}" "${others[@]}"
}

# bats ends a test at a command that fails, but not at "! command", whatever that returns.
check_negations() {
	printf '%s\n' "${others[@]}" | grep '\.ba\(ts\|sh\)$' | xargs -r awk '
	/^[ \t]+! / && !/ \|\| / && !/\\$/ { printf "%s:%d: does not fail in the middle of a test: use fails\n", FILENAME, FNR }'
}

# gcc 12 leaves an atomic change of less than 32 bits on riscv64 to a library that the agent does without.
check_atomics() {
	printf '%s\n' "${sources[@]}" | grep -v '^tests/' | xargs awk '
	/__atomic_exchange_n\(.*, (true|false),/ { printf "%s:%d: atomic change of a bool: take a u32\n", FILENAME, FNR }'
}

# "room: what", at most 60 columns. A copy without history, or with a part of it, has nothing to check.
check_subjects() {
	git merge-base --is-ancestor "$subjects_from" HEAD 2>/dev/null || return 0
	git log --no-merges --format='%h %s' "$subjects_from"..HEAD | awk '
	{ commit = $1; sub(/^[^ ]+ /, "") }
	length > 60 { printf "commit %s: subject of %d columns, more than 60: %s\n", commit, length, $0 }
	!/^[a-z0-9_\/.]+(, [a-z0-9_\/.]+)*: [^ ]/ { printf "commit %s: subject does not begin with \"room: \": %s\n", commit, $0 }'
}

report "$(check_layers)"
report "$(check_depth)"
report "$(check_licence)"
report "$(check_sizes)"
report "$(check_names)"
report "$(check_tags)"
report "$(check_static_names)"
report "$(check_readmes)"
report "$(check_variables)"
report "$(check_columns)"
report "$(check_comments)"
report "$(check_negations)"
report "$(check_atomics)"
report "$(check_subjects)"
report "$(check_layout)"
report "$(check_spelling)"
report "$(tests/documents.sh)"
[ "$status" -ne 0 ] || echo "style: ${#sources[@]} files, no findings"
exit "$status"
