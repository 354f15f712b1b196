#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# The answer: every output begins with the same sentence, and names the same function of the program's own code.

load ../lib/common

setup() {
	cd "$BATS_TEST_TMPDIR" || return 1
	STARTED=()
}

teardown() { end_started; }

# same_answer PROGRAM [ARG...]: runs it; all outputs have the sentence of JSON, which is then in $verdict, and its places
same_answer() {
	local name comm
	comm=$(basename "$1" | cut -c 1-15)
	"$HEAPTAP" run -q --force -o r.txt -o r.json -o r.compact.json -o r.html -o r.junit.xml -o r.sarif -o r.github \
		-w r.heaptap -- "$@" >out
	verdict=$(jq -r '.processes[0].verdict' r.json)
	# A recording has the same answer, and so has the console.
	"$HEAPTAP" console -q -x report r.heaptap >console.txt
	for name in r.txt console.txt; do
		[[ "$(unbroken <"$name")" == "$verdict $comm (pid "* ]] || { echo "$name: $(head -3 "$name"), not $verdict"; return 1; }
	done
	[ "$(jq -r '.processes[0].verdict' r.compact.json)" = "$verdict" ]
	[ "$(jq -r '.runs[0].properties.verdicts[0].text' r.sarif)" = "$verdict" ]
	[ "$(xmllint --xpath 'string(//property[@name="verdict"]/@value)' r.junit.xml)" = "$verdict" ]
	grep -F "$verdict" r.github | grep -q '^::notice title=heaptap::'
	grep -qF "\"verdict\":\"$verdict\"" <(tr -d '\n' <r.html | sed 's/"verdict": "/"verdict":"/')
}

# same_places: the outputs that same_answer has made name the same functions, which are in the file places then
same_places() {
	local name
	# The places of leaks: function, and file and line where they are known.
	jq -r '.processes[0].stacks[] | select(.definite.blocks > 0) | .place | sub(" [(].*"; "")' r.json | sort >places
	jq -r '.runs[0].results[] | select(.ruleId == "definite-leak")
		| .locations[0].logicalLocations[0].fullyQualifiedName | sub("[(].*"; "")' r.sarif | sort | diff places -
	jq -r '.processes[0].stacks[] | select(.definite.blocks > 0) | .place | sub(" [(].*"; "")' r.compact.json | sort | diff places -
	while read -r name; do
		grep -qF "title=definite leak in $name" r.github
		xmllint --xpath '//testcase/@name' r.junit.xml | grep -qF "definite leak in $name"
	done <places
}

# bats test_tags=core
@test "answer: all outputs have one sentence and one place: C, C++, wrappers, leaks in libraries, none at all" {
	same_answer "$T/leak"
	[[ $verdict == 'leaks 10.8 KiB in 32 blocks, and with them 480 B in 20, most of it from open_session (leak.c:'*')' ]]
	same_places
	same_answer "$T/leak_kinds"
	same_places
	[[ $verdict == 'leaks 1,442 B in 10 blocks, and with them 848 B in 13, the largest part from '*' (leak_kinds.c:'*')' ]] || { echo "$verdict"; return 1; }
	same_answer "$T/lost_in_std"
	same_places
	[[ $verdict == 'leaks 39.4 KiB in 8 blocks, most of it from lose_vectors (lost_in_std.cc:'*')' ]]
	diff <(printf '%s\n' lose_by_wrapper lose_vectors) <(sort -u places)
	same_answer "$T/leak_cpp"
	same_places
	same_answer "$T/leak_vector"
	same_places
	same_answer "$T/step"
	[[ $verdict == 'no leaks; '* ]]
}

@test "answer: without symbols the place is an offset in the program's own file" {
	strip -o bare "$T/lost_in_std"
	same_answer ./bare
	[[ $verdict == 'leaks 39.4 KiB in 8 blocks, most of it from bare+0x'* ]]
}

@test "answer: names of 10,000 characters are cut" {
	local long
	long=$(printf 'f%.0s' {1..10000})
	printf '#include <stdlib.h>\nvoid *volatile p;\n__attribute__((noinline)) void %s(void) { p = malloc(99); p = 0; }\nint main(void) { %s(); }\n' \
		"$long" "$long" >long.c
	cc -g -O1 -o long long.c
	same_answer ./long
	[[ $verdict == 'leaks 99 B in 1 block, from fff'*'... (long.c:3)' ]]
	[ "${#verdict}" -lt 300 ]
}

@test "answer: who attaches reads that older blocks were not seen, and who grows" {
	start "$T/grow" 1000000 1
	"$HEAPTAP" attach -q -t 4s -o r.txt -o r.json "$PID"
	verdict=$(jq -r '.processes[0].verdict' r.json)
	[[ $verdict == "no leaks among blocks since the attach (older ones: heaptap scan $PID); grows by "*"iB/min,"*" from keep_one (grow.c:"*"); "*" live in "* ]] ||
		{ echo "$verdict"; return 1; }
	[[ "$(unbroken <r.txt)" == "$verdict grow (pid "* ]]
}
