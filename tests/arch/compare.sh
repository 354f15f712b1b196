#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# compare.sh LOG TARGETS CROSS WORK: what a guest of tests/arch/run.sh said, against what its targets said of themselves.
# TAP lines without numbers. WORK is the beginning of names of temporary files.
set -uo pipefail

log=$1 targets=$2 cross=$3 work=$4

# section COMMAND-LINE: what it printed; its exit status is in the line behind
section() {
	awk -v begin="GUEST-BEGIN $1" '
		$0 == begin { on = 1; next }
		/^GUEST-STATUS/ && on { exit }
		on' "$log"
}

status_of() { awk -v begin="GUEST-BEGIN $1" '$0 == begin { on = 1 } /^GUEST-STATUS/ && on { print $2; exit }' "$log"; }

# name_places REPORT BINARY: a JSON object of the functions at the program's own places, by offset
name_places() {
	local tools=$cross
	case $2 in *-32) tools=arm-linux-gnueabihf- ;; esac
	jq -r --arg p "/${2##*/}" '[.processes[0].stacks[].frames[] | select(.module == $p) | .offset] | unique[]' "$1" |
		while read -r offset; do
			# The call stands before the address that it returns to.
			printf '%s\t%s\n' "$offset" \
				"$("${tools}addr2line" -f -e "$2" "$(printf '0x%x' $((offset - 1)))" | head -n1)"
		done | jq -R -s 'split("\n") | map(split("\t") | select(length == 2) | {key: .[0], value: .[1]}) | from_entries'
}

# differences REPORT OUTPUT NAMES PROGRAM
differences() {
	jq -n -r --slurpfile report "$1" --rawfile out "$2" --slurpfile names "$3" --arg program "/$4" '
		def differ($what; $have; $want):
			select($have != ($want | tonumber)) | "\($what): report says \($have), the program \($want)";
		def blocks: if type == "object" then .blocks else . end;
		$report[0].processes[0] as $p
		| ($program | test("static")) as $is_static
		| def sum($f; field): $p.stacks
			| map(select(any(.frames[]; .module == $program and $names[0][.offset] == $f)) | field) | add // 0;
		([$out | split("\n")[] | split(" ") | select(.[0] == "expect")]
		 | if length == 0 then "the program told nothing" else .[] end
		 | if type == "string" then . else . as [$expect, $kind, $a, $b, $c]
		 | if $kind == "live" then
			differ("live blocks of \($c)"; sum($c; .live_blocks); $a),
			differ("live bytes of \($c)"; sum($c; .live_bytes); $b)
		   elif $kind == "allocs" then differ("allocations of \($c)"; sum($c; .allocs); $a)
		   elif $kind == "calls" and ($is_static | not) then differ("calls of \($a)"; $p.functions[$a] // 0; $b)
		   elif $kind == "marks" then
			[$report[0].marks[].name] | join(",") | select(. != $a) | "marks: report says \(.), the program \($a)"
		   elif $kind == "complete" then
			$p.stacks[] | select(.complete | not) | select(any(.frames[]; .module == $program and $names[0][.offset] == $a))
			| "a stack of \($a) is not complete: \(.truncated)"
		   elif $kind == "failed" then differ("failed allocations"; $p.totals.failed_allocs; $a)
		   elif $kind == "unknown" then differ("unknown frees"; $p.totals.unknown_frees; $a)
		   else empty end end),
		($p.lost | to_entries[] | select(.value != 0) | "lost \(.key): \(.value)"),
		(if $program | startswith("/leak") then
			# Old pointers that lie about may keep one or two.
			([$p.stacks[].definite | blocks] | add | select(. < 30 or . > 32) | "definite leaks: \(.), not 30 to 32"),
			([$p.stacks[].indirect | blocks] | add | select(. < 18 or . > 20) | "indirect leaks: \(.), not 18 to 20")
		 else empty end)'
}

check_target() {
	local name=$1 line report=$work-$1.json
	line=$(sed -n "s|^GUEST-BEGIN \(/agent .* /$name .*\)|\1|p" "$log")
	section "cat /tmp/$name.json" | jq -L tests/lib 'include "report"; expanded' >"$report"
	if [ ! -s "$report" ]; then
		echo "not ok $name: no report, status $(status_of "$line")"
		section "$line" | tail -n 5 | sed 's/^/# /'
		return
	fi
	section "$line" >"$work.out"
	name_places "$report" "$targets/$name" >"$work.names"
	differences "$report" "$work.out" "$work.names" "$name" >"$work.differences" 2>&1
	if [ -s "$work.differences" ]; then
		echo "not ok $name"
		sed 's/^/#   /' "$work.differences"
		grep -a '^heaptap' "$work.out" | sed 's/^/#   /'
	else
		echo "ok $name: $(jq -r '.processes[0] | "\(.totals.allocs) allocations, stacks of \([.stacks[]
			| select(.complete) | .allocs] | add // 0) complete"' "$report")"
	fi
}

check_emulation() {
	local word=
	[ "$(status_of "$1")" = 0 ] || word="not "
	echo "${word}ok $1: $(section "$1" | grep -a '^# ' | tail -n1 | cut -c3-)"
	[ -z "$word" ] || section "$1" | tail -n 20
}

echo "# $(sed -n 's/^GUEST-//p' "$log" | head -n1)"
grep -a '^GUEST-BEGIN /native' "$log" | cut -d' ' -f2- | while read -r line; do
	check_emulation "$line"
done
for name in $(cd "$targets" && ls); do
	check_target "$name"
done
