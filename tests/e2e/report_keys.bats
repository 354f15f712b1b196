#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# The manual of the JSON report has each key of real reports, and no other.

load ../lib/common

setup() { cd "$BATS_TEST_TMPDIR" || return; }

# documented: the keys in the manual, one a line, as processes[].totals.allocs
documented() {
	awk -v from="^.SH KEYS" -v to="^.SH EXAMPLES" '$0 ~ from { is_in = 1; section = "" }
		$0 ~ to { exit }
		/^\.SS / { section = $0; gsub(/^\.SS "|"$/, "", section)
			prefix = section ~ /^The / ? "" : section "." }
		is_in && section && /^\.BR? / { print prefix $2 }
		is_in && section && / \(sum\)"$/ { print prefix $2 ".blocks"; print prefix $2 ".bytes" }' \
		"$ROOT/man/heaptap-report.5" | LC_ALL=C sort -u
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
	# Some keys depend on lost frees, growth, signals, roots, later reports, windows of system or missing memory (short), which a report may lack.
	run bash -c 'comm -23 in_manual in_reports | grep -vE "^short$|^window|growth\.|exit\.signal|root\.|\.why|\.grown|scan\.(new|found_again)|stacks\[\]\.unsure|marks\[\]"'
	[ -z "$output" ] || { echo "in no report: $output"; return 1; }
}

# bats test_tags=full
@test "report: the manual names no key that the source does not have" {
	local key
	for key in $(documented | sed 's/.*\.//' | sort -u); do
		grep -qrE "\"$key\"" "$ROOT/user/report" "$ROOT/user/scan" || { echo "no such key: $key"; return 1; }
	done
}
