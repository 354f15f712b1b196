#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# The HTML report in a browser: it opens, shows the numbers of JSON, and can be used by pointer and keyboard.
#
# bats file_tags=full

load ../lib/common

setup() {
	cd "$BATS_TEST_TMPDIR" || return 1
	command -v chromedriver >/dev/null || skip "no chromedriver (Debian: chromium-driver)"
}

teardown() {
	end_started
	[ -z "${OPEN_TO_ALL:-}" ] || rm -rf "$OPEN_TO_ALL"
}

page() { python3 "$ROOT/tests/lib/page.py" "$@"; }

# shown CSS: JavaScript for the text of an element
shown() { printf 'document.querySelector("%s").textContent.replace(/\\u00a0/g, " ")' "$1"; }

# value CSS KEY: JavaScript for data of an element, as a number
value() { printf 'Number(document.querySelector("%s").dataset.%s)' "$1" "$2"; }

# Two callers of two functions each; the process grows to 5,600 bytes and keeps 600. Names come from offsets.
list_events() {
	echo 'process 77 prog /nowhere/prog'
	echo 'map 77 0x400000 0x500000 0x400000 /nowhere/prog'
	echo 'stack 2 77 complete 0x400100 0x400200 0x400300'
	echo 'stack 3 77 complete 0x400110 0x400200 0x400300'
	echo 'stack 4 77 depth 0x400120 0x400200'
	echo 'alloc 77 1 malloc 0x1000 100 2 1000000000'
	echo 'alloc 77 1 malloc 0x2000 5000 3 2000000000'
	echo 'free 77 1 free 0x2000 0 3000000000'
	echo 'alloc 77 1 calloc 0x3000 500 4 4000000000'
	echo 'exit 77 0'
}

@test "html: the numbers of JSON, kind by kind" {
	"$HEAPTAP" run -q -o r.json -o r.html -- "$T/leak" 2>err >out
	page r.html eval "$(value '[data-fact=live_bytes]' value)" eval "$(value '[data-fact=peak_bytes]' value)" \
		eval "$(value '[data-verdict=definite]' bytes)" eval "$(value '[data-verdict=reachable]' blocks)" \
		eval "$(value '#table' rows)" eval "$(value '#canvas' total)" \
		click '[data-id=total]' eval "$(value '#canvas' total)" click '[data-id=calls]' eval "$(value '#canvas' total)" \
		click '[data-id=peak]' eval "$(value '#canvas' total)" click '[data-id=live]' eval "$(value '#canvas' total)" \
		click '[data-id=temporary]' eval "$(value '#canvas' total)" >got
	jq '.processes[0] | .totals.live_bytes, .totals.peak_bytes, .scan.definite.bytes, .scan.reachable.blocks,
		(.stacks | length), .scan.definite.bytes + .scan.indirect.bytes, .totals.alloc_bytes, .totals.allocs,
		([.stacks[].peak_bytes] | add), .totals.live_bytes, .totals.temporary' r.json | diff - got
}

@test "html: estimates of --sample have a ~, and the page says so; exact numbers have none" {
	"$HEAPTAP" run -q -b inline --sample 4K -o r.html -- "$T/planted" 2>err >out
	page r.html eval "$(shown '[data-fact=live_bytes] b')" eval "$(shown '.doubts')" eval "$(shown '#kinds button span')" >got
	grep -q '^"\?~[0-9.,]* [KM]iB' got
	grep -q 'Numbers with ~ are estimates, from [0-9,]* sampled blocks: one sample in 4,096 B' got
	[ "$(grep -c '~[0-9]' got)" -eq 2 ]
	"$HEAPTAP" run -q -o exact.html -- "$T/leak" 2>err >out
	page exact.html eval "$(shown '[data-fact=live_bytes] b')" eval "$(shown '#kinds')" >got
	no_line '~' got
}

