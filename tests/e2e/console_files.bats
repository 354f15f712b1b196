#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# The console: output of commands in files, lists of blocks for other programs.

load ../lib/common
load ../lib/console

setup() {
	export HEAPTAP_RUN_DIR=$BATS_TEST_TMPDIR/run XDG_STATE_HOME=$BATS_TEST_TMPDIR/state
	STARTED=()
	cd "$BATS_TEST_TMPDIR" || return 1
	local made=$BATS_FILE_TMPDIR/r.heaptap
	[ -f "$made" ] || "$HEAPTAP" run -q -w "$made" "$T/leak_kinds" >/dev/null 2>&1
	cp "$made" r.heaptap
}

# console -x CMD...: on the recording; $output, $status
console() { run "$HEAPTAP" console -q r.heaptap "$@"; }

# bats test_tags=core
@test "files: > and >> take the output of a command, as the terminal would have it" {
	"$HEAPTAP" console -q r.heaptap -x status -x 'top 3' >wanted
	console -x 'status > a' -x 'top 3 >> a'
	[ "$status" -eq 0 ]
	[ -z "$output" ]
	diff wanted a
	[ "$(stat -c %a a)" = 600 ]
	[ -s wanted ]
	console -x 'status >"a b"'
	[ "$status" -eq 0 ]
	[ -s 'a b' ]
	console -x 'status > /dev/null'
	[ "$status" -eq 0 ]
}

@test "files: one that is there is kept without force, and one is made only by a command that worked" {
	echo mine >a
	console -x 'status > a'
	[ "$status" -eq 2 ]
	has 'not overwritten'
	[ "$(cat a)" = mine ]
	ln -s a link
	console -x 'set force on' -x 'status > link' -x 'status >> link'
	[ "$status" -eq 2 ]
	[ "$(cat a)" = mine ]
	console -x 'set force on' -x 'status > a'
	[ "$status" -eq 0 ]
	grep -q exited a
	console -x 'caller 99999 > b' -x 'top nonsense > b' -x 'status >' -x 'status > b c'
	[ "$status" -eq 2 ]
	[ "${#lines[@]}" -eq 4 ]
	[ ! -e b ]
	console -x 'status > ./none/b'
	[ "$status" -ne 0 ]
	[ "${#lines[@]}" -eq 1 ]
}

@test "files: a full disk leaves no half of a file" {
	[ "$(id -u)" -eq 0 ] || skip "not root: cannot mount"
	mkdir small
	mount -t tmpfs -o size=4k none small || skip "cannot mount a tmpfs"
	head -c 4096 /dev/zero >small/full
	console -x 'status > small/a'
	left=$(ls small)
	umount small
	[ "$status" -eq 5 ]
	has 'No space left'
	[ "$left" = full ]
}

@test "files: another user's file is not appended to (S9)" {
	[ "$(id -u)" -eq 0 ] || skip "not root: cannot give a file away"
	echo theirs >a
	chown nobody a
	console -x 'status >> a'
	[ "$status" -eq 2 ]
	[ "$(cat a)" = theirs ]
}

# bats test_tags=core
@test "files: blocks as CSV and JSON are those of the text" {
	console -x 'blocks > b.csv' -x 'blocks > b.json' -x 'blocks 0 0 > b.txt'
	[ "$status" -eq 0 ]
	python3 - b.csv b.json b.txt <<-'PYTHON'
		import csv, json, sys
		text = {}
		for line in open(sys.argv[3]):
		    words = line.split()
		    if words[0].startswith("0x"):
		        text[words[0]] = int(words[1].replace(",", "")) if words[2] == "B" else None
		rows = list(csv.DictReader(open(sys.argv[1])))
		book = json.load(open(sys.argv[2]))
		assert book["schema"] == "heaptap-blocks/1"
		blocks = book["processes"][0]["blocks"]
		assert len(text) > 20 and len(rows) == len(text) == len(blocks)
		assert [r["address"] for r in rows] == [b["address"] for b in blocks] == list(text)
		assert [int(r["size"]) for r in rows] == [b["size"] for b in blocks]
		assert all(s in (None, int(r["size"])) for s, r in zip(text.values(), rows))
		stacks = {s["caller"]: s for s in book["processes"][0]["stacks"]}
		for r, b in zip(rows, blocks):
		    stack = stacks[b["caller"]]
		    assert int(r["caller"]) == b["caller"] and r["function"] == stack["function"]
		    assert r["stack"].split(" < ")[0] == stack["frames"][0]["function"]
		    assert r["tid"] == str(b["tid"])
		    assert int(r["age_ns"]) == b["age_ns"] and int(r["pid"]) == book["processes"][0]["pid"]
		assert any(r["tid"] == r["pid"] for r in rows)
	PYTHON
}

