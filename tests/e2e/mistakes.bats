#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# Command lines that newcomers type wrong: each is answered in one line, which says what to type.

load ../lib/common

# STATUS, the words behind heaptap, and what the only line on stderr must contain, with | between them
mistakes() {
	cat <<-END
		2|attahc 12|did you mean 'attach'
		2|record ls|did you mean 'heaptap run -w FILE PROGRAM'
		2|trace 12|'heaptap attach PID'
		2|help attahc|did you mean 'attach'
		2|-p 12|as in 'heaptap attach --pid PID|NAME ...'
		2|--fail-on definite|as in 'heaptap run --fail-on RULE ...'
		2|-v|-V prints the version
		2|stop 12|'heaptap console PID' and its command 'stop'
		2|status|did you mean 'heaptap doctor'
		2|run --show-leak-kinds=all ls|type -v, which lists possible leaks
		2|run --call-graph=dwarf ls|type --depth N
		2|run --tool=massif ls|type -o FILE.massif
		4|report massif.out.1|a file of massif: ms_print
		4|report heaptrack.ls.1.gz|a file of heaptrack: heaptrack_print
		4|report ls.heaptrack.zst|a file of heaptrack: heaptrack_print
		4|report ls.heaptrack|a file of heaptrack: heaptrack_print
		4|report perf.data|a file of perf
		4|report packed.zst|compressed by zstd, as files of heaptrack are: heaptrack_print
		4|report r.html|a page: a browser opens it
		4|report r.xml|XML, as a report for JUnit is
		2|run --json ls|type -o FILE.json, or --format json
		2|run --leak-check=full ls|type --fail-on definite
		2|run --trace-children=yes ls|type --follow
		2|run --force -o x.json -o x.json ls|x.json: is named twice
		2|run --force -o x.json -w x.json ls|x.json: is the file of --record, too
		2|run --force -o x.json -o ./x.json ls|x.json: is named twice
		2|run --force -o $BATS_TEST_TMPDIR/x.json -w x.json ls|x.json: is the file of --record, too
		2|run --o x.json ls|may be any of --on-full --output --older --omit
		2|run -q-o x ls|a space belongs between options of one letter
		2|system redis|'heaptap attach redis' traces one
		2|run|needs [--] PROGRAM [ARG...]; see 'heaptap help run'
		2|attach|needs PID|NAME...; see 'heaptap help attach'
		2|run -p 12|needs [--] PROGRAM [ARG...]; see 'heaptap help run'
		2|attach --perturb 12|--perturb: not an option of 'attach' but of 'run'
		2|run --outptu x true|did you mean --output
		2|run -o report.xyz true|unknown ending, must be one of .txt .json
		2|run -t 10x true|must be a duration such as 500ms, 10s or 2h
		2|run --min-size 1Z true|must be a size such as 4096, 64K or 1M
		2|run --depth many true|must be a number
		2|run -b perf true|must be one of auto bpf ptrace
		2|run --fail-on leak true|must be leaks or definite, definite:64K
		2|diff --fail-on growth a b|diff: also growth:64K
		2|report a b|one argument too many
		2|connect board|must begin with ssh://, unix: or tcp://
		2|demo ls|'heaptap run ls' traces a program of yours
		126|run $BATS_TEST_TMPDIR|is a directory
		126|run $BATS_TEST_TMPDIR/data|is it executable
		127|run prog|did you mean ./prog
		127|run VAR=1 ls|heaptap run env VAR=1 ...
		4|attach pid=999999|did you mean 999999
		4|attach /proc/$PID|did you mean $PID
		4|attach 999998,999999|a space belongs between PIDs
		127|run no-such-program-anywhere|no such program in PATH
		4|attach no-such-program-anywhere|no such process
		4|attach $T/leak|no process runs this file; 'heaptap run $T/leak' starts it
		4|attach twirling|did you mean twirling-it
		4|report $BATS_TEST_TMPDIR/data|is no kind of record: 'heaptap report --events' prints
		4|report $BATS_TEST_TMPDIR/report.txt|its JSON (-o FILE.json)
		4|report $BATS_TEST_TMPDIR/saved.json|is no report of heaptap
		4|console $BATS_TEST_TMPDIR/saved.json|'heaptap diff' read reports
		4|report $BATS_TEST_TMPDIR/none|No such file or directory
	END
}