@test "html: --html is --output, --open shows the page" {
	list_events >l.txt
	mkdir bin
	printf '#!/bin/sh\necho "$1" >>%q\n' "$PWD/opened" >bin/xdg-open
	chmod 755 bin/xdg-open
	PATH=$PWD/bin:$PATH "$HEAPTAP" report -q --html r.html --open l.txt
	[ "$(cat opened)" = "$PWD/r.html" ]
	mkdir tmp
	: >opened
	TMPDIR=$PWD/tmp PATH=$PWD/bin:$PATH "$HEAPTAP" report -q -o r.json --open l.txt
	[ "$(cat opened)" = "$(echo "$PWD"/tmp/heaptap-*/report.html)" ]
	grep -q '<title>heaptap report' "$(cat opened)"
	jq -e .version r.json
	run "$HEAPTAP" report --html r.txt l.txt
	[ "$status" -eq 2 ]
	[[ "$output" == *"--html: r.txt: must end in .html"* ]]
	rm opened
	PATH=/nowhere run "$HEAPTAP" report -q --open l.txt
	[ "$status" -eq 3 ]
	[[ "$output" == *"cannot run xdg-open; open /tmp/heaptap-"* ]]
	rm -r "$(dirname "$(sed -n 's/.*open \(\/tmp\/heaptap-.*\) in a browser/\1/p' <<<"$output")")"
}

@test "html: --open under sudo runs the browser as the caller" {
	[ "$(id -u)" -eq 0 ] || skip "not root"
	list_events >l.txt
	# The directory of the tests is closed to others.
	OPEN_TO_ALL=$(mktemp -d)
	mkdir "$OPEN_TO_ALL/bin" "$OPEN_TO_ALL/tmp"
	printf '#!/bin/sh\nid -u >%q\ncat "$1" >%q\n' "$OPEN_TO_ALL/tmp/user" "$OPEN_TO_ALL/tmp/read" >"$OPEN_TO_ALL/bin/xdg-open"
	chmod 755 "$OPEN_TO_ALL" "$OPEN_TO_ALL/bin" "$OPEN_TO_ALL/bin/xdg-open"
	chmod 777 "$OPEN_TO_ALL/tmp"
	SUDO_UID=65534 SUDO_GID=65534 TMPDIR=$OPEN_TO_ALL/tmp PATH=$OPEN_TO_ALL/bin:$PATH "$HEAPTAP" report -q --open l.txt
	[ "$(cat "$OPEN_TO_ALL/tmp/user")" = 65534 ]
	grep -q '<title>heaptap report' "$OPEN_TO_ALL/tmp/read"
}

@test "html: verdict and worst place in words" {
	"$HEAPTAP" run -q -o r.html -- "$T/leak" 2>err >out
	page r.html eval "$(shown .headline)" eval 'document.querySelector(".headline").textContent.includes("10.8\u00a0KiB")' >got
	grep -qx true got
	grep -q '^"Leaks 10.8 KiB in 32 blocks, and with them 480 B in 20, most of it from open_session (leak.c:' got
	list_events >l.txt
	"$HEAPTAP" report -q -o none.html l.txt
	page none.html eval "$(shown .headline)" >got
	grep -q 'No leak verdict: the memory was not searched; 600 B live in 2 blocks, ' got
}

@test "html: a process that could not be watched has a reason and no numbers" {
	strip -o stripped "$T/leak-static"
	"$HEAPTAP" run -q -o r.json -o r.html -- ./stripped 2>err >out || true
	[ "$(jq '.processes[0].watched' r.json)" = false ]
	page r.html eval "$(shown .headline)" eval "$(shown .doubts)" eval 'document.querySelector(".facts")' \
		eval 'document.querySelector("#flame").hidden && document.querySelector("#callers").hidden' >got
	head -n 1 got | grep -q 'No verdict: nothing could be watched'
	sed -n 2p got | grep -qF "$(jq -r '.processes[0].unwatched_reason' r.json)"
	printf '%s\n' null true | diff - <(tail -n 2 got)
}

@test "html: zoom by click and keys, path back" {
	list_events >l.txt
	"$HEAPTAP" report -q -o r.html l.txt
	# Everything; 0x300 and 0x200 with their two callees; the mark of the cut stack, 0x200 and its callee.
	page r.html click '[data-id=total]' eval "$(value '#canvas' frames)" \
		eval 'document.querySelector("#canvas").focus()' key ArrowDown key Enter eval "$(value '#crumbs' depth)" \
		eval "$(shown '#detail b')" eval "$(value '#canvas' frames)" \
		click '#crumbs button' eval "$(value '#crumbs' depth)" eval "$(value '#canvas' frames)" >got
	printf '%s\n' 8 null 1 '"prog+0x300"' 4 0 8 | diff - got
	# The third of the four rows of the graph has 0x200 in its middle.
	page r.html click '[data-id=total]' click-at '#canvas' 0.5 0.6 eval "$(shown '#detail b')" eval "$(value '#crumbs' depth)" \
		key Escape eval "$(shown '#detail b')" >got
	printf '%s\n' '"prog+0x200"' 2 '"prog+0x300"' | diff - got
}