# bats test_tags=full
@test "files: all live blocks without the console, with threads and whole stacks" {
	"$HEAPTAP" report -q -n 1 -o l.blocks.json -o l.blocks.csv r.heaptap
	console -x 'blocks > b.json' -x 'set verbose on' -x 'blocks > v.csv'
	cmp l.blocks.csv v.csv
	jq -S .processes b.json | cmp - <(jq -S .processes l.blocks.json)
	[ "$(jq '.processes[0].blocks | length' l.blocks.json)" -gt 20 ]
	grep -q ' < main < ' l.blocks.csv
	"$HEAPTAP" report -q -o l.json r.heaptap
	[ "$(jq '[.processes[0].blocks[].size] | add' l.blocks.json)" -eq "$(jq '.processes[0].totals.live_bytes' l.json)" ]
	"$HEAPTAP" run -q --no-scan -o run.blocks.csv -- "$T/leak" >/dev/null
	[ "$(wc -l <run.blocks.csv)" -gt 20 ]
}

@test "files: leaked blocks: verdict, address, size, age and stack of each" {
	"$HEAPTAP" run -q -o l.json -o l.blocks.csv -o l.blocks.json -- "$T/leak" >/dev/null
	for verdict in definite indirect possible reachable; do
		wanted=$(jq ".processes[0].scan.$verdict.blocks" l.json)
		[ "$(jq --arg v $verdict '[.processes[0].blocks[] | select(.verdict == $v)] | length' l.blocks.json)" -eq "$wanted" ]
		[ "$(grep -c ",$verdict," l.blocks.csv || true)" -eq "$wanted" ]
	done
	[ "$(jq '[.processes[0].blocks[] | select(.verdict == "definite").size] | add' l.blocks.json)" -eq \
		"$(jq '.processes[0].scan.definite.bytes' l.json)" ]
	# A recording has sums only.
	console -x 'blocks leaked'
	has "no verdict on blocks"
}

@test "files: blocks with the whole stack, some blocks, a report in its format" {
	console -x 'blocks 0 3 > b.csv' -x 'set verbose on' -x 'blocks 0 3 > v.csv'
	[ "$(wc -l <b.csv)" -eq 4 ]
	grep -q ' < main < ' v.csv
	run ! grep -q ' < main < ' b.csv
	console -x 'report > r.json'
	jq -e '.schema == "heaptap-report/2"' r.json
	"$HEAPTAP" report -q -o wanted.json r.heaptap
	cmp r.json wanted.json
}

@test "files: long output on a terminal goes through the pager" {
	printf '#!/bin/sh\nsed "s/^/paged: /"\n' >pager
	chmod +x pager
	PAGER="$PWD/pager" TALK_ROWS=10 "$ROOT/tests/lib/talk.py" "$HEAPTAP" console r.heaptap <<-'SCRIPT'
		expect heaptap> 
		send help
		expect paged:   help
		expect paged:   quit
		expect heaptap> 
		send help quit
		expect leave; processes
		expect heaptap> 
		send set pager off
		expect heaptap> 
		send help
		expect leave; processes
		expect heaptap> 
		send quit
		end 0
	SCRIPT
	# The user leaves early; there is no such pager.
	for pager in 'head -n 1' true ./no-such-pager; do
		PAGER=$pager TALK_ROWS=10 "$ROOT/tests/lib/talk.py" "$HEAPTAP" console r.heaptap <<-'SCRIPT'
			expect heaptap> 
			send help
			expect heaptap> 
			send help quit
			expect leave; processes
			expect heaptap> 
			send quit
			end 0
		SCRIPT
	done
}
