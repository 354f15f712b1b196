#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# heaptap scan of a process that nobody traces: its blocks from the books of the allocator.

load ../lib/common
load ../lib/census

# bats test_tags=core
@test "census: the blocks of a program with three threads are those that it has" {
	counted "$T/census" 1 3 4000
	census
	equals_truth 5
	[ "$(grep -c ',cached,' "$list")" -gt 50 ]
	none_is_lost
	adds_up
	untouched "$TARGET"
}

# programs_add_up SEED THREADS PROGRAM...: the blocks of each are those that it has
programs_add_up() {
	local seed=$1 threads=$2 program
	shift 2
	for program in "$@"; do
		needs_target "$program"
		rm -f "$BATS_TEST_TMPDIR/lines"
		counted "$T/$program" "$seed" "$threads" 2000
		census
		equals_truth 12
		adds_up
		ends_well
	done
}

@test "census: of 64-bit programs, static, stripped and at a fixed address" {
	programs_add_up 2 2 census-static census-static-pie census-nopie census-stripped
}

# bats test_tags=full
@test "census: of 32-bit programs" {
	programs_add_up 3 4 census-32 census-32-static
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
		ends_well
	done
}

rss_in_smaps() { awk '/^Rss:/ { sum += $2 } END { print sum * 1024 }' "/proc/$TARGET/smaps"; }

@test "census: resident memory adds up to smaps" {
	local before after
	counted "$T/census" 1 3 4000
	# A look makes no pages that the program has not written yet.
	before=$(rss_in_smaps)
	with_json
	after=$(rss_in_smaps)
	told '.resident | .allocator + .stacks + .files + .shared + .anonymous == .rss' true
	told ".resident.rss >= $before and .resident.rss <= $after and $after - $before <= 8192" true
	told '.resident.allocator > 1000000' true
	told '.resident.allocator <= ([.arenas[].system_bytes] | add) + .mapped.mapping_bytes + 8192 * (.arenas | length)' true
	told '.resident.stacks > 0' true
	told '.resident.page_tables > 0' true
}

# An arena that grew between two pieces of smaps counted twice.
# bats test_tags=full
@test "census: resident memory of a heap that grows is of the moment of its blocks (T11)" {
	local way
	start "$T/swell_threads" 4
	TARGET=$PID
	wait_for eval '[ "$(awk "/^Rss/ { print \$2 }" "/proc/$TARGET/smaps_rollup")" -gt 40000 ]'
	for way in stop fork precopy stop stop stop stop stop; do
		with_json --snapshot "$way"
		told '.resident | .allocator + .stacks + .files + .shared + .anonymous == .rss' true
		told '.resident.allocator <= ([.arenas[].system_bytes] | add) + .mapped.mapping_bytes + 8192 * (.arenas | length)' true
		# The program writes to all of its blocks.
		told '.resident.allocator >= ([.arenas[].live.bytes] | add)' true
	done
	untouched "$TARGET"
}

# bats test_tags=full
@test "census: free memory is resident until malloc_trim, and what pins it is named" {
	local pin
	STEPPED=$T/elsewhere stepping
	step "freed 40000000"
	step "threads 90"
	with_json
	told '.resident.free > 39000000 and .resident.free < 41000000' true
	told '.resident.ended_threads' 90
	told '.resident.ended_stacks >= 90 * 8192 and .resident.ended_stacks <= .resident.stacks' true
	"$HEAPTAP" scan "$TARGET" >"$BATS_TEST_TMPDIR/text"
	unbroken <"$BATS_TEST_TMPDIR/text" >"$BATS_TEST_TMPDIR/line"
	grep -q '; 38\.[0-9] MiB free in the allocator, 38\.[0-9] MiB of it in resident pages ' "$BATS_TEST_TMPDIR/line"
	grep -q ' Free and resident (fragmentation): 38\.[0-9] MiB in whole pages: malloc_trim(0) gives free pages back, ' "$BATS_TEST_TMPDIR/line"
	pin=$(sed -n 's/.* the last block of the heap, 72 B at \(0x[0-9a-f]*\), pins what is free below it .*/\1/p' "$BATS_TEST_TMPDIR/line")
	"$HEAPTAP" scan --why "$pin" "$TARGET" | unbroken | grep -qF "$pin"
	grep -q ' stacks of 90 ended threads: ' "$BATS_TEST_TMPDIR/line"
	step trim
	with_json
	told '.resident.free < 100000' true
	"$HEAPTAP" scan "$TARGET" >"$BATS_TEST_TMPDIR/text"
	unbroken <"$BATS_TEST_TMPDIR/text" >"$BATS_TEST_TMPDIR/line"
	grep -q ' free in the allocator, [0-9.,]* [KiB]* of it in resident pages ' "$BATS_TEST_TMPDIR/line" || { cat "$BATS_TEST_TMPDIR/line"; return 1; }
}