# bats test_tags=full
@test "mistakes: each is answered in one line that says what to type" {
	local status_wanted words text line nr=0
	cp "$T/spin" "$BATS_TEST_TMPDIR/twirling-it"
	start "$BATS_TEST_TMPDIR/twirling-it"
	cd "$BATS_TEST_TMPDIR"
	echo "some words" >data
	echo '{ "schema": "heaptap-report/2" }' >saved.json
	echo 'no leaks; nothing is live' >report.txt
	touch r.heaptap
	cp "$T/nothing" prog
	printf 'desc: --tool=massif\ncmd: ls\n' >massif.out.1
	printf 'x' >heaptrack.ls.1.gz
	printf 'x' >ls.heaptrack.zst
	printf '\x28\xb5\x2f\xfdxyz' >packed.zst
	printf '<!doctype html>' >r.html
	printf '<?xml version="1.0"?>' >r.xml
	printf 'v 10500 3\n' >ls.heaptrack
	printf 'PERFILE2' >perf.data
	while IFS= read -r line; do
		status_wanted=${line%%|*} words=${line#*|}
		text=${words#*|} words=${words%%|*}
		# shellcheck disable=SC2086 # words of a command line
		run -"$status_wanted" --separate-stderr timeout 60 "$HEAPTAP" $words </dev/null
		[ "${#stderr_lines[@]}" -eq 1 ] && [ -z "$output" ] || { echo "$words: $output $stderr"; return 1; }
		[[ "${stderr_lines[0]}" == heaptap:*"$text"* ]] || { echo "$words: $stderr"; return 1; }
		nr=$((nr + 1))
	done < <(mistakes)
	[ "$nr" -gt 40 ]
	"$HEAPTAP" run -q --force -o /dev/null -o /dev/null -w /dev/null true
	run -127 --separate-stderr "$HEAPTAP" run "ls -l"
	[ "$stderr" = "heaptap: run: ls -l: no program has this name: type program and arguments without quotes" ]
	[ "$("$HEAPTAP" --help run)" = "$("$HEAPTAP" help run)" ]
}

# bats test_tags=full
@test "mistakes: a program, a PID or a recording in place of a command does what is meant, and says how" {
	cd "$BATS_TEST_TMPDIR"
	run --separate-stderr "$HEAPTAP" "$T/leak"
	[ "$status" -eq 0 ]
	[ "${stderr_lines[0]}" = "heaptap: 'heaptap $T/leak' is 'heaptap run $T/leak'" ]
	[[ $stderr == *'leaks 10.8 KiB in 32 blocks'* ]]
	# Options behind the program are the program's.
	[ "$("$HEAPTAP" echo -n --all 2>err)" = --all ]
	run -4 --separate-stderr "$HEAPTAP" 12345678
	[ "${stderr_lines[0]}" = "heaptap: 'heaptap 12345678' is 'heaptap attach 12345678'" ]
	"$HEAPTAP" run -q -w r.heaptap -- "$T/leak" 2>err >out
	"$HEAPTAP" r.heaptap 2>err | unbroken | grep -q '^leaks 10.8 KiB'
	"$HEAPTAP" help run >short
	[ "$(grep -c '^  -\|^      --' short)" -le 16 ]
	for option in output record sort top duration interval follow depth fail-on suppressions no-scan why; do
		grep -q -- "--$option" short
	done
	tail -1 short | grep -q "^'heaptap help run --all' lists [0-9]* more options"
	"$HEAPTAP" help run --all >all
	grep -qx 'Leaks and wrong releases:' all
	[ "$(grep -c '^  -\|^      --' all)" -gt 60 ]
}

# bats test_tags=full
@test "mistakes: an option behind the program goes to the program, and heaptap warns" {
	run --separate-stderr "$HEAPTAP" run -q echo --fail-on definite
	[ "$output" = "--fail-on definite" ]
	[[ "$stderr" == *"--fail-on behind echo is an option of that program; options of heaptap come before it"* ]]
	for words in "-- echo --fail-on definite" "echo -w file" "echo --fail-on-all"; do
		# shellcheck disable=SC2086 # words of a command line
		run --separate-stderr "$HEAPTAP" run -q $words
		[[ "$stderr" != *behind* ]]
	done
}

@test "mistakes: without rights: the message has the command that helps" {
	not_by_inline "another user cannot read the file that chooses the source"
	local copy
	id nobody >/dev/null 2>&1 || skip "no user nobody here"
	copy=$(mktemp -d /tmp/heaptap-mistakes-XXXXXX)
	cp "$HEAPTAP" "$copy/heaptap"
	chmod -R a+rX "$copy"
	start "$T/spin"
	run --separate-stderr setpriv --reuid nobody --regid nogroup --clear-groups "$copy/heaptap" attach "$PID"
	rm -r "$copy"
	[ "$status" -eq 3 ]
	for line in "${stderr_lines[@]}"; do [[ "$line" == *"try: sudo heaptap ..."* ]]; done
}