@test "html: search marks a share, and filters callers" {
	list_events >l.txt
	"$HEAPTAP" report -q -o r.html l.txt
	page r.html click '[data-id=total]' type '#search' 'prog+0x110' wait 'document.querySelector("#found").dataset.share' \
		eval "$(value '#found' share)" eval "$(value '#table' rows)" eval "$(shown '#found')" \
		type '#search' 'file:nothing' wait 'document.querySelector("#found").dataset.share === "0"' eval "$(value '#table' rows)" \
		type '#search' '/0x1[01]0$/' wait 'document.querySelector("#found").dataset.share === "5100"' \
		eval "$(value '#table' rows)" >got
	printf '%s\n' 5000 1 '"89.3 % of allocated"' 0 2 | diff - got
}

@test "html: all shapes and groups have one sum" {
	"$HEAPTAP" run -q -o r.json -o r.html -- "$T/leak" 2>err >out
	page r.html click '[data-id=total]' choose '#shape' inverted eval "$(value '#canvas' total)" \
		choose '#shape' 'flame graph' eval "$(value '#canvas' total)" choose '#by' module eval "$(value '#canvas' total)" \
		choose '#by' 'source file' choose '#shape' inverted eval "$(value '#canvas' total)" >got
	[ "$(sort -u got)" = "$(jq '.processes[0].totals.alloc_bytes' r.json)" ]
	[ "$(wc -l <got)" -eq 4 ]
}

@test "html: the table is sorted, opened, and grouped" {
	list_events >l.txt
	"$HEAPTAP" report -q -o r.html l.txt
	page r.html eval 'document.querySelector("#table tbody td").dataset.value' \
		click '[data-column=alloc_bytes] button' \
		eval 'document.querySelector("[data-column=alloc_bytes]").getAttribute("aria-sort")' \
		eval 'document.querySelector("#table tbody tr").textContent.includes("0x110")' \
		click '#table tbody .opens' eval 'document.querySelectorAll(".opened .stack li").length' \
		click '[data-id=function]' eval "$(value '#table' rows)" click '[data-id=module]' eval "$(value '#table' rows)" \
		eval "$(shown '#table tbody th b')" >got
	printf '%s\n' '"500"' '"descending"' true 3 5 1 '"prog"' | diff - got
}

@test "html: several processes" {
	"$HEAPTAP" run -q -f -o r.json -o r.html -- "$T/fork" 3 2>err >out
	jq -r '.processes[] | "\(.comm) (pid \(.pid))"' r.json >want
	page r.html eval 'Array.from(document.querySelector("#process").options, o => o.textContent).join("\n")' >got
	jq -r . got | diff want -
	while read -r name; do
		page r.html choose '#process' "$name" eval "$(value '[data-fact=alloc_bytes]' value)"
	done <want >got
	jq '.processes[].totals.alloc_bytes' r.json | diff - got
}

