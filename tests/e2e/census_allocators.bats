#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# heaptap scan of a process that nobody traces, with another allocator than that of glibc.

load ../lib/common
load ../lib/census

# on_library PATTERN: the path of the library in $PRELOAD
on_library() {
	PRELOAD=$(ldconfig -p | awk -v want="^$1" '$1 ~ want && $0 ~ /x86-64|AArch64/ { print $NF; exit }')
	[ -n "$PRELOAD" ] || skip "$1 is not installed"
}

# all_equal ALLOCATOR MOST: programs with 1, 3 and 8 threads have the blocks of the census
all_equal() {
	local threads
	for threads in 1 3 8; do
		rm -f "$BATS_TEST_TMPDIR/lines"
		counted env LD_PRELOAD="$PRELOAD" "$T/census" "$threads" "$threads" 5000
		census
		equals_truth "$2"
		grep -q "64-bit, $1" "$text"
		adds_up
		none_is_lost
		ends_well
	done
}

# bats test_tags=full
@test "census: jemalloc: the blocks of programs with 1, 3 and 8 threads are those that they have" {
	on_library libjemalloc
	all_equal jemalloc 24
	[ "$(grep -c ',cached,' "$list")" -gt 500 ]
}

# bats test_tags=full
@test "census: jemalloc: without thread caches, with one arena" {
	on_library libjemalloc
	export MALLOC_CONF=narenas:1,tcache_max:64
	all_equal jemalloc 24
}

# A description may stand for the last page of a large extent alone, and where extents were joined there is none.
# bats test_tags=full
@test "census: jemalloc: after large blocks were freed (T11)" {
	on_library libjemalloc
	counted env LD_PRELOAD="$PRELOAD" "$T/census" 1 1 5000 large
	census
	equals_truth 24
	grep -q '64-bit, jemalloc' "$text"
	adds_up
	none_is_lost
	ends_well
}

# The first leaf of the tree has one description then, of an extent that goes on in the second leaf.
@test "census: jemalloc: memory that a boundary of 1 GiB goes through (T11)" {
	on_library libjemalloc
	printf '%s\n' '#include <sys/mman.h>' 'enum { MIB = 1 << 20, GIB = 1 << 30, ABOVE = 190 * MIB };' \
		'__attribute__((constructor)) static void fill(void) {' \
		'	unsigned long top = (unsigned long)mmap(0, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);' \
		'	mmap(0, (top - ABOVE) % GIB, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0); }' >"$BATS_TEST_TMPDIR/fill.c"
	gcc -shared -fPIC -o "$BATS_TEST_TMPDIR/fill.so" "$BATS_TEST_TMPDIR/fill.c"
	counted env LD_PRELOAD="$BATS_TEST_TMPDIR/fill.so $PRELOAD" "$T/census" 1 1 5000 large
	census
	equals_truth 24
	grep -q '64-bit, jemalloc' "$text"
	adds_up
	ends_well
}

# After a mass delete such extents are most of those that the tree begins with.
@test "census: jemalloc: while a thread gives free pages back (T11)" {
	on_library libjemalloc
	start env MALLOC_CONF=narenas:1,dirty_decay_ms:-1 LD_PRELOAD="$PRELOAD" "$T/purging"
	TARGET=$PID
	wait_for grep -q '^purging$' "$BATS_TEST_TMPDIR/env.out"
	census
	grep -q '64-bit, jemalloc' "$text"
	[ "$(grep -c ',20480,live' "$list")" -eq 256 ]
	adds_up
	none_is_lost
	untouched "$TARGET"
}

# wide MODE VERSION: a program with the books of a jemalloc for addresses of 57 bits
wide() {
	start "$T/like_jemalloc" "$1"
	TARGET=$PID
	wait_for says like_jemalloc ready
	census
	grep -q "64-bit, jemalloc $2" "$text"
	[ "$(grep -c ',64,live' "$list")" -eq 50 ]
	[ "$(grep -c ',430080,live' "$list")" -eq 1 ]
}

@test "census: jemalloc: addresses of 57 bits, and large blocks of whole pages (T11)" { wide books 5.3; }

@test "census: jemalloc: addresses of 57 bits before 5.3 (T11)" { wide books-old 5.1; }

