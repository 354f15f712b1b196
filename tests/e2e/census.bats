#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# heaptap scan of a process that nobody traces: its blocks from the books of the allocator.

load ../lib/common

# counted PROGRAM [ARGS]: start it with a pipe, and wait until it has printed its truth; its PID is in $TARGET
counted() {
	mkfifo "$BATS_TEST_TMPDIR/lines"
	truth=$BATS_TEST_TMPDIR/truth
	rm -f "$truth"
	"$@" <"$BATS_TEST_TMPDIR/lines" >"$truth" 2>/dev/null &
	TARGET=$!
	STARTED+=("$TARGET")
	exec 7>"$BATS_TEST_TMPDIR/lines"
	wait_for grep -qs '</malloc>' "$truth"
}

# census [OPTIONS]: of $TARGET, as text in $text and as a list in $list
census() {
	text=$BATS_TEST_TMPDIR/census.txt
	list=$BATS_TEST_TMPDIR/census.csv
	"$HEAPTAP" scan -q --force -o "$text" -o "$list" "$@" "$TARGET"
}

# equals_truth MOST: the live blocks are those that the program has, with their sizes, and at most MOST of the C library
equals_truth() {
	awk '$1 == "block" { printf "%s,%s\n", $2, $3 }' "$truth" | sort >"$BATS_TEST_TMPDIR/wanted"
	awk -F, '$3 == "live" { printf "%s,%s\n", $1, $2 }' "$list" | sort >"$BATS_TEST_TMPDIR/have"
	[ "$(wc -l <"$BATS_TEST_TMPDIR/wanted")" -gt 1000 ]
	[ -z "$(comm -23 "$BATS_TEST_TMPDIR/wanted" "$BATS_TEST_TMPDIR/have" | head -3 | tee /dev/stderr)" ]
	[ "$(comm -13 "$BATS_TEST_TMPDIR/wanted" "$BATS_TEST_TMPDIR/have" | tee /dev/stderr | wc -l)" -le "$1" ]
}

# bats test_tags=core
@test "census: the blocks of a program with three threads are those that it has" {
	counted "$T/census" 1 3 4000
	census
	equals_truth 5
	[ "$(grep -c ',cached,' "$list")" -gt 50 ]
	! grep -q ',definite' "$list"
	! grep -q 'Does not add up' "$text"
	untouched "$TARGET"
}

@test "census: of 64-bit programs, static, stripped and at a fixed address" {
	for program in census-static census-static-pie census-nopie census-stripped; do
		[ -x "$T/$program" ] || skip "$program was not built here: see make targets"
		rm -f "$BATS_TEST_TMPDIR/lines"
		counted "$T/$program" 2 2 2000
		census
		equals_truth 12
		! grep -q 'Does not add up' "$text"
		exec 7>&-
		ended "$TARGET" 0
	done
}

@test "census: of 32-bit programs" {
	for program in census-32 census-32-static; do
		[ -x "$T/$program" ] || skip "$program was not built here: see make targets"
		rm -f "$BATS_TEST_TMPDIR/lines"
		counted "$T/$program" 3 4 2000
		census
		equals_truth 12
		! grep -q 'Does not add up' "$text"
		exec 7>&-
		ended "$TARGET" 0
	done
}

# told JQ VALUE: of the census in JSON
told() {
	local have
	have=$(jq -r "$1" "$json")
	[ "$have" = "$2" ] || { echo "census: $1 is $have, not $2"; return 1; }
}

# with_json [OPTIONS]: a census of $TARGET as JSON in $json
with_json() {
	json=$BATS_TEST_TMPDIR/census.json
	"$HEAPTAP" scan -q --force -o "$json" "$@" "$TARGET"
}

# of_malloc TYPE FIELD: of the sums at the end of what malloc_info() has printed
of_malloc() { sed -n "s/.*type=\"$1\".* $2=\"\([0-9]*\)\".*/\1/p" "$truth" | tail -1; }