# bats test_tags=full
@test "census: classes of C++ objects, also in a stripped program, and with each snapshot" {
	local program way
	strip -o "$BATS_TEST_TMPDIR/stripped" "$T/census_types"
	for program in "$T/census_types" "$BATS_TEST_TMPDIR/stripped"; do
		rm -f "$BATS_TEST_TMPDIR/lines"
		counted "$program"
		for way in fork precopy; do
			with_json --snapshot "$way"
			told '.types[] | select(.name == "zoo::Cat") | .live.blocks' 310
		done
		with_json
		told '.types[] | select(.name == "zoo::Cat") | .live.blocks' 310
		told '.types[] | select(.name == "zoo::Cat") | .lost.blocks' 9
		told '.types[] | select(.name == "zoo::Dog") | .live.blocks' 21
		told '.types[] | select(.name | startswith("zoo::Cage<")) | .live.blocks' 70
		told .scan.definite.blocks 9
		told '.leaks | length' 9
		run "$HEAPTAP" scan -n 2 "$TARGET"
		[[ $output == *'Types of live blocks'*' 310 '*' 9  class zoo::Cat'* ]]
		ends_well
	done
}

# bats test_tags=full
@test "census: the example of the README: who holds the sessions, and who loses some" {
	counted "$T/server"
	with_json
	told '.types[] | select(.name == "Session") | .live.blocks' 4000
	told '.owners[0].name' registry
	told '.scan.definite.blocks >= 38 and .scan.definite.blocks <= 40' true
	ends_well
	"$HEAPTAP" run -q -n 1 -o "$BATS_TEST_TMPDIR/run.txt" -- "$T/server" </dev/null
	unbroken <"$BATS_TEST_TMPDIR/run.txt" | grep -Eq '^leaks .* in [34][0-9] blocks.*from Registry::log_in \(server.cc:28\)'
}

# bats test_tags=full
@test "census: a table of 80,000 pointers is one owner, and so is each of two tables" {
	printf '%s\n' '#include <stdio.h>' '#include <stdlib.h>' '#include <unistd.h>' \
		'static void *volatile first[40000], *volatile second[40000]; static void *volatile alone;' \
		'int main(void) { for (int i = 0; i < 40000; i++) first[i] = malloc(20), second[i] = malloc(20); alone = malloc(20);' \
		'puts("ready"); fflush(stdout); for (;;) pause(); }' >"$BATS_TEST_TMPDIR/table.c"
	gcc -g -O1 -o "$BATS_TEST_TMPDIR/table" "$BATS_TEST_TMPDIR/table.c"
	start "$BATS_TEST_TMPDIR/table"
	wait_for says table ready
	TARGET=$PID
	with_json
	told '.owners[] | select(.name == "first") | .held.blocks' 40000
	told '.owners[] | select(.name == "second") | .held.blocks' 40000
	told '.owners[] | select(.name == "alone") | .held.blocks' 1
}

@test "census: owners of blocks, and first words of blocks without a type" {
	counted "$T/census_first"
	with_json
	told '.owners[] | select(.name == "texts") | "\(.kind) \(.held.blocks) \(.held.bytes)"' 'data 50 10000'
	told '.owners[] | select(.name == "list") | .held.blocks' 20
	# Each block that is not lost has one owner.
	told '([.owners[].held.bytes] | add) == .scan.reachable.bytes + .scan.possible.bytes' true
	told '.first_words[] | select(.text == "GET /ind") | .live.blocks' 25
	told '.first_words[] | select(.text == "user") | .live.blocks' 25
	told '.first_words[] | select(.kind == "number") | .live.blocks' 30
	told '.first_words[] | select(.kind == "pointer") | .live.blocks' 19
	# All blocks have a type or a first word, for malloc wrote no links into them.
	told '([.types[], .first_words[] | .live.bytes] | add) == .live.bytes' true
	run "$HEAPTAP" scan "$TARGET"
	[[ $output == *'Owners of live blocks'*' 50  data texts'*'begin with'*' 25 '*'text "GET /ind"'* ]]
	[[ $output == *' 30 '*'a small number'* ]]
}

# bats test_tags=full
@test "census: a block that only memory without rights holds is not lost" {
	local way
	counted "$T/census_first"
	for way in stop fork precopy; do
		with_json --snapshot "$way"
		told .scan.definite.blocks 0
		told '.owners[] | select(.kind == "memory") | .held.blocks' 1
		told .scan.skipped_bytes 0
	done
}

# Objects lie in pools that python maps itself, and point to blocks of malloc.
# bats test_tags=full
@test "census: python: blocks that only objects in its own pools hold are not lost" {
	local way
	counted python3 -c 'import sys
class Node:
    __slots__ = ("data",)
nodes = []
for i in range(5000):
    nodes.append(Node())
    nodes[-1].data = bytearray(3000)
print("</malloc>", flush=True)
sys.stdin.read()'
	for way in stop fork; do
		with_json --snapshot "$way"
		told .scan.definite.blocks 0
		told '[.sizes[] | select(.size >= 3000 and .size < 3100) | .live.blocks] | add >= 5000' true
		told '[.owners[] | select(.kind == "memory" or .kind == "unknown") | .held.blocks] | add >= 4000' true
	done
}

# bats test_tags=full
@test "census: memory in huge pages is that of smaps" {
	local huge
	counted "$T/census_first"
	huge=$(awk '/^AnonHugePages:/ { sum += $2 } END { print sum * 1024 }' "/proc/$TARGET/smaps")
	[ "$huge" -gt 0 ] || skip "the kernel gives no huge pages here"
	with_json
	told .resident.huge "$huge"
	told '.resident | .allocator + .stacks + .files + .shared + .anonymous == .rss' true
}

