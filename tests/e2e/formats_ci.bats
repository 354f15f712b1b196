#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# Formats that other tools read: profiles of pprof, results for CI systems, data of heaptrack.

load ../lib/common
load ../lib/remote

setup() { cd "$BATS_TEST_TMPDIR" || return 1; }

# profile FILE: a profile of pprof as JSON
profile() { python3 "$ROOT/tests/lib/pprof.py" "$1"; }

# same_sums JSON PROFILE: each sample type has the sum that the JSON report has
same_sums() {
	jq -c '[.processes[].stacks[]] | [
		(map(.allocs) | add), (map(.alloc_bytes) | add),
		(map(.live_blocks) | add), (map(.live_bytes) | add),
		(map((.definite.blocks // 0) + (.indirect.blocks // 0)) | add),
		(map((.definite.bytes // 0) + (.indirect.bytes // 0)) | add)]' "$1" >expected
	profile "$2" | jq -c '[.samples[].values] | [
		(map(.alloc_objects) | add), (map(.alloc_space) | add),
		(map(.inuse_objects) | add), (map(.inuse_space) | add),
		(map(.leak_objects) | add), (map(.leak_space) | add)]' >found
	diff expected found
}

# by_function FILE: of a report or a profile: live bytes by the innermost function of the stack, sorted
by_function() {
	case $1 in
	*.json) jq -r '.processes[].stacks[] | select(.live_bytes > 0)
		| "\(.frames[0].function) \(.frames[0].line) \(.live_bytes)"' "$1" ;;
	*) profile "$1" | jq -r '.samples[] | select(.values.inuse_space > 0)
		| "\(.frames[0].function) \(.frames[0].line) \(.values.inuse_space)"' ;;
	esac | awk '{ sum[$1 " " $2] += $3 } END { for (i in sum) print i, sum[i] }' | sort
}

# bats test_tags=core,anyone
@test "pprof: the numbers and places of JSON, with verdicts" {
	"$HEAPTAP" run -q -o r.json -o r.pb.gz -- "$T/leak" 2>err >out
	same_sums r.json r.pb.gz
	[ "$(jq '.[5]' found)" -gt 0 ]
	diff <(by_function r.json) <(by_function r.pb.gz)
	profile r.pb.gz | jq -e '.default_sample_type == "inuse_space" and .time_nanos > 1e18 and .duration_nanos > 0
		and ([.samples[].labels.verdict] | unique | contains(["definite", "indirect", "reachable"]))
		and (.mappings | all(.limit > 0 and (.build_id | length) == 40))'
	profile r.pb.gz | jq -e --argjson pid "$(jq '.processes[0].pid' r.json)" \
		'.samples | all(.labels.pid == $pid and .labels.process == "leak")'
}

# bats test_tags=anyone
@test "pprof: inlined functions are lines of one location" {
	"$HEAPTAP" run -q -o r.json -o r.pb.gz -- "$T/leak_cpp" 2>err >out
	jq -e '[.processes[].stacks[].frames[] | select(.inlined)] | length > 0' r.json
	diff <(jq -c '.processes[].stacks[] | [.frames[].function]' r.json | sort -u) \
		<(profile r.pb.gz | jq -c '.samples[] | [.frames[].function]' | sort -u)
	profile r.pb.gz | jq -e '[.samples[].frames[] | select(.system_name | startswith("_Z"))]
		| length > 0 and all(.function | startswith("_Z") | not)'
	start=$(grep -n '^int main' "$ROOT/tests/targets/leak_cpp.cc" | cut -d: -f1)
	profile r.pb.gz | jq -e --argjson start "$start" \
		'[.samples[].frames[] | select(.function == "main").start_line] | unique == [$start]'
}

# bats test_tags=anyone
@test "pprof: several processes in one profile, or a profile each" {
	"$HEAPTAP" run -q -f -o r.json -o r.pb.gz -o 'each-%p.pb.gz' -- "$T/fork" 3 2>err >out
	[ "$(jq '.processes | length' r.json)" -gt 1 ]
	same_sums r.json r.pb.gz
	diff <(jq -r '.processes[] | select(.totals.allocs > 0).pid' r.json | sort) \
		<(profile r.pb.gz | jq -r '.samples[].labels.pid' | sort -u)
	[ "$(ls each-*.pb.gz | wc -l)" -eq "$(jq '.processes | length' r.json)" ]
}

# bats test_tags=anyone
@test "pprof: a recording always makes the same file" {
	"$HEAPTAP" run -q -w r.heaptap -- "$T/leak" 2>err >out
	"$HEAPTAP" report -q -o a.pb.gz -o r.json r.heaptap
	"$HEAPTAP" report -q -o b.pb.gz r.heaptap
	cmp a.pb.gz b.pb.gz
	# The time in the head of gzip would make files of different seconds differ.
	[ "$(od -An -tx1 -j4 -N4 a.pb.gz | tr -d ' ')" = 00000000 ]
	same_sums r.json a.pb.gz
	profile a.pb.gz | jq -e '.time_nanos > 1e18'
}

# bats test_tags=anyone
@test "pprof: losses are comments" {
	printf '%s\n' 'process 77 prog /nowhere/prog' 'alloc 77 1 malloc 0x1000 100 2 1000000000' \
		'lost 77 1 2 3 4' 'exit 77 0' >events.txt
	run "$HEAPTAP" report -q -o r.json -o r.pb.gz events.txt
	[ "$status" -eq 5 ]
	same_sums r.json r.pb.gz
	profile r.pb.gz | jq -e '.comments | any(test("lost: 1 allocations, 2 frees"))'
}

# bats test_tags=anyone
@test "pprof: a terminal gets no compressed data" {
	"$HEAPTAP" run -q -w r.heaptap -- "$T/leak" 2>err >out
	run script -qec "'$HEAPTAP' report --format pprof r.heaptap" /dev/null
	[ "$status" -eq 2 ]
	[[ $output == *"no text for a terminal: name a file"* ]]
	"$HEAPTAP" report -q --format pprof r.heaptap >r.pb.gz
	profile r.pb.gz | jq -e '.mappings[0].filename | endswith("/leak")'
}

@test "pprof: go reads it" {
	command -v go >/dev/null || skip "no go here: its pprof is not tried"
	"$HEAPTAP" run -q -o r.json -o r.pb.gz -- "$T/leak" 2>err >out
	HOME=$PWD go tool pprof -top -unit=B -sample_index=leak_space r.pb.gz >top
	grep -q "^ *768B .* load_settings" top
	grep -q "^ *10240B .* open_session" top
	grep -qx "File: leak" top
	HOME=$PWD go tool pprof -raw r.pb.gz >raw
	grep -q '\[FN\]\[FL\]\[LN\]\[IN\]' raw
}

# leaking: the counts of leaks in r.json as "definite possible indirect"
leaking() {
	jq -r '[.processes[].stacks[]] | [(map(select(.definite.blocks > 0)) | length),
		(map(select(.possible.blocks > 0)) | length), (map(select(.indirect.blocks > 0)) | length)] | @tsv' r.json
}

# bats test_tags=core
@test "CI: junit, sarif and annotations have each leak of JSON" {
	cd "$ROOT"
	local out=$BATS_TEST_TMPDIR definite possible indirect
	"$HEAPTAP" run -q --annotate github -o "$out/r.json" -o "$out/r.junit.xml" -o "$out/r.sarif" -- "$T/leak" \
		2>"$out/err" >"$out/out"
	cd "$out"
	read -r definite possible indirect <<<"$(leaking)"
	[ "$definite" -gt 0 ] && [ "$indirect" -gt 0 ]
	xmllint --noout r.junit.xml
	[ "$(grep -c '<failure type="definite-leak"' r.junit.xml)" -eq "$definite" ]
	[ "$(grep -c '<skipped' r.junit.xml)" -eq "$possible" ]
	xmllint --xpath "string(//testcase[contains(@name, 'load_settings')]/@file)" r.junit.xml |
		grep -qx tests/targets/leak.c
	xmllint --xpath "string(//testcase[contains(@name, 'load_settings')]/failure)" r.junit.xml |
		grep -q 'main at tests/targets/leak.c:'
	xmllint --xpath "string(//testcase[@name = 'no wrong releases']/@classname)" r.junit.xml | grep -qx leak
	python3 "$ROOT/tests/lib/sarif.py" r.sarif
	jq -e --argjson n "$((definite + possible + indirect))" '.runs[0].results | length == $n' r.sarif
	jq -e '[.runs[0].results[] | select(.ruleId == "definite-leak").properties.bytes] | add' r.sarif |
		grep -qx "$(jq '.processes[0].scan.definite.bytes' r.json)"
	jq -e '.runs[0].results | any(.locations[0].physicalLocation | .artifactLocation.uri == "tests/targets/leak.c"
		and .artifactLocation.uriBaseId == "SRCROOT" and .region.startLine == 23)' r.sarif
	jq -e '.runs[0].invocations[0].executionSuccessful' r.sarif
	[ "$(grep -c '^::error title=definite leak in .*,file=tests/targets/leak.c,line=' out)" -eq "$definite" ]
	grep -q '^served 200 requests' out # of the program itself
}

# bats test_tags=anyone
@test "CI: wrong releases, each once" {
	"$HEAPTAP" run -q --no-scan --annotate github -o r.json -o r.junit.xml -o r.sarif -- "$T/misuse" 2>err >out
	n=$(jq '.processes[0].errors | length' r.json)
	[ "$n" -gt 0 ]
	[ "$(grep -c '^::error ' out)" -eq "$n" ]
	[ "$(xmllint --xpath 'count(//failure)' r.junit.xml)" -eq "$n" ]
	xmllint --xpath '//testcase[@name = "no leaks"]/skipped' r.junit.xml
	python3 "$ROOT/tests/lib/sarif.py" r.sarif
	diff <(jq -r '.processes[0].errors[].kind' r.json | sort) <(jq -r '.runs[0].results[].ruleId' r.sarif | sort)
	jq -e '.runs[0].results | any(.stacks[].message.text == "allocated by")' r.sarif
}

# bats test_tags=anyone
@test "CI: no verdict is an error, not a success" {
	printf '%s\n' 'process 77 prog /nowhere/prog' 'alloc 77 1 malloc 0x1000 100 2 1000000000' \
		'lost 77 0 2 0 0' 'exit 77 0' >events.txt
	run "$HEAPTAP" report -q -o r.junit.xml -o r.sarif --annotate github events.txt
	[ "$status" -eq 5 ]
	[[ $output == *"::warning title=heaptap::events were lost: 0 allocations, 2 frees (pid 77)"* ]]
	[ "$(xmllint --xpath 'count(//error)' r.junit.xml)" -eq 1 ]
	python3 "$ROOT/tests/lib/sarif.py" r.sarif
	jq -e '.runs[0].invocations[0].executionSuccessful == false' r.sarif
}

# bats test_tags=anyone
@test "CI: a clean program passes" {
	printf '%s\n' '#include <stdlib.h>' 'int main(void) { void *volatile p = malloc(9); free(p); return 0; }' >clean.c
	gcc -g -o clean clean.c
	"$HEAPTAP" run -q --annotate github -o r.junit.xml -o r.sarif -- ./clean 2>err >out
	[ ! -s out ]
	[ "$(xmllint --xpath 'count(//testcase[not(*)])' r.junit.xml)" -eq 2 ]
	[ "$(xmllint --xpath 'count(//testcase)' r.junit.xml)" -eq 2 ]
	jq -e '.runs[0] | .results == [] and .invocations[0].executionSuccessful' r.sarif
}

# A program with a leak in functions and in a file whose names try to break out of each format.
hostile_program() {
	local name=$'</x>]]>"\'&\n::error::%0A\e[2J'
	local long
	long=$(head -c 100000 /dev/zero | tr '\0' A)
	# shellcheck disable=SC1003
	printf '%s\n' '#include <stdlib.h>' 'void evil(void); void endless(void);' \
		'#line 7 "</x>]]>\"'"'"'&%0A::error::,x\n.c"' \
		'int main(void) { evil(); endless(); return 0; }' >main.c
	printf '%s\n' '#include <stdlib.h>' 'void *volatile gone;' \
		'void endless(void) { gone = malloc(7); gone = 0; }' \
		'void evil(void) { gone = malloc(9); gone = 0; endless(); }' >evil.c
	gcc -g -c main.c
	gcc -O0 -c evil.c
	printf 'endless %s\n' "$long" >names
	objcopy --redefine-syms names evil.o
	objcopy --redefine-syms names main.o
	objcopy --redefine-sym "evil=$name" evil.o
	objcopy --redefine-sym "evil=$name" main.o
	gcc -o hostile main.o evil.o
}

# bats test_tags=anyone,full
@test "CI, pprof: names of a target do not break out of a format" {
	hostile_program
	"$HEAPTAP" run -q --annotate github -o r.json -o r.junit.xml -o r.sarif -o r.pb.gz -- ./hostile 2>err >out
	jq -e '[.processes[0].stacks[].frames[].function] | any(startswith("</x>")) and any(test("^A{4000}"))' r.json
	[ "$(grep -vc '^::' out)" -eq 0 ]
	[ "$(grep -vc '^::notice ' out)" -eq "$(jq '[.processes[0].stacks[] | select(.definite.blocks + .possible.blocks > 0)] | length' r.json)" ]
	xmllint --noout --huge r.junit.xml
	[ "$(xmllint --huge --xpath 'count(//x)' r.junit.xml)" -eq 0 ]
	python3 "$ROOT/tests/lib/sarif.py" r.sarif
	same_sums r.json r.pb.gz
	profile r.pb.gz | jq -e '[.samples[].frames[].function] | any(startswith("</x>]]>\"\u0027&\\x0a"))'
	fails grep -lP '\e' out r.junit.xml r.sarif
}

# printed FILE: what heaptrack_print finds in it as "calls peak leaked", bytes exact; nothing it could not read
printed() {
	heaptrack_print --disable-builtin-suppressions -f "$1" -F leaked --flamegraph-cost-type leaked >print 2>print.err
	[ ! -s print.err ] || { cat print.err >&2; return 1; }
	heaptrack_print --disable-builtin-suppressions -f "$1" -F allocations --flamegraph-cost-type allocations \
		>/dev/null
	heaptrack_print --disable-builtin-suppressions -f "$1" -F peak --flamegraph-cost-type peak >/dev/null
	echo "$(awk '/^calls to allocation functions:/ { print $5 }' print)" \
		"$(awk '{ sum += $NF } END { print sum + 0 }' peak)" \
		"$(awk '{ sum += $NF } END { print sum + 0 }' leaked)"
}

with_heaptrack() { command -v heaptrack_print >/dev/null || skip "no heaptrack_print here"; }

# of_totals JSON: the same
of_totals() { jq -r '.processes[0].totals | "\(.allocs) \(.peak_bytes) \(.live_bytes)"' "$1"; }

# bats test_tags=anyone,full
@test "heaptrack: calls, peak and leaks of JSON, live and from a recording" {
	with_heaptrack
	for target in leak leak_cpp threads; do
		"$HEAPTAP" run -q --force -w r.heaptap -o r.json -o r.heaptrack.gz -- "$T/$target" 2>err >out
		[ "$(printed r.heaptrack.gz)" = "$(of_totals r.json)" ] ||
			{ echo "$target: $(printed r.heaptrack.gz), not $(of_totals r.json)"; return 1; }
		"$HEAPTAP" report -q --force -o s.heaptrack.gz -o s.heaptrack -o s.heaptrack.zst r.heaptap
		zcat s.heaptrack.gz | cmp - s.heaptrack
		zstd -qdc s.heaptrack.zst | cmp - s.heaptrack
		[ "$(printed s.heaptrack.zst)" = "$(of_totals r.json)" ]
		[ "$(printed s.heaptrack)" = "$(of_totals r.json)" ]
		# Times of a recording are rounded.
		diff <(zcat s.heaptrack.gz | grep -v ^c) <(zcat r.heaptrack.gz | grep -v ^c)
		zcat s.heaptrack.gz | grep -q ^c
	done
	"$HEAPTAP" run -q --force -o r.heaptrack.gz -- "$T/leak" 2>err >out
	printed r.heaptrack.gz
	grep -q 'load_settings.* 768$' leaked
	grep -q 'open_session.*copy_name.* 480$' leaked
}

# bats test_tags=full
@test "heaptrack: mappings that go in pieces, blocks from before an attach" {
	with_heaptrack
	"$HEAPTAP" run -q --mmap -o r.json -o r.heaptrack.gz -- "$T/mmap" 2>err >out
	[ "$(printed r.heaptrack.gz)" = "$(of_totals r.json)" ]
	spinning
	attached -o a.heaptrack.gz "$TARGET"
	works "$TARGET"
	detach
	[ "$(field .totals.allocs)" -gt 0 ]
	[ "$(printed a.heaptrack.gz)" = "$(of_totals "$report")" ]
	zcat a.heaptrack.gz | sed -n 3p | grep -qx A
}

# bats test_tags=full
@test "heaptrack: --between has the blocks of the span only" {
	with_heaptrack
	list_of_spans >events.txt
	"$HEAPTAP" report -q --between from,to -o r.json -o r.heaptrack.gz events.txt
	[ "$(of_totals r.json)" = "2 60 50" ]
	[ "$(printed r.heaptrack.gz)" = "2 60 50" ]
}

list_of_spans() {
	printf '%s\n' 'process 77 prog /nowhere/prog' 'alloc 77 1 malloc 0x1000 100 0 1000000000' \
		'mark 1500000000 from' 'alloc 77 1 calloc 0x2000 50 0 2000000000' \
		'alloc 77 1 malloc 0x3000 10 0 2100000000' 'free 77 1 free 0x1000 0 2200000000' \
		'free 77 1 free 0x3000 0 2300000000' 'mark 2500000000 to' \
		'alloc 77 1 malloc 0x4000 7 0 3000000000' 'exit 77 0'
}

# bats test_tags=full
@test "heaptrack: children of fork, in one file or in a file each" {
	with_heaptrack
	"$HEAPTAP" run -q -f -o r.json -o r.heaptrack.gz -o 'each-%p.heaptrack.gz' -- "$T/fork" 3 2>err >out
	[ "$(jq '.processes | length' r.json)" -gt 1 ]
	read -r calls _ leaked <<<"$(printed r.heaptrack.gz)"
	[ "$calls $leaked" = "$(jq -r '[.processes[].totals] | "\(map(.allocs) | add) \(map(.live_bytes) | add)"' r.json)" ]
	for pid in $(jq '.processes[].pid' r.json); do
		[ "$(printed "each-$pid.heaptrack.gz")" = "$(jq -r --argjson pid "$pid" \
			'.processes[] | select(.pid == $pid).totals | "\(.allocs) \(.peak_bytes) \(.live_bytes)"' r.json)" ]
	done
}

@test "heaptrack: a tape that does not fit on the disk is no report" {
	run bash -c "ulimit -f 1; trap '' XFSZ; '$HEAPTAP' run -q -o r.heaptrack.gz -- '$T/leak'"
	[ ! -e r.heaptrack.gz ] && [ "$status" -eq 5 ]
	[[ $output == *"r.heaptrack.gz: File too large"* ]]
}

# bats test_tags=full
@test "heaptrack, pprof, CI: of a program on another machine" {
	with_heaptrack
	serving --wait -- "$T/leak"
	watched --annotate github -o r.heaptrack.gz -o r.pb.gz -o r.junit.xml "unix:$SOCKET"
	[ "$status" -eq 0 ] || { cat "$err"; return 1; }
	ended "$SERVE" 0
	[ "$(printed r.heaptrack.gz)" = "$(of_totals "$report")" ]
	same_sums "$report" r.pb.gz
	[ "$(xmllint --xpath 'count(//failure)' r.junit.xml)" -eq 2 ]
}

# bats test_tags=full
@test "heaptrack, pprof: a verdict on a process that another heaptap traces has the live blocks" {
	with_heaptrack
	spinning
	attached "$TARGET"
	works "$TARGET"
	"$HEAPTAP" scan -q -o r.json -o r.heaptrack.gz -o r.pb.gz "$TARGET"
	detach
	same_sums r.json r.pb.gz
	read -r _ _ leaked <<<"$(printed r.heaptrack.gz)"
	[ "$leaked" -eq "$(jq '.processes[0].totals.live_bytes' r.json)" ]
}
