#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# heaptap diff of many reports: growth by process and by caller. The reports are made of lists of events, without root.

load ../lib/common

setup() { cd "$BATS_TEST_TMPDIR" || return 1; }

# list_events GROWING STEADY [PID]: a process with two callers that hold so many bytes; the third has freed its block
list_events() {
	local pid=${3:-77}
	echo "process $pid prog /nowhere/prog"
	echo "map $pid 0x400000 0x500000 0x400000 /nowhere/prog"
	echo "stack 2 $pid complete 0x400100 0x400200"
	echo "stack 3 $pid complete 0x400110 0x400200"
	echo "stack 4 $pid complete 0x400120 0x400200"
	echo "alloc $pid 1 malloc 0x10000 $1 2 1000000000"
	echo "alloc $pid 1 calloc 0x90000000 $2 3 1000000001"
	echo "alloc $pid 1 malloc 0xa0000000 64 4 1000000002"
	echo "free $pid 1 free 0xa0000000 0 1000000003"
}

# make_report FILE MINUTE GROWING STEADY [PID]: made at this minute since the machine started
make_report() {
	list_events "${@:3}" >events.txt
	"$HEAPTAP" report --format json events.txt 2>err | jq --argjson minute "$2" '.time_ns = $minute * 60000000000' >"$1"
}

# Ten reports, one each 6 minutes. One caller grows by 1,000 bytes each time. The names are not in the order of time.
make_reports() {
	local i
	mkdir reports
	for i in 0 1 2 3 4 5 6 7 8 9; do
		make_report "reports/heap-$((9 - i)).json" $((600 + 6 * i)) $((5000 + 1000 * i)) $((300 + i % 2))
	done
}

# bats test_tags=core,anyone
@test "series: growth per hour, ranked callers, points in the order of time; .json and .json.gz" {
	make_reports
	gzip reports/heap-3.json reports/heap-9.json
	echo 'not a report' >reports/README
	"$HEAPTAP" diff --json reports >s.json
	jq -e '.schema == "heaptap-series/1" and (.reports | length == 10 and (map(.time_ns) | . == sort))' s.json
	jq -e '.reports[0].file == "reports/heap-9.json.gz" and .reports[9].file == "reports/heap-0.json"' s.json
	jq -e '.processes | length == 1 and .[0].comm == "prog" and .[0].pid == null' s.json
	jq -e '.processes[0] | [.points[].live_bytes] == [range(10) | 5300 + 1000 * . + . % 2]
		and [.points[].after_ns] == [range(10) | . * 360000000000] and all(.points[]; .live_blocks == 2)' s.json
	jq -e '.processes[0].callers | length == 2' s.json
	jq -e '.processes[0].callers[0] | .bytes_per_hour == 10000 and .standard_error == 0 and .significant
		and .first_bytes == 5000 and .last_bytes == 14000 and .steps == 9 and .steps_grown == 9
		and .frames == ["prog+0x100", "prog+0x200"]' s.json
	jq -e '.processes[0].callers[1] | .significant == false and .standard_error > 0 and .steps_grown == 5' s.json
	# The order of arguments does not matter.
	"$HEAPTAP" diff --json reports/heap-*.json.gz reports/heap-*.json | cmp - s.json
	"$HEAPTAP" diff -n 1 reports >text
	grep -qx '10 reports in 54m 00s, from reports/heap-9.json.gz to reports/heap-0.json' text
	grep -qx '#1   +9.77 KiB/hour +- 0 B (5,000 B, then 13.7 KiB; grew in 9 of 9 steps), by malloc' text
	grep -qx 'Who grows: top 1 of 2 callers' text
	[ "$(grep -c '^#' text)" -eq 1 ]
	"$HEAPTAP" diff reports | grep -q '^#2 .*, not significant (300 B, then 301 B; grew in 5 of 9 steps), by calloc$'
	# The other command gives the same, into files.
	"$HEAPTAP" report -q -o s2.json -o s.txt reports
	cmp s.json s2.json
	"$HEAPTAP" diff reports | diff - s.txt
	"$HEAPTAP" report --format json reports | cmp - s.json
	# A picture of callers is no report.
	"$HEAPTAP" report -q -o reports/x.speedscope.json events.txt
	"$HEAPTAP" diff --json reports | cmp - s.json
}