@test "census: the sums are those that malloc itself gives" {
	for seed in 1 2 3; do
		rm -f "$BATS_TEST_TMPDIR/lines"
		counted "$T/census" "$seed" 4 5000
		with_json
		told .schema heaptap-census/1
		told '[.arenas[].system_bytes] | add' "$(of_malloc current size)"
		# malloc counts the top of each arena as free.
		told '[.arenas[] | .bins.blocks + 1] | add' "$(of_malloc rest count)"
		told '[.arenas[] | .fast.blocks] | add' "$(of_malloc fast count)"
		told .mapped.blocks "$(of_malloc mmap count)"
		told .mapped.mapping_bytes "$(of_malloc mmap size)"
		told .nr_notes 0
		# Each byte of the arenas has one owner.
		told '[.arenas[] | .live.bytes + .bins.bytes + .fast.bytes + .cached.bytes + .top_bytes + .other_bytes == .system_bytes] | all' true
		exec 7>&-
		ended "$TARGET" 0
	done
}

@test "census: resident memory adds up to smaps" {
	counted "$T/census" 1 3 4000
	with_json
	told '.resident | .allocator + .stacks + .files + .shared + .anonymous == .rss' true
	told .resident.rss "$(awk '/^Rss:/ { sum += $2 } END { print sum * 1024 }' "/proc/$TARGET/smaps")"
	told '.resident.allocator > 1000000' true
	told '.resident.allocator <= ([.arenas[].system_bytes] | add) + .mapped.mapping_bytes + 8192 * (.arenas | length)' true
	told '.resident.stacks > 0' true
	told '.resident.page_tables > 0' true
}

@test "census: classes of C++ objects, also in a stripped program" {
	strip -o "$BATS_TEST_TMPDIR/stripped" "$T/census_types"
	for program in "$T/census_types" "$BATS_TEST_TMPDIR/stripped"; do
		rm -f "$BATS_TEST_TMPDIR/lines"
		counted "$program"
		with_json
		told '.types[] | select(.name == "zoo::Cat") | .live.blocks' 310
		told '.types[] | select(.name == "zoo::Cat") | .lost.blocks' 9
		told '.types[] | select(.name == "zoo::Dog") | .live.blocks' 21
		told '.types[] | select(.name | startswith("zoo::Cage<")) | .live.blocks' 70
		told .scan.definite.blocks 9
		told '.leaks | length' 9
		run "$HEAPTAP" scan -n 2 "$TARGET"
		[[ $output == *'Types of live blocks'*' 310 '*' 9  class zoo::Cat'* ]]
		exec 7>&-
		ended "$TARGET" 0
	done
}

@test "census: --why names the variable that holds a block, and says who is no block" {
	local addr
	counted "$T/census_types"
	addr=$(awk '$1 == "favourite" { print $2 }' "$truth")
	with_json --why "$addr"
	told .why.verdict reachable
	told .why.root.kind data
	told .why.root.name favourite
	told '.why.chain | length' 1
	# Any address in it does.
	run "$HEAPTAP" scan --why "$(printf '0x%x' $((addr + 40)))" "$TARGET"
	[[ $output == *'in a block of 120 B, reachable: held by data favourite in '*'census_types'* ]]
	run "$HEAPTAP" scan --why 0x10000 "$TARGET"
	[[ $output == *'0x10000 is in no block of the allocator'* ]]
	addr=$(jq -r '.leaks[0].address' "$json")
	with_json --why "$addr"
	told .why.root.kind lost
	told .why.verdict definite
}

@test "census: many blocks, of many threads, again and again" {
	counted "$T/census" 5 8 30000
	for _ in 1 2 3; do
		census
		equals_truth 16
	done
}