# bats test_tags=full
@test "census: jemalloc: of a core" {
	command -v gcore >/dev/null || skip "no gcore here: install gdb"
	on_library libjemalloc
	counted env LD_PRELOAD="$PRELOAD" "$T/census" 1 3 4000
	census
	cp "$list" "$BATS_TEST_TMPDIR/live.csv"
	gcore -o "$BATS_TEST_TMPDIR/core" "$TARGET" >/dev/null 2>&1
	TARGET=$BATS_TEST_TMPDIR/core.$TARGET
	census
	# A core has fewer names, so owners may be called otherwise.
	cmp <(cut -d, -f1-5 "$list") <(cut -d, -f1-5 "$BATS_TEST_TMPDIR/live.csv")
}

@test "census: redis: the blocks of each size are those that jemalloc counts (T11)" {
	local socket=$BATS_TEST_TMPDIR/redis.sock
	command -v redis-server >/dev/null && command -v redis-cli >/dev/null || skip "redis is not installed"
	start redis-server --port 0 --unixsocket "$socket" --save '' --dir "$BATS_TEST_TMPDIR"
	TARGET=$PID
	wait_for eval "redis-cli -s $socket ping 2>/dev/null | grep -q PONG"
	grep -q jemalloc "/proc/$TARGET/maps" || skip "this redis does not use jemalloc"
	redis-cli -s "$socket" eval 'for i = 1, 20000 do redis.call("set", "key" .. i, ("v"):rep(i % 100)) end' 0
	redis-cli -s "$socket" eval 'for i = 1, 3000 do redis.call("hset", "h" .. i % 50, i, ("x"):rep(i % 300)) end' 0
	redis-cli -s "$socket" setrange big 16000000 x
	redis-cli -s "$socket" del big
	redis-cli -s "$socket" memory malloc-stats | tr -d '\r' | sed -n '/^bins:/,/^large:/{ p; /^large:/q }' |
		awk '$1 ~ /^[0-9]+$/ && $11 > 0 { print $1, $11 }' >"$BATS_TEST_TMPDIR/wanted"
	census
	awk -F, '$2 <= 14336 && NR > 1 { nr[$2]++ } END { for (size in nr) print size, nr[size] }' "$list" | sort -n >"$BATS_TEST_TMPDIR/have"
	[ "$(wc -l <"$BATS_TEST_TMPDIR/wanted")" -gt 10 ]
	# Answers to clients may take a few blocks more or less.
	paste -d ' ' "$BATS_TEST_TMPDIR/wanted" "$BATS_TEST_TMPDIR/have" |
		awk '{ d = $2 - $4; all += $2; if ($1 != $3 || d > 40 || d < -40) bad = bad " " $0 } END { if (bad || all < 40000) { print "differ:" bad, all; exit 1 } }'
	adds_up
	untouched "$TARGET"
}

# bats test_tags=full
@test "census: musl: programs with 1, 4 and 16 threads, static too" {
	local program threads
	for program in census-musl census-musl-static; do
		needs_target "$program"
		for threads in 1 4 16; do
			rm -f "$BATS_TEST_TMPDIR/lines"
			counted "$T/$program" "$threads" "$threads" 3000
			census
			equals_truth 20
			grep -q '64-bit, musl' "$text"
			adds_up
			none_is_lost
			ends_well
		done
	done
}

# bats test_tags=full
@test "census: musl: verdicts without a trace are those of memcheck" {
	needs_target leak_kinds-musl
	kinds leak_kinds-musl
	built
	census
	[ "$(grep -c ',definite' "$list")" -eq 10 ]
	[ "$(grep -c ',indirect' "$list")" -eq 13 ]
	[ "$("$HEAPTAP" doctor --json "$TARGET" | jq -r '.targets[0].census')" = musl ]
	tell
	ended "$TARGET" 3
}

# ends_equal MOST: each block of the program ends where a live block of the census ends, one to one. Blocks that were
# aligned begin within: mimalloc does not say where.
ends_equal() {
	perl -e 'my ($truth, $list, $most) = @ARGV; my (%wanted, $seen, $inner, $extra) = ();
		open(my $t, "<", $truth) or die; /^block (\S+) (\d+)/ and $wanted{ hex($1) + $2 } = hex($1) while <$t>;
		open(my $l, "<", $list) or die;
		while (<$l>) {
			my ($addr, $size, $state) = split /,/;
			next if $state ne "live";
			my $start = $wanted{ hex($addr) + $size };
			if (!defined $start || $start < hex($addr)) { $extra++; next }
			$seen++;
			$inner++ if $start > hex($addr);
		}
		print "$seen of ", scalar(%wanted), " seen, $inner of them aligned, $extra more\n";
		exit !($seen == %wanted && $seen > 1000 && $inner < $seen / 20 && $extra <= $most)' "$truth" "$list" "$1"
}