# bats test_tags=full
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
	[[ $(unbroken <<<"$output") == *'in a block of 120 B, reachable: held by data favourite in '*'census_types'* ]]
	run "$HEAPTAP" scan --why 0x10000 "$TARGET"
	[[ $output == *'0x10000 is in no block of the allocator'* ]]
	addr=$(jq -r '.leaks[0].address' "$json")
	with_json --why "$addr"
	told .why.root.kind lost
	told .why.verdict definite
}

@test "census: a program is called as its user calls it: by the link that was started" {
	ln -s "$(realpath "$T/census_types")" "$BATS_TEST_TMPDIR/applet"
	counted "$BATS_TEST_TMPDIR/applet"
	with_json --why "$(awk '$1 == "favourite" { print $2 }' "$truth")"
	told .why.root.object "$BATS_TEST_TMPDIR/applet"
	fails grep census_types "$json"
}

# bats test_tags=full
@test "census: --why TYPE names who holds the blocks of a class, each with a chain" {
	counted "$T/census_types"
	with_json -n 0 --why zoo::Cat
	told .why_type.live.blocks 310
	told .why_type.lost.blocks 9
	told '.why_type.owners[] | select(.name == "favourite") | .held.blocks' 1
	told '.why_type.owners[] | select(.name == "favourite") | .why.root.name' favourite
	# The buffer of stdout may have old pointers to some of them.
	told '.why_type.owners[] | select(.name == "all") | .held.blocks > 200 and (.why.chain | length) == 2' true
	told '([.why_type.owners[].held.blocks] | add) + .why_type.lost.blocks' 310
	# The last block of a chain is of the class.
	told '(.why_type.owners[] | select(.name == "all") | .why.chain[-1].size) == 120' true
	run "$HEAPTAP" scan --why zoo::Cat "$TARGET"
	[[ $(unbroken <<<"$output") == *'Who holds blocks of zoo::Cat: 36.3 KiB in 310 blocks'* ]]
	[[ $(unbroken <<<"$output") == *' blocks held by data all in '*', for example: '*' in a block of 120 B, reachable: held by data all'* ]]
	[[ $(unbroken <<<"$output") == *' in 9 blocks held by nothing, for example: '* ]]
	# A part of a name will do, if no type has just that name.
	with_json --why Cage
	told .why_type.live.blocks 70
	with_json --why zoo::Cow
	told '.why_type.found, .why_type.live.blocks' $'false\n0'
	run "$HEAPTAP" scan --why zoo::Cow "$TARGET"
	[[ $output == *'Who holds blocks of zoo::Cow: no live block begins so'* ]]
	run "$HEAPTAP" attach --why zoo::Cat "$TARGET"
	[ "$status" -eq 2 ]
}