@test "census: verdicts without a trace are those of memcheck" {
	kinds
	built
	TARGET=$TARGET
	census
	[ "$(grep -c ',definite' "$list")" -eq 10 ]
	[ "$(grep -c ',indirect' "$list")" -eq 13 ]
	[[ $(cat "$text") == 'leaks '*' in 10 blocks; '* ]]
	run "$HEAPTAP" scan --fail-on definite "$TARGET"
	[ "$status" -eq 1 ]
	run "$HEAPTAP" scan --fail-on definite:1M "$TARGET"
	[ "$status" -eq 0 ]
	run "$HEAPTAP" scan --fail-on growth:5% "$TARGET"
	[ "$status" -eq 6 ]
	untouched "$TARGET"
	tell
	ended "$TARGET" 3
}

@test "census: a process with another allocator, a pause that is too short, a format that a census has not" {
	counted "$T/census" 1 2 2000
	run --separate-stderr "$HEAPTAP" scan --max-pause 1us "$TARGET"
	[ "$status" -ge 3 ]
	[[ $stderr == *"PID $TARGET"* ]]
	run --separate-stderr "$HEAPTAP" scan -o "$BATS_TEST_TMPDIR/x.sarif" "$TARGET"
	[ "$status" -eq 5 ]
	[[ $stderr == *'a census has no format sarif'* ]]
	untouched "$TARGET"
	exec 7>&-
	ended "$TARGET" 0
	[ -x "$T/leak_kinds-musl" ] || skip "leak_kinds-musl was not built here: see make targets"
	kinds leak_kinds-musl
	run --separate-stderr "$HEAPTAP" scan "$TARGET"
	[ "$status" -eq 3 ]
	[[ $stderr == *"no allocator whose books heaptap can read"*"heaptap attach $TARGET"* ]]
}

# cored: make a core of $TARGET by gdb, with its path in $core
cored() {
	command -v gcore >/dev/null || skip "no gcore here: install gdb"
	gcore -o "$BATS_TEST_TMPDIR/core" "$TARGET" >/dev/null 2>&1
	core=$BATS_TEST_TMPDIR/core.$TARGET
	[ -s "$core" ]
}

@test "census: of a core: the blocks and verdicts of the process, also compressed" {
	counted "$T/census" 1 3 4000
	census
	cp "$list" "$BATS_TEST_TMPDIR/live.csv"
	cored
	exec 7>&-
	ended "$TARGET" 0
	TARGET=$core
	census
	cmp "$list" "$BATS_TEST_TMPDIR/live.csv"
	grep -q 'from a core file$' "$text"
	command -v zstd >/dev/null || skip "no zstd here"
	zstd -q --rm "$core"
	TARGET=$core.zst
	census
	cmp "$list" "$BATS_TEST_TMPDIR/live.csv"
}

@test "census: of a core of the kernel, without the program's file and with --sysroot" {
	[[ $(cat /proc/sys/kernel/core_pattern) != [/\|]* ]] || skip "core_pattern gives cores to another program here"
	mkdir -p "$BATS_TEST_TMPDIR/there" "$BATS_TEST_TMPDIR/root$BATS_TEST_TMPDIR/there"
	strip -o "$BATS_TEST_TMPDIR/there/zoo" "$T/census_types"
	cd "$BATS_TEST_TMPDIR"
	ulimit -c unlimited
	counted "$BATS_TEST_TMPDIR/there/zoo"
	kill -SEGV "$TARGET"
	wait "$TARGET" || true
	set -- "$BATS_TEST_TMPDIR"/core*
	[ -s "$1" ] || skip "the kernel wrote no core here"
	TARGET=$1
	with_json
	told .scan.definite.blocks 9
	told '.types[] | select(.name == "zoo::Cat") | .lost.blocks' 9
	mv there/zoo "root$BATS_TEST_TMPDIR/there/"
	with_json --sysroot "$BATS_TEST_TMPDIR/root"
	told '.types[] | select(.name == "zoo::Cat") | .lost.blocks' 9
	# Another file of this name is not taken for it.
	cp /bin/true there/zoo
	with_json
	told '[.types[] | select(.name == "zoo::Cat")] | length' 0
	told .live.blocks "$(jq .live.blocks "$json")"
}