# bats test_tags=full
@test "census: mimalloc: the blocks of programs with 1, 3 and 8 threads are those that they have" {
	local threads
	on_library libmimalloc.so.2
	for threads in 1 3 8; do
		rm -f "$BATS_TEST_TMPDIR/lines"
		counted env LD_PRELOAD="$PRELOAD" "$T/census" "$threads" "$threads" 5000
		census
		ends_equal 24
		grep -q '64-bit, mimalloc' "$text"
		adds_up
		none_is_lost
		ends_well
	done
}

# bats test_tags=full
@test "census: mimalloc: memory that only looks like one of its segments is none" {
	start "$T/like_mimalloc"
	TARGET=$PID
	wait_for says like_mimalloc ready
	census
	grep -q '64-bit, glibc' "$text"
	[ "$(grep -c ',328,live' "$list")" -eq 100 ]
	adds_up
}

# by_books HOW VERSION: a program with books as that version has them, of 100 blocks that are held and 10 that are lost
by_books() {
	start "$T/like_mimalloc" "$1"
	TARGET=$PID
	wait_for says like_mimalloc ready
	census
	grep -q "64-bit, mimalloc $2" "$text"
	[ "$(grep -c ',96,live' "$list")" -eq 110 ]
	# An old pointer may stay in a register.
	[ "$(grep -cE ',96,live,.*,definite' "$list")" -ge 9 ]
	[ "$(grep -cE ',96,live,.*,reachable,.*data held' "$list")" -eq 100 ]
}

@test "census: mimalloc 3: the blocks of its map of pages, and what is lost of them (T8)" { by_books map 3.0; }

@test "census: mimalloc 2: the blocks of its slices, and what is lost of them (T8)" {
	by_books slices 2.1.9
	grep -q '^  1 word is left from lists of free blocks, no pointers$' "$text"
}

@test "census: mimalloc 1: the blocks of its segments, and what is lost of them (T8)" { by_books segments 1.9; }

# 23 blocks are lost. mimalloc leaves the link of a free list in the first word of a block: so some that are lost lead to
# others, and one in freed memory may be held by such a word.
@test "census: mimalloc: verdicts without a trace: what is lost is found" {
	local lost
	on_library libmimalloc.so.2
	LD_PRELOAD=$PRELOAD kinds leak_kinds
	built
	census
	grep -q '64-bit, mimalloc' "$text"
	lost=$(grep -cE ',(definite|indirect)' "$list")
	[ "$lost" -ge 20 ] && [ "$lost" -le 23 ]
	[ "$(grep -c ',definite' "$list")" -ge 4 ]
	tell
	ended "$TARGET" 3
}

# bats test_tags=full
@test "census: tcmalloc: the blocks of programs with 1, 3 and 8 threads are those that they have" {
	on_library libtcmalloc_minimal.so
	all_equal tcmalloc 24
	[ "$(grep -c ',cached,' "$list")" -gt 500 ]
}

# bats test_tags=full
@test "census: tcmalloc: after large blocks were freed, and of a core" {
	command -v gcore >/dev/null || skip "no gcore here: install gdb"
	on_library libtcmalloc_minimal.so
	counted env LD_PRELOAD="$PRELOAD" "$T/census" 1 3 4000 large
	census
	equals_truth 24
	adds_up
	cp "$list" "$BATS_TEST_TMPDIR/live.csv"
	gcore -o "$BATS_TEST_TMPDIR/core" "$TARGET" >/dev/null 2>&1
	TARGET=$BATS_TEST_TMPDIR/core.$TARGET
	census
	# A core has fewer names, so owners may be called otherwise.
	cmp <(cut -d, -f1-5 "$list") <(cut -d, -f1-5 "$BATS_TEST_TMPDIR/live.csv")
}

@test "census: tcmalloc since 2.17: a map whose leaves do not begin with a page" {
	start "$T/like_tcmalloc"
	TARGET=$PID
	wait_for says like_tcmalloc ready
	census
	grep -q '64-bit, tcmalloc' "$text"
	[ "$(grep -c ',64,live' "$list")" -eq 512 ]
}

# All of the heap lies in brk memory below 2 GiB, which the first word of the map is for.
@test "census: tcmalloc: a program at fixed addresses" {
	on_library libtcmalloc_minimal.so
	counted env LD_PRELOAD="$PRELOAD" "$T/census-nopie" 3 3 4000
	census
	equals_truth 24
	adds_up
	none_is_lost
	ends_well
}