# bats test_tags=anyone,full
@test "series: a page with the growth of processes and callers, and plots" {
	command -v chromedriver >/dev/null || skip "no chromedriver (Debian: chromium-driver)"
	make_reports
	"$HEAPTAP" report -q -o s.html reports
	"$HEAPTAP" diff -q -o d.html reports
	cmp s.html d.html
	python3 "$ROOT/tests/lib/page.py" s.html eval 'document.querySelector(".headline").textContent.replace(/\u00a0/g, " ")' \
		eval 'Number(document.querySelector(".headline").dataset.slope)' \
		eval 'document.querySelectorAll("#timeline svg:first-child .dot").length' \
		eval 'document.querySelectorAll("#timeline .trend").length' \
		eval 'Number(document.querySelector("#table").dataset.rows)' \
		eval 'Array.from(document.querySelectorAll("#table tbody td[data-value]"), c => Number(c.dataset.value)).slice(0, 4)' \
		click '#table tbody .opens' eval 'document.querySelectorAll(".opened .dot").length' \
		eval 'document.querySelectorAll(".opened .stack li").length' \
		eval 'Number(document.querySelector("#canvas").dataset.total)' >got
	grep -q '^"+9.77 KiB an hour .* 1 B, most of it from prog+0x100"$' got || { cat got; return 1; }
	slope=$("$HEAPTAP" diff --json reports | jq '.processes[0].bytes_per_hour')
	printf '%s\n' "$slope" 10 2 2 '[10000, 0, 5000, 14000]' 10 2 10000 | diff - <(tail -n +2 got)
}

# bats test_tags=anyone
@test "series: hostile names do not leave the page" {
	make_reports
	jq '(.processes[0].comm) = "</script><b>" | (.processes[0].stacks[0].frames[0].function) = "</script><img src=x>\"\u001b"' \
		reports/heap-3.json >x.json
	"$HEAPTAP" diff -q -o s.html x.json reports/heap-2.json x.json
	[ "$(grep -c '</script>' s.html)" -eq 2 ]
	run ! grep -q -a "$(printf '\033')" s.html
}

# bats test_tags=anyone
@test "series: a restarted process is one line, several of one name are a line for each PID" {
	make_report a.json 1 1000 10 5
	make_report b.json 2 2000 10 6
	make_report c.json 3 3000 10 7
	"$HEAPTAP" diff --json a.json b.json c.json | jq -e '.processes | length == 1
		and .[0].points[2].pid == 7 and .[0].bytes_per_hour == 60000'
	for f in a b c; do
		make_report other.json 1 700 20 8
		jq --slurpfile other other.json '.processes += $other[0].processes' $f.json >both.$f.json
		jq '(.processes[0].pid) = 5' both.$f.json >$f.json
	done
	"$HEAPTAP" diff --json a.json b.json c.json >s.json
	jq -e '.processes | map(.pid) == [5, 8] and .[0].bytes_per_hour == 60000 and .[1].bytes_per_hour == 0
		and .[1].callers[0].first_bytes == 700' s.json
	"$HEAPTAP" diff a.json b.json c.json | grep -q '^prog (pid 8): +0 B/hour'
}

# bats test_tags=anyone,full
@test "series: damaged gzip and what is no series are refused in one line" {
	make_reports
	cd reports
	gzip -c heap-1.json >whole.gz
	head -c 700 whole.gz >cut.json.gz
	{ head -c 300 whole.gz; head -c 200 /dev/zero | tr '\0' x; tail -c +501 whole.gz; } >damaged.json.gz
	echo '{"schema": "other/1", "processes": []}' >other.json
	for f in cut.json.gz damaged.json.gz other.json missing.json .; do
		for others in heap-2.json "heap-2.json heap-3.json"; do
			status=0
			# shellcheck disable=SC2086
			"$HEAPTAP" diff $others "$f" >out 2>err || status=$?
			[ "$status" -eq 4 ] || { echo "status $status for $f"; return 1; }
			[ "$(wc -l <err)" -eq 1 ] || { cat err; return 1; }
			[ ! -s out ]
		done
	done
	"$HEAPTAP" diff heap-2.json whole.gz | grep -q 'Who holds more: 1 caller'
	for bad in heap-2.json "-s peak heap-2.json heap-3.json heap-4.json" "-o d.csv heap-2.json heap-3.json heap-4.json"; do
		# shellcheck disable=SC2086
		run "$HEAPTAP" diff $bad
		[ "$status" -eq 2 ] || { echo "status $status for $bad"; return 1; }
	done
	mkdir empty
	run "$HEAPTAP" diff empty
	[ "$status" -eq 4 ]
	[[ $output == *'has 0 reports'* ]]
}