@test "html: live blocks by thread" {
	"$HEAPTAP" run -q --no-scan -o r.json -o r.html -- "$T/threads" 4 1000 2>err >out
	page r.html eval 'Array.from(document.querySelectorAll("#threads tr"), r => Number(r.dataset.live))' | jq -c . >got
	jq -c '[.processes[0].threads[].live.bytes] | sort | reverse' r.json | diff - got
	[ "$(jq length got)" -ge 5 ]
	"$HEAPTAP" run -q --no-scan -o one.html -- "$T/leak" 2>err >out
	[ "$(page one.html eval 'document.querySelector("#threads").hidden')" = true ]
}

@test "html: wrong releases with both stacks" {
	"$HEAPTAP" run -q -o r.json -o r.html -- "$T/misuse" 2>err >out || true
	[ "$(jq '.processes[0].errors | length' r.json)" -gt 0 ]
	page r.html eval 'document.querySelectorAll("#errors .error").length' \
		eval 'document.querySelectorAll("#errors .error .stack").length' >got
	jq '.processes[0].errors | length, ([.[] | .alloc_stack, .free_stack, .earlier_free_stack | select(. != null)] | length)' \
		r.json | diff - got
}

@test "html: live memory over time, with its peak" {
	list_events | sed 's/^free/mark 2500000000 half-way\n&/' >l.txt
	"$HEAPTAP" report -q -o r.html -o r.json l.txt
	[ "$(jq -c '.marks, .marks_left_out' r.json | paste -sd ' ')" = '[{"time_ns":2500000000,"name":"half-way"}] 0' ]
	page r.html eval "$(value '#timeline' points)" eval "$(shown .peak-text)" eval "$(shown .mark-text)" >got
	grep -qx '"half-way"' got
	[ "$(head -n 1 got)" -eq "$(jq '.processes[0].timeline | length' r.json)" ]
	grep -q 'peak 5,100 B' got
}

# Three callers that allocate and free at many times, with gaps of seconds between them.
list_long() {
	list_events | head -n 5
	awk 'BEGIN {
		OFMT = "%.0f" # mawk writes times above 2^31 as 2.1e+09
		for (i = 0; i < 900; i++) {
			at = 1000000000 + i * 7000000 + (i > 500 ? 4000000000 : 0)
			print "alloc 77 1 malloc", 4096 + 16 * i, 10 + i, 2 + i % 3, at
			if (i % 4)
				print "free 77 1 free", 4096 + 16 * i, 0, at + 1000000
		}
	}'
	echo 'exit 77 0'
}

# part KEY: data of the chosen part of the timeline
part() { printf 'Number(document.querySelector("#part").dataset.%s)' "$1"; }

@test "html: all labels of the timeline lie in the picture, and each line has more than its zero" {
	# The last label, 12.0 s, is at the end of the run. 94 blocks are live then.
	{
		list_events | grep -v exit
		for i in $(seq 93); do echo "alloc 77 1 malloc $((0x10000 + i * 64)) 10 2 $((i * 90000000 + 4000000000))"; done
		echo 'free 77 1 free 0x1000 0 13000000000'
	} >l.txt
	"$HEAPTAP" report -q -o r.html l.txt
	page r.html size 1280 900 eval 'document.querySelectorAll("#timeline .tick").length > 7' \
		eval 'Array.from(document.querySelectorAll("#timeline-panel text")).filter(t => { const b = t.getBBox();
			return b.x < 0 || b.x + b.width > t.ownerSVGElement.width.baseVal.value + 0.5; }).map(t => t.textContent)' \
		eval 'Array.from(document.querySelectorAll("#timeline-panel svg")).map(s => s.querySelectorAll(".grid").length > 1)' >got
	printf '%s\n' true '[]' '[true, true, true]' | diff - got
}

@test "html: the table says how many of its rows it shows" {
	{
		list_events | grep -v exit
		for i in $(seq 20); do echo "stack $((i + 10)) 77 complete $((0x400400 + i * 16)) 0x400300"; done
		for i in $(seq 20); do echo "alloc 77 1 malloc $((0x10000 + i * 64)) 10 $((i + 10)) 5000000000"; done
	} >l.txt
	"$HEAPTAP" report -q -o r.html l.txt
	page r.html eval "$(shown '#rows-note')" click '#more' eval "$(shown '#rows-note')" >got
	printf '%s\n' '"15 of 23 callers"' '"23 callers"' | diff - got
}