# The link of a free list stays in the first word of a block, so some that are lost lead to others.
@test "census: tcmalloc: verdicts without a trace: what is lost is found" {
	on_library libtcmalloc_minimal.so
	LD_PRELOAD=$PRELOAD kinds leak_kinds
	built
	census
	[ "$(grep -cE ',(definite|indirect)' "$list")" -eq 23 ]
	[ "$(grep -c ',definite' "$list")" -ge 4 ]
	[ "$(grep -c ',possible' "$list")" -eq 4 ]
	[ "$("$HEAPTAP" doctor --json "$TARGET" | jq -r '.targets[0].census')" = tcmalloc ]
	tell
	ended "$TARGET" 3
}

# has_both ONE OTHER NUMBER: both are named, the other with so many blocks, and the verdicts are on all blocks
has_both() {
	local all
	census
	all=$(unbroken <"$text")
	grep -Eq "64-bit, .* and .*: stopped" <<<"$all"
	grep -Eq "(, |and )$1[^(]* [(][0-9,]+ blocks[)]" <<<"$all"
	grep -Eq "(, |and )$2[^(]* [(]$3 blocks[)]" <<<"$all"
	no_line 'not listed' "$text"
	[ "$(grep -cE ',(80|88),live,.*,definite' "$list")" -eq 10 ]
	[ "$(grep -cE ',(80|88),live,.*,reachable' "$list")" -eq 100 ]
	[ "$(grep -cE ',48,live,.*,reachable' "$list")" -ge 100 ]
	[ "$(grep -c ',definite' "$list")" -eq 10 ]
}

# The blocks of one lead to those of the other.
# bats test_tags=full
@test "census: a program with two allocators: the blocks of both are listed (T13)" {
	local library
	on_library libmimalloc.so.2
	for library in glibc jemalloc tcmalloc; do
		[ "$library" = glibc ] || on_library "lib$library(_minimal)?[.]so"
		start env LD_PRELOAD="$([ "$library" = glibc ] || echo "$PRELOAD")" "$T/two_allocators" libmimalloc.so.2
		TARGET=$PID
		wait_for says env ready
		has_both "$library" mimalloc 100
	done
}

# A copy of its file is another jemalloc, whose malloc the program calls by its address.
@test "census: a program with two jemallocs: the blocks of both are listed (T13)" {
	on_library libjemalloc
	cp "$PRELOAD" "$BATS_TEST_TMPDIR/libjemalloc-too.so"
	start env LD_PRELOAD="$PRELOAD:$BATS_TEST_TMPDIR/libjemalloc-too.so" \
		"$T/two_allocators" "$BATS_TEST_TMPDIR/libjemalloc-too.so" malloc
	TARGET=$PID
	wait_for says env ready
	has_both jemalloc jemalloc '[0-9,]+'
}

# Cookies of the two are disguised by two numbers.
@test "census: a program with two mimallocs of one version: the blocks of both are listed (T13)" {
	on_library libmimalloc.so.2
	cp "$PRELOAD" "$BATS_TEST_TMPDIR/libmimalloc-too.so"
	start env LD_PRELOAD="$PRELOAD" "$T/two_allocators" "$BATS_TEST_TMPDIR/libmimalloc-too.so" mi_malloc deep
	TARGET=$PID
	wait_for says env ready
	has_both mimalloc mimalloc 100
}

# The blocks of an allocator that cannot be read are in no verdict.
@test "census: beside an allocator whose books are not known: the first line says so, and --fail-on ends with 6 (T13)" {
	on_library libtcmalloc_minimal_debug
	cp "$PRELOAD" "$BATS_TEST_TMPDIR/libhoard.so"
	start env "$T/two_allocators" "$BATS_TEST_TMPDIR/libhoard.so" malloc
	TARGET=$PID
	wait_for says env ready
	run --separate-stderr "$HEAPTAP" scan -q --fail-on definite:1M "$TARGET"
	[ "$status" -eq 6 ]
	[[ $(unbroken <<<"$output") == leaks*'; the blocks of Hoard are not listed '* ]]
	run "$HEAPTAP" scan -q --fail-on definite "$TARGET"
	[ "$status" -eq 1 ]
}

