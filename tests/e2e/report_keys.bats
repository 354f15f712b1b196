#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# The manual has each key of real reports and of all other JSON, and no other.

load ../lib/common

setup() { cd "$BATS_TEST_TMPDIR" || return; }

# documented [SECTION [PAGE]]: the keys in this section of the manual, one a line, as processes[].totals.allocs
documented() {
	awk -v wanted="${1:-KEYS}\$" '/^\.SH / { is_in = $0 ~ wanted; nr = 0 }
		is_in && /^\.SS / {
			gsub(/^\.SS "|"$/, "")
			nr = split($0, prefix, ", ")
			for (i = 1; i <= nr; i++)
				prefix[i] = $0 ~ /^The / ? "" : prefix[i] "."
		}
		is_in && /^\.BR? / {
			for (i = 1; i <= nr; i++)
				print prefix[i] $2 (/ \(sum\)"$/ ? "\n" prefix[i] $2 ".blocks\n" prefix[i] $2 ".bytes" : "")
		}' "$ROOT/man/${2:-heaptap-report.5}" | LC_ALL=C sort -u
}

# keys FILE...: the keys of these reports; names of functions are no keys
keys() {
	# jq takes a minute for what python reads in a second.
	python3 -c '
import json, sys
found = set()
def look(item, path):
    if isinstance(item, dict):
        for key, value in item.items():
            found.add(path + "." + key)
            look(value, path + "." + key)
    elif isinstance(item, list):
        for value in item:
            look(value, path + "[]")
for path in sys.argv[1:]:
    look(json.load(open(path)), "")
print("\n".join(found))' "$@" |
		sed -E 's/^\.//; s/^(processes\[\]\.functions)\..*/\1/; s/scan\.why/stacks[].why/' | grep -v '\[\]$' | LC_ALL=C sort -u
}

@test "report: each key of real reports is in the manual, and each of the main ones in a report" {
	not_by_inline "what a probe costs is in reports by BPF"
	"$HEAPTAP" run -q --libraries -o leak.json -w leak.heaptap -- "$T/leak" >out 2>&1
	"$HEAPTAP" run -q --check --min-size 1 -o misuse.json -- "$T/misuse" >out 2>&1 || true
	"$HEAPTAP" run -q -o sized.json -- "$T/sized" >out 2>&1
	"$HEAPTAP" run -q -o noticed.json -- "$T/noticed" >out 2>&1
	"$HEAPTAP" run -q -i 100ms --scan -o kinds-%n.json -- "$T/leak_kinds" >out 2>&1 || true
	start "$T/turns" 1000000000
	"$HEAPTAP" attach -q --no-scan --stop-after 200000 -o busy.json "$PID" >out 2>&1
	end_started
	"$HEAPTAP" run -q -w marked.heaptap -- "$T/marked" >out 2>&1
	"$HEAPTAP" report -q --between 0s,end -o between.json marked.heaptap
	"$HEAPTAP" run -q --max-memory 24M -o folded.json -- "$T/new_stacks" 12000 >out 2>&1
	"$HEAPTAP" run -q -o headed.json -- "$T/headed" one >out 2>&1
	"$HEAPTAP" run -q -o marks.json -- "$T/headed" marked >out 2>&1
	"$HEAPTAP" run -q -b inline --sample 4K -o sampled.json -- "$T/leak" >out 2>&1
	echo 'leak:*' >all
	"$HEAPTAP" run -q -d 1 --suppressions all -o cut.json -- "$T/leak" >out 2>&1
	documented >in_manual
	[ "$(wc -l <in_manual)" -gt 150 ]
	keys ./*.json >in_reports
	run comm -13 in_manual in_reports
	[ -z "$output" ] || { echo "not in the manual: $output"; return 1; }
	# Some keys depend on lost frees, growth, signals, roots, later reports, windows of system, missing memory (short) or mimalloc, which a report may lack.
	run bash -c 'comm -23 in_manual in_reports | grep -vE "^short$|^window|growth\.|exit\.signal|root\.|\.why|\.grown|scan\.(new|found_again)|stacks\[\]\.unsure|marks\[\]|free_list_words"'
	[ -z "$output" ] || { echo "in no report: $output"; return 1; }
}

# all_documented SECTION FILE...: the page of the other JSON has the keys of these files
all_documented() {
	documented "$1" heaptap-json.5 >in_manual
	[ -s in_manual ]
	# Items of lists of owners are alike, and so are all chains.
	keys "${@:2}" | sed 's/^why_type\.owners\[\]/owners[]/; s/^owners\[\]\.why/why/' | LC_ALL=C sort -u >in_files
	run comm -13 in_manual in_files
	[ -z "$output" ] || { echo "not in $1 of the manual: $output"; return 1; }
}

@test "json: each key of censuses, comparisons, lists of blocks, doctor and system is in the manual" {
	local addr
	kinds
	built
	"$HEAPTAP" scan -q -o census.json "$TARGET"
	addr=$(jq -r '.leaks[0].address' census.json)
	"$HEAPTAP" scan -q --baseline census.json --why "$addr" -o why.json "$TARGET"
	"$HEAPTAP" scan -q --why Session -o type.json "$TARGET"
	all_documented CENSUS/1 census.json why.json type.json
	"$HEAPTAP" doctor --json "$TARGET" >doctor.out || true
	# Names of features and settings are no keys.
	jq '.privileges = {} | .features = {} | .settings = {}' doctor.out >doctor.json
	all_documented DOCTOR/1 doctor.json
	"$HEAPTAP" system --json -i 1s -t 2s --pid "$TARGET" >system.out
	tail -n 1 system.out >system.json
	all_documented SYSTEM/1 system.json
	for name in a b c; do "$HEAPTAP" run -q -o "$name.json" -o "$name.blocks.json" -- "$T/leak" >out 2>&1; done
	all_documented BLOCKS/1 a.blocks.json
	"$HEAPTAP" diff --json a.json b.json >diff.json
	all_documented DIFF/1 diff.json
	"$HEAPTAP" diff --json a.json b.json c.json >series.json
	all_documented SERIES/1 series.json
}

# others: all keys of the other JSON in the manual
others() {
	local section
	for section in CENSUS SYSTEM DIFF SERIES BLOCKS DOCTOR; do documented "$section/1" heaptap-json.5; done | sed 's/.*\.//' | sort -u
}

# written FILE...: the keys that these parts of the source write
written() {
	grep -hoE '[a-z_]*json[a-z0-9_]*\([&a-z]+, "[a-z_0-9]+"|\\"[a-z_0-9]+\\":' "$@" | grep -oE '"[a-z_0-9]+(\\)?"' | tr -d '"\\' | sort -u
}

@test "json: each key that the source writes is in a page of the manual" {
	others >"$BATS_TEST_TMPDIR/in_manual"
	cd "$ROOT"
	written user/census/*.c user/system/rows_json.c user/cli/doctor*.c user/report/{diff_print,series_print,report_blocks,report_hint}.c \
		>"$BATS_TEST_TMPDIR/written"
	[ "$(wc -l <"$BATS_TEST_TMPDIR/written")" -gt 150 ]
	run comm -13 "$BATS_TEST_TMPDIR/in_manual" "$BATS_TEST_TMPDIR/written"
	[ -z "$output" ] || { echo "in no page: $output"; return 1; }
}

# bats test_tags=full
@test "report: the manual names no key that the source does not have" {
	local key
	for key in $(documented | sed 's/.*\.//' | sort -u); do
		grep -qrE "\"$key\"" "$ROOT/user/report" "$ROOT/user/scan" || { echo "no such key: $key"; return 1; }
	done
	others >"$BATS_TEST_TMPDIR/others"
	[ "$(wc -l <"$BATS_TEST_TMPDIR/others")" -gt 150 ]
	while read -r key; do
		grep -qrE "\"$key\\\\?\"" "$ROOT"/user/{report,scan,census,system,cli,source} || { echo "no such key: $key"; return 1; }
	done <"$BATS_TEST_TMPDIR/others"
}