@test "html: a part of the timeline has the numbers of --between" {
	list_long >l.txt
	"$HEAPTAP" report -q -o r.html -o r.json l.txt
	for range in '0.1 0.3' '0.35 0.36' '0.5 0.95'; do
		# shellcheck disable=SC2086
		page r.html drag '#timeline-panel' $range eval "$(part from)" eval "$(part to)" eval "$(part net)" \
			click '[data-id=total]' eval "$(value '#canvas' total)" click '[data-id=calls]' eval "$(value '#canvas' total)" \
			eval "$(value '#table' rows)" >got
		{ read -r from && read -r to && read -r net; } <got
		"$HEAPTAP" report -q --force --between "${from}ns,${to}ns" -o part.json l.txt
		jq '.processes[0] | .totals.alloc_bytes, .totals.allocs, (.stacks | length)' part.json | diff - <(tail -n +4 got)
		awk -v from="$from" -v to="$to" -v net="$net" '$1 == "alloc" { size[$5] = $6; at = $8 - 1e9; change = $6 }
			$1 == "free" { at = $7 - 1e9; change = -size[$5] }
			at >= from && at < to && /^(alloc|free)/ { sum += change } END { exit sum != net }' l.txt
		[ "$(sed -n 4p got)" -gt 0 ]
	done
}

@test "html: a part of the timeline by keys, and back to the whole run" {
	list_long >l.txt
	"$HEAPTAP" report -q -o r.html -o r.json l.txt
	page r.html eval "$(value '#timeline-panel' slices)" eval 'document.querySelector("#timeline-panel").focus()' \
		key ArrowRight eval "$(part from)" eval "$(value '#canvas' total)" key ArrowRight key Shift+ArrowRight \
		eval "$(part to)" eval 'document.querySelector("#timeline-panel").getAttribute("aria-valuetext")' \
		choose '#shape' inverted eval "$(value '#canvas' total)" key Escape eval 'document.querySelector("#part-end").hidden' \
		click '[data-id=total]' eval "$(value '#canvas' total)" drag '#timeline-panel' 0.1 0.2 click '#part-end' \
		eval "$(value '#canvas' total)" >got
	mapfile -t got <got
	[ "${got[0]}" -ge 16 ] && [ "${got[0]}" -le 65 ]
	[ "${got[2]} ${got[7]}" = "0 true" ]
	[ "${got[3]}" -gt 0 ] && [ "${got[6]}" -gt 0 ]
	[[ "${got[5]}" == '"'*' to '*'"' ]]
	[ "${got[8]} ${got[9]}" = "$(jq -r '.processes[0].totals.alloc_bytes | "\(.) \(.)"' r.json)" ]
}

# slices FILE: what callers did over time, without times and places of callers
slices() {
	grep -o '"slices":\[.*\]}\],"texts"' "$1" | sed 's/^/{/; s/}\],"texts"$/}/' |
		jq -c '[.slices[] | .nr as $nr | [.allocs, .alloc_bytes, .live_bytes] | map(if type == "array" then add else (. // 0) * $nr end)] |
			transpose | map(add)'
}

@test "html: live sessions, recordings, connections and the console fill parts alike" {
	"$HEAPTAP" run -q --no-scan -w r.heaptap -o live.html -o r.json -- "$T/leak" 2>err >out
	"$HEAPTAP" report -q -o record.html r.heaptap
	"$HEAPTAP" console -q -x 'report console.html' r.heaptap
	slices live.html >want
	jq -c '.processes[0].totals | [.allocs, .alloc_bytes, .live_bytes]' r.json | diff - want
	slices record.html | diff want -
	slices console.html | diff want -
	mkdir -m 700 net
	start "$HEAPTAP" serve --wait --listen "unix:$PWD/net/s" -- "$T/leak"
	wait_for grep -qs 'heaptap connect' heaptap.err
	"$HEAPTAP" connect -q --no-scan -o connect.html "unix:$PWD/net/s" 2>err
	slices connect.html | diff want -
}

@test "html: Enter goes from hit to hit, where the graph opens; Esc leaves the search; ? shows the keys" {
	list_events >l.txt
	"$HEAPTAP" report -q -o r.html l.txt
	# 0x200 is below 0x300, and below the mark of the cut stack.
	page r.html click '[data-id=total]' eval 'document.querySelector("#search").focus()' key '?' \
		eval 'document.querySelector("#keys").open' type '#search' 'prog+0x200' key Enter eval "$(shown '#found')" eval "$(shown '#detail b')" \
		eval "$(value '#crumbs' depth)" key Enter eval "$(shown '#found')" key Enter eval "$(shown '#found')" \
		key Shift+Enter eval "$(shown '#found')" key Escape eval 'document.querySelector("#search").value' \
		eval 'document.activeElement.id' eval "$(value '#table' rows)" key '?' eval 'document.querySelector("#keys").open' \
		key Escape eval 'document.querySelector("#keys").open' >got
	printf '%s\n' null false '"1 of 2"' '"prog+0x200"' 2 '"2 of 2"' '"1 of 2"' '"2 of 2"' '""' '"canvas"' 3 true false | diff - got
}