@test "census: an allocator whose books are not known is named" {
	# Each of its blocks has a header.
	on_library libtcmalloc_minimal_debug
	start env LD_PRELOAD="$PRELOAD" sleep 600
	TARGET=$PID
	wait_for grep -q libtcmalloc "/proc/$TARGET/maps"
	wait_for grep -q sleep "/proc/$TARGET/comm"
	run --separate-stderr "$HEAPTAP" scan "$TARGET"
	[ "$status" -eq 3 ]
	[[ $stderr == *"it has tcmalloc, whose books heaptap cannot read"*"heaptap attach $TARGET"* ]]
	run "$HEAPTAP" doctor "$TARGET"
	[[ $output == *'no census: it has tcmalloc, whose books heaptap cannot read'* ]]
	[ "$("$HEAPTAP" doctor --json "$TARGET" | jq -r '.targets[0].census')" = null ]
	attached "$TARGET"
	detach
	jq -e '.processes[0].verdict | test("since the attach .no census can judge older ones.")' "$report"
	untouched "$TARGET"
}

# Each allocator; the lost blocks that were found in per cent, by run, attach and census.
# bats test_tags=full
@test "census: verdicts by run, attach and census agree on shapes of containers, with each allocator" {
	run env HEAPTAP="$HEAPTAP" O="$O" "$ROOT/tests/verdicts/allocators.sh" plain vectors queues freed_arrays \
		consecutive_pointers
	echo "$output"
	[ "$status" -eq 0 ]
	perl -e 'while (<>) {
			my (undef, $shape, @cells) = map { s/^ | $//gr } split /\|/;
			for (grep { /\d/ } @cells) {
				my ($run, $attach, $census) = split /\//;
				$_ //= $run for $attach, $census;
				$nr++;
				$bad .= " $shape: $_" if abs($run - $census) > 2 || abs($run - $attach) > 5 || ($run < 98 && $shape !~ /^consecutive/);
			}
		}
		if ($bad || $nr < 5) { print "differ:$bad\n"; exit 1 }' <<<"$output"
}

# damaged FILE SEED: write 200 words of nonsense over FILE: small and large numbers, addresses that FILE has, shifted ones
damaged() {
	perl -e 'my ($path, $seed) = @ARGV;
		srand($seed);
		open(my $f, "+<", $path) or die;
		binmode $f;
		my $size = -s $f;
		for (1 .. 200) {
			my ($from, $to, $word) = map { int(rand($size / 8 - 64)) * 8 + 4096 < $size - 8 ? int(rand($size / 8 - 1024)) * 8 + 4096 : 4096 } 1 .. 2;
			seek($f, $from, 0);
			read($f, $word, 8);
			my $kind = int(rand(6));
			$word = pack("Q", int(rand(4096))) if $kind == 0;
			$word = pack("Q", ~0) if $kind == 1;
			$word = pack("Q", unpack("Q", $word) + 8 * (int(rand(64)) - 32)) if $kind == 2;
			$word = pack("Q", unpack("Q", $word) ^ (1 << int(rand(48)))) if $kind == 3;
			$to = $from if $kind == 2 || $kind == 3;
			seek($f, $to, 0);
			print $f $word;
		}' "$1" "$2"
}

# survives PROGRAM...: the census of its core ends with a documented status, whatever the books say
survives() {
	local round core
	counted "$@" 1 2 400
	gcore -o "$BATS_TEST_TMPDIR/core" "$TARGET" >/dev/null 2>&1
	ends_well
	core=$BATS_TEST_TMPDIR/core.$TARGET
	for ((round = 1; round <= HEAPTAP_ROUNDS; round++)); do
		cp "$core" "$BATS_TEST_TMPDIR/damaged"
		damaged "$BATS_TEST_TMPDIR/damaged" "$round"
		run timeout 60 "$HEAPTAP" scan -q -o "$BATS_TEST_TMPDIR/damaged.json" --force "$BATS_TEST_TMPDIR/damaged"
		echo "$1 round $round: status $status: $output"
		[ "$status" -le 6 ]
	done
	rm -f "$core" "$BATS_TEST_TMPDIR/lines" "$BATS_TEST_TMPDIR/damaged"
}

# bats test_tags=rounds,full
@test "census: books of five allocators with random damage: each census ends" {
	command -v gcore >/dev/null || skip "no gcore here: install gdb"
	survives "$T/census"
	[ ! -x "$T/census-musl" ] || survives "$T/census-musl"
	for library in libjemalloc libmimalloc.so.2 libtcmalloc_minimal.so; do
		PRELOAD=$(ldconfig -p | awk -v want="^$library" '$1 ~ want && $0 ~ /x86-64|AArch64/ { print $NF; exit }')
		[ -z "$PRELOAD" ] || survives env LD_PRELOAD="$PRELOAD" "$T/census"
	done
}