@test "census: of cores that are cut or damaged, and of other files" {
	local size
	counted "$T/census" 2 2 2000
	cored
	exec 7>&-
	ended "$TARGET" 0
	size=$(stat -c %s "$core")
	for part in 10 40 60 90 99; do
		head -c $((size * part / 100)) "$core" >"$BATS_TEST_TMPDIR/cut"
		run timeout 60 "$HEAPTAP" scan "$BATS_TEST_TMPDIR/cut"
		# Nothing is called lost, because memory is missing.
		[[ $status -le 6 && $output != leaks* ]]
		[[ $output == *'file is cut'* ]]
	done
	# Each size word of the headers and notes in turn is nonsense.
	for at in 32 54 56 64 72 96 104 120 160; do
		cp "$core" "$BATS_TEST_TMPDIR/bad"
		printf '\377\377\377\177' | dd of="$BATS_TEST_TMPDIR/bad" bs=1 seek="$at" conv=notrunc status=none
		run timeout 60 "$HEAPTAP" scan "$BATS_TEST_TMPDIR/bad"
		[ "$status" -le 6 ]
	done
	run --separate-stderr "$HEAPTAP" scan "$BATS_TEST_TMPDIR/truth"
	[ "$status" -eq 4 ]
}

@test "census: doctor says whether one is possible" {
	counted "$T/census" 1 2 2000
	run "$HEAPTAP" doctor "$TARGET"
	[[ $output == *"'heaptap scan $TARGET' can take a census of it now, from the books of glibc"* ]]
	[ "$("$HEAPTAP" doctor --json "$TARGET" | jq -r '.targets[0].census')" = glibc ]
	untouched "$TARGET"
	exec 7>&-
	ended "$TARGET" 0
	[ -x "$T/leak_kinds-musl" ] || skip "leak_kinds-musl was not built here: see make targets"
	kinds leak_kinds-musl
	[ "$("$HEAPTAP" doctor --json "$TARGET" | jq -r '.targets[0].census')" = null ]
}

@test "census: of a copy that the process forks: the same blocks, and nothing is left" {
	counted "$T/census" 4 3 4000
	census --snapshot fork
	grep -q ', read from a copy$' "$text" || skip "no copy here: $(cat "$text" | sed -n 3p)"
	equals_truth 5
	! grep -q 'Does not add up' "$text"
	[ -z "$(pgrep -P "$TARGET")" ]
	untouched "$TARGET"
	exec 7>&-
	ended "$TARGET" 0
	rm -f "$BATS_TEST_TMPDIR/lines"
	counted "$T/census_types"
	with_json --snapshot fork
	told .copied true
	told '.types[] | select(.name == "zoo::Cat") | .lost.blocks' 9
}

@test "census: --baseline shows what has grown, and refuses other files" {
	counted "$T/census_types"
	with_json
	run "$HEAPTAP" scan --baseline "$json" "$TARGET"
	[[ $output == *'Growth since the baseline'*'+0 B, from '*': all live blocks'* ]]
	[[ $output != *': zoo::Cat'* ]]
	# As if there had been only 10 of 310.
	jq '(.types[] | select(.name == "zoo::Cat") | .live) = {"blocks": 10, "bytes": 1200}' "$json" >"$BATS_TEST_TMPDIR/less.json"
	run "$HEAPTAP" scan --baseline "$BATS_TEST_TMPDIR/less.json" "$TARGET"
	[[ $output == *'from 10 to 310 blocks: zoo::Cat'* ]]
	for text in '' '{' '[]' '{"schema": "heaptap-report/1"}' '{"schema": "heaptap-census/1", "live": 7}'; do
		echo "$text" >"$BATS_TEST_TMPDIR/bad.json"
		run --separate-stderr "$HEAPTAP" scan --baseline "$BATS_TEST_TMPDIR/bad.json" "$TARGET"
		[ "$status" -eq 5 ]
		[[ $stderr == *'--baseline: '*'no census in JSON'* ]]
	done
}