@test "html: a tab sorts the table; the address names the spot, and leads back to it" {
	local at
	list_long >l.txt
	"$HEAPTAP" report -q -o r.html l.txt
	# what FIELD...: what is shown of a page
	local -a what=(eval "$(value '#canvas' total)" eval 'document.querySelector("#canvas").dataset.kind'
		eval 'document.querySelector("[aria-sort=descending]").dataset.column' eval "$(value '#table' rows)" eval "$(shown '#detail b')"
		eval 'document.querySelector("#shape").value' eval 'document.querySelector("#groups [aria-pressed=true]").dataset.id'
		eval "$(part from)" eval "$(shown '#found')")
	page r.html eval 'location.hash' drag '#timeline-panel' 0.1 0.3 click '[data-id=calls]' click '[data-id=function]' \
		choose '#shape' inverted type '#search' 'prog+0x1' key Enter "${what[@]}" eval 'location.hash' >got
	[ "$(head -1 got)" = '""' ]
	[ "$(sed -n 4p got)" = '"allocs"' ]
	at=$(tail -1 got | jq -r .)
	[[ $at == '#'*'part='*'kind=calls'*'at='* ]]
	page "r.html$at" "${what[@]}" >again
	diff <(sed '1d; $d' got) again
	# Words of the address that name nothing are passed over.
	page 'r.html#p=99&part=7-3&kind=x&by=y&as=z&rows=q&sort=w-&at=9.9.9&q=%3Cb%3E' eval "$(value '#canvas' total)" \
		eval 'document.querySelectorAll("main b b").length' >got
	printf '%s\n' "$(page r.html eval "$(value '#canvas' total)")" 0 | diff - got
}

@test "html: new data of a live page take nothing from who types, and leave the hit that was found" {
	list_events >l.txt
	"$HEAPTAP" report -q -o r.html l.txt
	page r.html click '[data-id=total]' type '#search' 'prog+0x200' key Enter key Enter eval 'renew(report)' eval "$(shown '#found')" \
		eval '(byId("search").value = "0x110", renew(report), byId("search").value)' eval "$(value '#table' rows)" >got
	printf '%s\n' null '"2 of 2"' '"0x110"' 1 | diff - got
}

@test "html: functions: what is theirs beside what is below them, callers and callees" {
	list_events >l.txt
	"$HEAPTAP" report -q -o r.html l.txt
	# 0x200 holds 600 bytes through its callees, none itself; 0x300 calls it, and so does the cut stack.
	page r.html click '[data-id=function]' \
		eval 'Array.from(document.querySelectorAll("#table tbody tr"), r => [r.querySelector("b").textContent, ...["live_bytes", "self"].map(id =>
			Number(r.children[1 + Array.from(document.querySelectorAll("#table thead [data-column]")).findIndex(h => h.dataset.column === id)].dataset.value))].join(" ")).sort()' \
		click '#table tbody .opens' \
		eval 'Array.from(document.querySelectorAll(".near > div"), d => Array.from(d.querySelectorAll("li"), l => l.textContent.replace(/\u00a0/g, " ")).join(", "))' >got
	jq -c . got | diff - <(printf '%s\n' '["prog+0x100 100 100","prog+0x110 0 0","prog+0x120 500 500","prog+0x200 600 0","prog+0x300 100 0"]' \
		'["[cut at the depth that was asked for (--depth 127 has more)]500 B, prog+0x300100 B","prog+0x120500 B, prog+0x100100 B"]')
}