@test "census: --csv names the type and the owner of each block, as JSON sums them up" {
	counted "$T/census_types"
	census
	with_json
	[ "$(head -1 "$list")" = address,size,state,arena,verdict,type,owner ]
	[ "$(grep -c ',live,.*,"class zoo::Cat",' "$list")" -eq 310 ]
	[ "$(grep -c ',definite,"class zoo::Cat",$' "$list")" -eq 9 ]
	[ "$(grep -c '"class zoo::Cat","data favourite in ' "$list")" -eq 1 ]
	[ "$(grep -c '"data all in ' "$list")" -eq "$(jq '.owners[] | select(.name == "all") | .held.blocks' "$json")" ]
	[ "$(awk -F, '$3 == "live"' "$list" | grep -vc '"$')" -eq "$(jq '.scan | .definite.blocks + .indirect.blocks' "$json")" ]
}

# bats test_tags=full
@test "census: many blocks, of many threads, again and again" {
	counted "$T/census" 5 8 30000
	for _ in 1 2 3; do
		census
		equals_truth 16
	done
}

# bats test_tags=full
@test "census: verdicts without a trace are those of memcheck" {
	kinds
	built
	TARGET=$TARGET
	census
	[ "$(grep -c ',definite' "$list")" -eq 10 ]
	[ "$(grep -c ',indirect' "$list")" -eq 13 ]
	[[ $(cat "$text") == 'leaks '*' in 10 blocks, and with them '*' in 13'* ]] || { cat "$text"; return 1; }
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

@test "census: signal stacks, which only the kernel knows, are in use" {
	with_bpf_only "the kernel lists signal stacks to BPF programs"
	kinds signal_stack
	built
	census
	[ "$(grep -c ',reachable' "$list")" -ge 2 ]
	fails grep ',definite' "$list"
	tell
	ended "$TARGET" 0
}

# Without BPF it is said that verdicts may be wrong, as long as requests wait.
@test "census: io_uring requests hold their blocks, and who cannot list them says so" {
	local status=0
	"$T/requests" >"$BATS_TEST_TMPDIR/trial" || status=$?
	[ "$status" -ne 99 ] || skip "no io_uring here"
	kinds requests
	built
	with_bpf_only "only BPF programs see the requests of an io_uring"
	census
	[ "$(grep -c ',definite' "$list")" -eq 1 ]
	"$O/tests/targets/nobpf" EPERM bpf "$HEAPTAP" scan --force --max-pause 60s -o "$text" "$TARGET" 2>"$BATS_TEST_TMPDIR/scan.err"
	grep -q 'its io_uring requests cannot be listed' "$BATS_TEST_TMPDIR/scan.err"
	tell
	ended "$TARGET" 0
}

@test "census: a Go program has books of its own: its profiler is named, and no attach that would see nothing" {
	cd "$BATS_TEST_TMPDIR"
	echo 'void _start(void) { for (;;) ; }' | gcc -nostdlib -static -x c -o gosleep -
	objcopy --add-section .note.go.buildid=gosleep gosleep
	start ./gosleep
	run -3 "$HEAPTAP" scan "$PID"
	[[ $output == *"a Go program has an allocator of its own: Go's profiler (runtime/pprof) shows its heap" ]]
	[[ $output != *"heaptap attach"* ]]
}

@test "census: blocks that may be lost are no all-clear, and lines fit 80 columns" {
	start "$T/middle"
	TARGET=$PID
	wait_for says middle ready
	"$HEAPTAP" scan -q "$TARGET" >"$BATS_TEST_TMPDIR/text"
	unbroken <"$BATS_TEST_TMPDIR/text" | grep -q '^no definite leaks; 2[0-9][0-9] B in 2 blocks possibly leaked; .* live in .* free in the allocator, .* in resident pages Census '
	fails grep -E '.{81}' "$BATS_TEST_TMPDIR/text"
}

@test "census: a table of a million pointers in a program's data is no tree of jemalloc" {
	stepping
	step "alloc 1000000 16"
	run timeout 100 "$HEAPTAP" scan "$TARGET"
	[ "$status" -eq 0 ]
	[[ $output == "no leaks; "* ]]
}

@test "census: a pause that is too short, a format that a census has not" {
	counted "$T/census" 1 2 2000
	run --separate-stderr "$HEAPTAP" scan --max-pause 1us "$TARGET"
	[ "$status" -eq 6 ]
	[ -z "$output" ]
	[[ $stderr == *"PID $TARGET: no verdict, and not stopped for one: that would take about "*", and --max-pause is 1 us; --max-pause "*"s allows it"* ]]
	run --separate-stderr "$HEAPTAP" scan -o "$BATS_TEST_TMPDIR/x.sarif" "$TARGET"
	[ "$status" -eq 5 ]
	[[ $stderr == *'a census has no format sarif'* ]]
	ends_well
}

# cored: make a core of $TARGET by gdb, with its path in $core
cored() {
	command -v gcore >/dev/null || skip "no gcore here: install gdb"
	gcore -o "$BATS_TEST_TMPDIR/core" "$TARGET" >/dev/null 2>&1
	core=$BATS_TEST_TMPDIR/core.$TARGET
	[ -s "$core" ]
}

# The blocks of a core are those of the process. A core has fewer names, so types and owners may be called otherwise.
same_blocks() { cmp <(cut -d, -f1-5 "$list") <(cut -d, -f1-5 "$BATS_TEST_TMPDIR/live.csv"); }

@test "census: of a core: the blocks and verdicts of the process, also compressed" {
	counted "$T/census" 1 3 4000
	census
	cp "$list" "$BATS_TEST_TMPDIR/live.csv"
	cored
	ends_well
	TARGET=$core
	census
	same_blocks
	grep -q 'from a core file$' "$text"
	command -v zstd >/dev/null || skip "no zstd here"
	zstd -q --rm "$core"
	TARGET=$core.zst
	census
	same_blocks
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

# bats test_tags=full
@test "census: of cores that are cut or damaged, and of other files" {
	local size
	counted "$T/census" 2 2 2000
	cored
	ends_well
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

@test "census: a program that has freed all of its blocks has no leak; one that never had any has no books" {
	local name
	cd "$BATS_TEST_TMPDIR"
	gcc -O1 -fno-builtin -o freed -xc - <<<'#include <stdlib.h>
		#include <unistd.h>
		static void *uses(void *size) { free(malloc((size_t)size)); return 0; }
		int main(int c, char **v) {
			if (c > 1) uses((void *)atol(v[1]));
			for (write(1, "ready\n", 6);;) pause(); }'
	for name in 100 3000000; do
		start ./freed "$name"
		wait_for says freed ready
		"$HEAPTAP" scan "$PID" | grep -q '^no leaks; 0 B live in 0 blocks;$'
	done
	start ./freed
	wait_for says freed ready
	run -3 "$HEAPTAP" scan "$PID"
	# A trace does not say that its allocator is another one.
	start ./freed 100
	wait_for says freed ready
	run -0 "$HEAPTAP" attach -q -t 1s "$PID"
	[[ $output == "no leaks among blocks since the attach (older ones: heaptap scan $PID)"* ]]
}

@test "census: doctor says whether one is possible" {
	counted "$T/census" 1 2 2000
	run "$HEAPTAP" doctor "$TARGET"
	[[ $output == *"'heaptap scan $TARGET' can take a census of it now, from the books of glibc"* ]]
	[ "$("$HEAPTAP" doctor --json "$TARGET" | jq -r '.targets[0].census')" = glibc ]
	ends_well
}

# is_copied: does the text of the last census say so? Its lines are broken at 80 columns.
is_copied() { unbroken <"$text" | grep -q ', read from a copy '; }

@test "census: of a copy that the process forks: the same blocks, and nothing is left" {
	counted "$T/census" 4 3 4000
	census --snapshot fork
	is_copied || skip "no copy here: $(cat "$text" | sed -n 3p)"
	equals_truth 5
	adds_up
	[ -z "$(pgrep -P "$TARGET")" ]
	ends_well
	rm -f "$BATS_TEST_TMPDIR/lines"
	counted "$T/census_types"
	with_json --snapshot fork
	told .copied true
	told '.types[] | select(.name == "zoo::Cat") | .lost.blocks' 9
}

# bats test_tags=full
@test "census: of a copy made while the process runs: the same blocks, and nothing watches it afterwards" {
	local warning=$BATS_TEST_TMPDIR/warning
	counted "$T/census" 4 3 20000
	census --snapshot precopy 2>"$warning"
	is_copied || skip "no copy here: $(cat "$warning")"
	equals_truth 5
	adds_up
	no_line '^VmFlags:.* uw' "/proc/$TARGET/smaps"
	no_line userfaultfd <(ls -l "/proc/$TARGET/fd")
	# A copy that may take too much is not made, and the blocks are the same.
	for way in fork precopy; do
		census --snapshot "$way" --max-copy 1M 2>"$warning"
		grep "no $way: the copy may take .* MiB, and there is room for 1.00 MiB (see --max-copy)" "$warning"
		! is_copied || return 1
		equals_truth 5
	done
	ends_well
}

@test "census: what a copy takes is said where that is much of what there is, and by -v" {
	local line="the copy may take .* MiB, and there is room for" said=$BATS_TEST_TMPDIR/said
	counted "$T/census" 4 3 20000
	saying() { "$HEAPTAP" scan --max-pause 60s --force -o "$BATS_TEST_TMPDIR/said.json" "$@" "$TARGET" 2>"$said"; }
	saying --snapshot fork -v
	grep "debug: scan: PID $TARGET: copied by a fork: $line" "$said" || skip "no copy here: $(cat "$said")"
	saying --snapshot fork
	no_line "$line" "$said"
	saying --snapshot fork --max-copy 32M
	grep "copied by a fork: $line 32.0 MiB (see --max-copy)" "$said"
	ends_well
}

# bats test_tags=full
@test "census: 64 TiB reserved, little of it touched: verdicts within the pause, by each way (H6)" {
	local out=$BATS_TEST_TMPDIR/bigmap.out
	mkfifo "$BATS_TEST_TMPDIR/lines"
	start bash -c "exec '$T/bigmap' vast wait <'$BATS_TEST_TMPDIR/lines' >'$out'"
	TARGET=$PID
	exec 7>"$BATS_TEST_TMPDIR/lines"
	tell
	wait_for grep -Eqs 'built|impossible' "$out"
	! grep -q impossible "$out" || skip "$(cat "$out")"
	for way in stop fork precopy; do
		with_json --max-pause 500ms --snapshot "$way"
		told .scan.reachable.blocks 64
		told .scan.definite.blocks 7
	done
	untouched "$TARGET"
	tell
	ended "$TARGET" 0
}

# bats test_tags=full
@test "census: without --snapshot a large process forks, and is copied ahead where a fork takes too long" {
	local warning=$BATS_TEST_TMPDIR/warning lines=$BATS_TEST_TMPDIR/lines
	mkfifo "$lines"
	start bash -c "exec python3 -c 'x = bytearray(b\"x\") * (200 << 20); print(\"ready\", flush=True); input()
import ctypes; ctypes.CDLL(None).syscall(323, 1); print(\"watches\", flush=True); input()' <'$lines'"
	TARGET=$PID
	exec 7>"$lines"
	wait_for grep -q ready "$BATS_TEST_TMPDIR/bash.out"
	with_auto() { "$HEAPTAP" scan -v --force "$@" -o "$BATS_TEST_TMPDIR/auto.json" "$TARGET" 2>"$warning"; }
	with_auto --max-pause 60s
	grep -q ": copied by a fork: " "$warning" || skip "no room for a copy: $(cat "$warning")"
	no_line ": copied while it runs" "$warning"
	[ "$(jq .copied "$BATS_TEST_TMPDIR/auto.json")" = true ]
	# A trace does the same.
	attached -v --max-pause 60s "$TARGET"
	detach
	grep -q ": copied by a fork: " "$err"
	# No way is allowed so short a stop in the end: it is the choice that matters.
	with_auto --max-pause 1ms || true
	! grep -q "this CPU or kernel cannot do it" "$warning" || skip "this kernel makes no copies ahead"
	grep -q ": copied while it runs: " "$warning"
	no_line ": copied by a fork" "$warning"
	tell
	wait_for grep -q watches "$BATS_TEST_TMPDIR/bash.out"
	with_auto --max-pause 1ms || true
	grep -q "no precopy: it uses userfaultfd itself" "$warning"
	grep -q ": copied by a fork: " "$warning"
	[ -z "$(cat "/proc/$TARGET/task/$TARGET/children")" ]
	untouched "$TARGET"
	tell
	ended "$TARGET" 0
}

# bats test_tags=full
@test "census: of a process in namespaces of its own, also of a copy" {
	unshare --user --map-root-user --pid --fork --mount-proc --net --ipc --uts true || skip "no namespaces here"
	counted unshare --user --map-root-user --pid --fork --mount-proc --net --ipc --uts "$T/census" 7 3 4000
	TARGET=$(pgrep -P "$TARGET" -x census)
	for way in stop fork precopy; do
		census --snapshot "$way" 2>/dev/null
		equals_truth 5
		no_line ',(definite|indirect)$' "$list"
		[ -z "$(cat "/proc/$TARGET/task/$TARGET/children")" ]
	done
	# A trace finds the same program.
	attached --snapshot fork "$TARGET"
	detach
	untouched "$TARGET"
	exec 7>&-
	wait_for gone "$TARGET"
}

@test "census: an arena whose lock is held is said to be, and its blocks are listed" {
	counted "$T/census" 8 3 4000 locked
	wait_for arena_is_locked
	census
	equals_truth 5
	grep -q '  locked$' "$text"
	ends_well
}

arena_is_locked() { with_json && [ "$(jq '[.arenas[] | select(.locked)] | length' "$json")" -eq 1 ]; }

# bats test_tags=full
@test "census: of a core of the kernel without memory that the program has excluded: nothing is called lost" {
	[[ $(cat /proc/sys/kernel/core_pattern) != [/\|]* ]] || skip "core_pattern gives cores to another program here"
	cd "$BATS_TEST_TMPDIR"
	ulimit -c unlimited
	counted "$T/census" 9 2 4000 undumped
	census
	no_line ',(definite|indirect)$' "$list"
	kill -SEGV "$TARGET"
	wait "$TARGET" || true
	set -- "$BATS_TEST_TMPDIR"/core*
	[ -s "$1" ] || skip "the kernel wrote no core here"
	TARGET=$1
	census
	equals_truth 5
	no_line ',(definite|indirect)$' "$list"
	grep -q ' of writable memory are not in the file, so no block is called lost' "$text"
	no_line MADV_DONTDUMP "$text"
}

# bats test_tags=full
@test "census: of a core of gdb, which does not say what it leaves out: a line warns of that" {
	counted "$T/census" 9 2 4000 undumped
	cored
	ends_well
	TARGET=$core
	census
	equals_truth 5
	unbroken <"$text" | grep -q 'gdb leaves out memory that the program excluded from cores (MADV_DONTDUMP): a block that only such'
	with_json
	told .core.may_have_gaps true
}

# bats test_tags=full
@test "census: a service that grew before heaptap came: two censuses find by how much" {
	command -v redis-server >/dev/null || skip "no redis-server here"
	local socket=$BATS_TEST_TMPDIR/redis before after grown
	start redis-server --port 0 --unixsocket "$socket" --save '' --appendonly no --dir "$BATS_TEST_TMPDIR" \
		--enable-debug-command yes
	TARGET=$PID
	ask_redis() { redis-cli -s "$socket" "$@"; }
	wait_for ask_redis ping
	ask_redis debug populate 20000 old 100 || skip "this redis-server has no DEBUG POPULATE"
	used() { ask_redis info memory | tr -d '\r' | sed -n 's/^used_memory://p'; }
	before=$(used)
	with_json
	ask_redis debug populate 30000 new 1000
	after=$(used)
	"$HEAPTAP" scan -q --force --max-pause 60s --baseline "$json" -o "$BATS_TEST_TMPDIR/later.txt" \
		-o "$BATS_TEST_TMPDIR/later.json" "$TARGET"
	# redis-server itself says, and what the censuses say: within a hundredth.
	grown=$(($(jq .live.bytes "$BATS_TEST_TMPDIR/later.json") - $(jq .live.bytes "$json")))
	[ $((grown * 100 / (after - before))) -ge 99 ]
	[ $((grown * 100 / (after - before))) -le 101 ]
	# 30,000 strings of 1,000 bytes are in one class of sizes.
	grep -E '1\.[0-9]+ KiB|1,280 B|1,024 B' "$BATS_TEST_TMPDIR/later.txt"
	[ "$(jq '[.sizes[] | select(.size >= 1000 and .size <= 1300) | .live.blocks] | add' "$BATS_TEST_TMPDIR/later.json")" -ge 30000 ]
	untouched "$TARGET"
	kill "$TARGET"
	ended "$TARGET" 0
}

# definite_by WHERE: the blocks that a program lost, by the functions that it names; of the census in $json
definite_by_truth() {
	awk '$1 == "expect" && ($2 == "definite" || $2 == "indirect") { n[$5] += $3 } END { for (f in n) print f, n[f] }' "$out" | sort
}
lost_by_census() {
	jq -r '.known.callers[] | select(.lost.blocks > 0) | "\(.stack | split(" < ")[0]) \(.lost.blocks)"' "$json" |
		awk '{ n[$1] += $2 } END { for (f in n) print f, n[f] }' | sort
}

@test "census: --callers: beside a trace: both agree, and blocks have the callers that the trace knows" {
	local recording=$BATS_TEST_TMPDIR/r.heaptap blocks=$BATS_TEST_TMPDIR/blocks.csv
	kinds
	attached -w "$recording" "$TARGET"
	built
	# The heaptap that traces it is not asked.
	with_json --census
	[ "$(jq -r .schema "$json")" = heaptap-census/1 ]
	[ "$(jq .known "$json")" = null ]
	detach
	"$HEAPTAP" console -q -x "blocks 0 0 > $blocks" "$recording"
	with_json --callers "$blocks"
	told .known.gone_blocks 0
	told .known.smaller_blocks 0
	told .known.live.blocks "$(jq .processes[0].totals.live_blocks "$report")"
	told .scan.definite.blocks "$(jq .processes[0].scan.definite.blocks "$report")"
	told .scan.indirect.blocks "$(jq .processes[0].scan.indirect.blocks "$report")"
	[ -n "$(definite_by_truth)" ]
	diff <(definite_by_truth) <(lost_by_census)
	"$HEAPTAP" scan -n 0 --callers "$blocks" "$TARGET" >"$BATS_TEST_TMPDIR/text"
	grep -q '^Callers that the trace knows: ' "$BATS_TEST_TMPDIR/text"
	grep -q 'calloc < list_head < lose_list' "$BATS_TEST_TMPDIR/text"
	# Another file, and a list of another process, are refused.
	run "$HEAPTAP" scan --callers "$report" "$TARGET"
	[ "$status" -eq 5 ]
	[[ $output == *"no list of blocks"* ]]
	sed -i '2,$s/^[0-9]*,/1,/' "$blocks"
	run "$HEAPTAP" scan --callers "$blocks" "$TARGET"
	[[ $output == *"no block of this process"* ]]
	untouched "$TARGET"
	tell
	ended "$TARGET" 3
}

@test "census: as folded stacks: the sums are those of JSON" {
	local folded=$BATS_TEST_TMPDIR/census.folded
	counted "$T/census_types"
	"$HEAPTAP" scan -q -o "$folded" "$TARGET"
	with_json
	sum_of() { awk -v what="$1" 'index($0, what) { n += $NF } END { print n + 0 }' "$folded"; }
	[ "$(sum_of ';live;')" = "$(jq '[.arenas[].live.bytes] + [.mapped.bytes] | add' "$json")" ]
	[ "$(sum_of ';live;lost;')" = "$(jq '.scan.definite.bytes + .scan.indirect.bytes' "$json")" ]
	[ "$(sum_of ';free;')" -gt 0 ]
	grep -q ';live;lost;class zoo::Cat [0-9]*$' "$folded"
	ends_well
}

# bats test_tags=full
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
	# As if a variable had held less, and as if an older heaptap had written it.
	jq '(.owners[] | select(.name == "all") | .held) = {"blocks": 3, "bytes": 300}' "$json" >"$BATS_TEST_TMPDIR/less.json"
	run "$HEAPTAP" scan --baseline "$BATS_TEST_TMPDIR/less.json" "$TARGET"
	[[ $(unbroken <<<"$output") == *', from 3 to '*' blocks: held by data all in '* ]]
	mv "$json" "$BATS_TEST_TMPDIR/first.json"
	with_json --baseline "$BATS_TEST_TMPDIR/less.json"
	told '.growth.owners | length' 1
	told '.growth.owners[0] | .before.blocks' 3
	told '.growth.types | length' 0
	told '.growth.before == .growth.now' true
	jq 'del(.owners)' "$BATS_TEST_TMPDIR/first.json" >"$BATS_TEST_TMPDIR/older.json"
	run "$HEAPTAP" scan --baseline "$BATS_TEST_TMPDIR/older.json" "$TARGET"
	[[ $(unbroken <<<"$output") == *'The baseline has no owners'* && $output != *'held by data'* ]]
	for text in '' '{' '[]' '{"schema": "heaptap-report/2"}' '{"schema": "heaptap-census/1", "live": 7}'; do
		echo "$text" >"$BATS_TEST_TMPDIR/bad.json"
		run --separate-stderr "$HEAPTAP" scan --baseline "$BATS_TEST_TMPDIR/bad.json" "$TARGET"
		[ "$status" -eq 5 ]
		[[ $stderr == *'--baseline: '*'no census in JSON'* ]]
	done
}

# sums_equal NAME INPUT COMMAND...: the census of the program, after it has read INPUT, has the sums of its malloc_info()
sums_equal() {
	local name=$1 input=$2
	shift 2
	command -v "$1" >/dev/null || { echo "$name: $1 is not installed: left out"; return 0; }
	rm -f "$BATS_TEST_TMPDIR/lines"
	mkfifo "$BATS_TEST_TMPDIR/lines"
	INFO=$BATS_TEST_TMPDIR/$name LD_PRELOAD=$T/libinfo.so "$@" <"$BATS_TEST_TMPDIR/lines" >"$BATS_TEST_TMPDIR/$name.out" 2>&1 &
	TARGET=$!
	STARTED+=("$TARGET")
	exec 7>"$BATS_TEST_TMPDIR/lines"
	truth=$BATS_TEST_TMPDIR/$name.$TARGET
	printf '%s\n' "$input" >&7
	wait_for test -e "$truth"
	# Idle: it waits in read() with the same time as before.
	wait_for idle
	kill -s "$(($(kill -l RTMIN) + 5))" "$TARGET"
	wait_for grep -qs '^</malloc>' "$truth"
	with_json
	told '[.arenas[].system_bytes] | add' "$(of_malloc current size)"
	told '[.arenas[] | .bins.blocks + 1] | add' "$(of_malloc rest count)"
	told '[.arenas[] | .fast.blocks] | add' "$(of_malloc fast count)"
	told .mapped.blocks "$(of_malloc mmap count)"
	told .mapped.mapping_bytes "$(of_malloc mmap size)"
	told .nr_notes 0
	nr_equal=$((nr_equal + 1))
	exec 7>&-
	kill "$TARGET" 2>/dev/null || true
	wait "$TARGET" 2>/dev/null || true
}

# idle: does $TARGET have a handler for the signal, and has it used no CPU time for half a second?
idle() {
	local before caught
	caught=$(awk '/^SigCgt/ { print $2 }' "/proc/$TARGET/status")
	((0x$caught >> ($(kill -l RTMIN) + 4) & 1)) || return 1
	before=$(awk '{ print $14 + $15 }' "/proc/$TARGET/stat")
	sleep 0.5
	[ "$before" = "$(awk '{ print $14 + $15 }' "/proc/$TARGET/stat")" ] && grep -qE 'State:\s+S' "/proc/$TARGET/status"
}

# bats test_tags=full
@test "census: ten real programs: the sums are those that malloc itself gives" {
	nr_equal=0
	# Not a script that starts python.
	sums_equal python "" "$(PATH=/usr/bin:/bin command -v python3 || echo python3)" -c 'import json, re, sys; x = [json.loads(json.dumps({"n": i, "t": "x" * (i % 700)})) for i in range(5000)]; del x[::3]; sys.stdin.read()'
	# Not bash: it allocates when a signal comes.
	sums_equal perl "" perl -e 'my %h = map { $_ => { name => "x" x ($_ % 300) } } 1 .. 4000; delete $h{$_ * 3} for 1 .. 900; <STDIN>; <STDIN>'
	sums_equal sqlite 'create table t(a, b); insert into t select value, hex(randomblob(50)) from generate_series(1, 3000); select count(*) from t; delete from t where a % 3 = 1;' sqlite3 :memory:
	sums_equal git "$(git -C "$ROOT" rev-parse HEAD 2>/dev/null)" git -C "$ROOT" cat-file --batch
	sums_equal awk 'line' awk '{ for (i = 0; i < 9000; i++) t[i] = i "x" i; for (i = 0; i < 9000; i += 3) delete t[i] }'
	# Not the function that reads reports.
	sums_equal jq "[$(seq -s, 3000)]" "$(type -P jq || echo jq)" -c 'map({n: ., t: "x\(.)"})'
	sums_equal gdb 'info line main' gdb -q -nx "$T/census"
	sums_equal sort "$(seq 3000)" sort
	sums_equal sed "$(seq 3000)" sed -n 'H; $p'
	sums_equal xz "" xz -d
	echo "# $nr_equal programs"
	[ "$nr_equal" -ge 8 ]
}

nr_born() { grep -c born "$BATS_TEST_TMPDIR/births.out" || true; }
has_more_born() { [ "$(nr_born)" -gt "$before" ]; }

# bats test_tags=full
@test "census: the process makes children meanwhile: verdicts by each way, and each child ends as it wants to (A12)" {
	local way before
	start "$T/births" 3
	TARGET=$PID
	wait_for says births ready
	for way in stop fork precopy auto; do
		for _ in 1 2 3; do
			before=$(nr_born)
			with_json --snapshot "$way"
			told '.scan.definite.blocks' 0
			wait_for has_more_born
		done
		no_line '^VmFlags:.* uw' "/proc/$TARGET/smaps"
	done
	kill -TERM "$TARGET"
	ended "$TARGET" 0
}

# is_watched, in slices: heaptap gets the CPU for a moment, so that its copy takes long; does it copy already?
is_watched() {
	kill -STOP "$TAP"
	! grep -q '^VmFlags:.* uw' "/proc/$TARGET/smaps" || return 0
	kill -CONT "$TAP"
	! gone "$TAP" || return 0
	return 1
}

# bats test_tags=full
@test "census: the process is killed while it is copied: that is said, and nothing hangs (A2)" {
	start python3 -c 'import signal; x = bytearray(b"x") * (200 << 20); print("ready", flush=True); signal.pause()'
	TARGET=$PID
	wait_for says python3 ready
	start "$HEAPTAP" scan --max-pause 60s --snapshot precopy "$TARGET"
	TAP=$PID
	wait_for is_watched
	! gone "$TAP" || skip "no copy here: $(cat "$BATS_TEST_TMPDIR/heaptap.err")"
	kill -KILL "$TARGET"
	kill -CONT "$TAP"
	ended "$TAP" 4 || { cat "$BATS_TEST_TMPDIR/heaptap.err"; return 1; }
	cat "$BATS_TEST_TMPDIR/heaptap.err"
	grep -q "scan: PID $TARGET: .*ended" "$BATS_TEST_TMPDIR/heaptap.err"
}