@test "html: who held the memory over time: the areas end with what is live" {
	list_long >l.txt
	"$HEAPTAP" report -q -o r.html -o r.json l.txt
	page r.html eval 'document.querySelectorAll("#timeline-panel .holder").length' \
		eval 'sum(holdersOf(state.process).map(h => h.live.at(-1)))' click '#holders button' eval "$(value '#table' rows)" >got
	jq '3, .processes[0].totals.live_bytes, 1' r.json | diff - got
	# A part and its tab have one number.
	for range in '0.35 0.36' '0.1 0.3'; do
		# shellcheck disable=SC2086
		page r.html drag '#timeline-panel' $range eval "$(shown '#kinds [data-id=growth] span')" eval "$(shown '#part-text')" \
			eval 'state.part.net === state.part.sum("growth")' >got
		sed -n 2p got | grep -qF "live memory $(head -1 got | jq -r .)"
		# Where no caller shrank, there are no others.
		[ "$(sed -n 2p got | grep -q ', others ' && echo false || echo true)" = "$(sed -n 3p got)" ]
		tail -1 got >>sames
	done
	grep -q true sames
}

@test "html: a function that calls itself takes two lines" {
	{
		list_events | head -n 2
		echo "stack 2 77 complete 0x400100$(printf ' 0x400200%.0s' {1..40}) 0x400300"
		echo 'alloc 77 1 malloc 0x1000 100 2 1000000000'
	} >l.txt
	"$HEAPTAP" report -q -o r.html l.txt
	page r.html click '#table tbody .opens' eval 'Array.from(document.querySelectorAll(".opened .stack code"), c => c.textContent).join(", ")' >got
	[ "$(cat got)" = '"prog+0x100, prog+0x200, and 39 times more, prog+0x300"' ]
}

@test "html: who is told to ask for deeper stacks can have them, as in the text" {
	local nr
	for nr in 20 127; do
		{
			list_events | head -n 2
			echo "stack 2 77 depth$(printf ' 0x%x' $(seq 4194560 16 $((4194560 + 16 * (nr - 1)))))"
			echo 'alloc 77 1 malloc 0x1000 100 2 1000000000'
		} >l.txt
		"$HEAPTAP" report -q --force -o r.html -o r.txt l.txt
		page r.html eval "$(shown .doubts)" >got
		tr -s ' \n' ' ' <r.txt >text
		if [ "$nr" -eq 20 ]; then
			grep -q 'cut at the depth that was asked for (--depth 127 has more)' got
			grep -q 'at the depth that was asked for: --depth 127 has more' text
		else
			grep -q 'cut at 127 frames, the most that are taken' got
			grep -q 'at 127 frames, the most that are taken' text
		fi
	done
}

@test "html: functions that call each other in turn stand once, as in the text" {
	{
		list_events | head -n 2
		echo "stack 2 77 complete 0x400100$(printf ' 0x400200 0x400240 0x400280%.0s' {1..20}) 0x400200 0x400300"
		echo 'alloc 77 1 malloc 0x1000 100 2 1000000000'
	} >l.txt
	"$HEAPTAP" report -q -o r.html -o r.txt l.txt
	page r.html click '#table tbody .opens' eval 'Array.from(document.querySelectorAll(".opened .stack code"), c => c.textContent).join(", ")' >got
	[ "$(cat got)" = '"prog+0x100, prog+0x200, prog+0x240, prog+0x280, and these 3 lines 19 times more, prog+0x200, prog+0x300"' ]
	[ "$(grep -A 6 '^        in prog+0x100' r.txt | sed 's/^ *//; s/^in //; s/^\.\.\. //' | paste -sd, | sed 's/,/, /g')" = "$(jq -r . got)" ]
}

@test "html: a process that grows is no green one, and its resident memory is below the verdict" {
	start "$T/grow" 1000000 1
	"$HEAPTAP" attach -q -t 4s -o r.json -o r.html "$PID"
	page r.html eval 'document.querySelector(".hero").dataset.tone' eval "$(shown .headline)" eval "$(shown '.hero .age')" >got
	[ "$(head -1 got)" = '"maybe"' ]
	sed -n 2p got | grep -q '^"No leaks among blocks since the attach.*; grows by '
	[ "$(sed -n 3p got | jq -r .)" = "R$(jq -r '.processes[0].resident.text | .[1:]' r.json)" ]
}

@test "html: at 420 pixels a table that is wider says so" {
	"$HEAPTAP" run -q -o r.html -- "$T/leak_kinds" 2>err >out
	page r.html size 420 900 click '[data-id=stack]' \
		eval '(t => document.querySelector("#sideways").hidden === (t.scrollWidth <= t.clientWidth + 1))(document.querySelector("#table").parentElement)' \
		eval 'document.documentElement.scrollWidth' size 1600 900 wait 'document.querySelector("#sideways").hidden' eval 1 >got
	printf '%s\n' true 420 1 | diff - got
	# The column that a tab sorts by is seen.
	page r.html size 420 900 click '[data-id=calls]' eval 'Array.from(document.querySelectorAll("#table thead [data-column]"))
		.filter(h => h.getBoundingClientRect().width).map(h => h.dataset.column).join(" ")' \
		eval 'document.documentElement.scrollWidth' >got
	printf '%s\n' '"leaked_bytes possible_bytes live_bytes allocs"' 420 | diff - got
}

@test "html: hostile names do nothing (S9)" {
	{
		echo 'process 77 </script><b> /nowhere/prog'
		echo 'map 77 0x400000 0x500000 0x400000 /x</script><script>document.title=1</script>"'
		echo 'stack 2 77 complete 0x400100'
		echo 'alloc 77 1 malloc 0x1000 100 2 1000000000'
	} >l.txt
	"$HEAPTAP" report -q -o r.html l.txt
	page r.html eval 'document.scripts.length' eval 'document.title' eval 'document.querySelectorAll("main b script").length' >got
	[ "$(head -n 1 got)" -eq 2 ]
	fails grep -qx '"1"' <(sed -n 2p got)
}

@test "html: no sideways scrolling at 400 and at 1,600 pixels, in dark and light" {
	"$HEAPTAP" run -q -o r.html -- "$T/leak" 2>err >out
	page r.html size 400 800 eval 'document.documentElement.scrollWidth' media prefers-color-scheme=dark \
		wait 'document.documentElement.dataset.look === "dark"' eval 'document.documentElement.dataset.look' size 1600 900 eval 'document.documentElement.scrollWidth' \
		click '#theme' eval 'document.documentElement.dataset.look' >got
	printf '%s\n' 400 '"dark"' 1600 '"light"' | diff - got
}

@test "html: printed at 800 pixels the table of callers has all of its columns on the paper" {
	"$HEAPTAP" run -q -o r.html -- "$T/leak_kinds" 2>err >out
	page r.html size 800 900 media media=print eval 'document.querySelectorAll("#table thead th").length > 8' \
		eval '(table => table.getBoundingClientRect().right <= innerWidth)(document.querySelector("#table"))' >got
	printf '%s\n' true true | diff - got
}

@test "html: a comparison has the numbers of diff --json" {
	list_events >a.txt
	sed 's/0x2000 5000/0x2000 7000/; s/^free.*/alloc 77 1 malloc 0x5000 40 2 3000000000/' a.txt >b.txt
	"$HEAPTAP" diff -q -o d.html a.txt b.txt
	"$HEAPTAP" diff --json a.txt b.txt >d.json
	page d.html eval "$(value '[data-change=live_bytes]' value)" eval "$(value '[data-change=alloc_bytes]' value)" \
		eval "$(value '#canvas' total)" click '[data-id=more_allocs]' eval "$(value '#canvas' total)" \
		eval "$(value '#table' rows)" eval "$(shown .headline)" click '#table .opens' \
		eval 'document.querySelectorAll(".opened .stack li").length' >got
	jq '(.b.totals.live_bytes - .a.totals.live_bytes), (.b.totals.alloc_bytes - .a.totals.alloc_bytes),
		([.callers[].live_bytes | select(. > 0)] | add), ([.callers[] | .b.allocs - .a.allocs | select(. > 0)] | add)' \
		d.json | diff - <(head -n 4 got)
	# The third caller held more at the peak.
	[ "$(sed -n 5p got)" -eq 3 ]
	sed -n 6p got | grep -q '7,040 B more live'
	[ "$(sed -n 7p got)" -eq 3 ]
	run "$HEAPTAP" diff -o d.txt a.txt b.txt
	[ "$status" -eq 2 ]
	[[ "$output" == *"diff: --output: d.txt: must end in .html"* ]]
	run "$HEAPTAP" diff -o d.html a.txt b.txt
	[ "$status" -eq 2 ]
	[[ "$output" == *"not overwritten without --force"* ]]
}
