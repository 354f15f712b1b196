/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Verdicts on memory made by hand: memcheck's cases and heuristics, cycles, roots, and memory that is not a root. */
#include "tests/unit/scan_checks.h"
#include "user/scan/scan_why.h"

/* The nine cases of memcheck's manual. AAA is lost or held, as the case says. ? is a pointer to the middle. */
static void nine_cases(void **state)
{
	static const struct {
		int root_to_a, root_to_b, a_to_b; /* -1: no pointer; else offset of the pointer */
		enum scan_verdict a, b;
	} cases[] = {
		{ -1, 0, -1, SCAN_NONE, SCAN_REACHABLE },     { 0, -1, 0, SCAN_REACHABLE, SCAN_REACHABLE },
		{ -1, -1, -1, SCAN_NONE, SCAN_DEFINITE },     { -1, -1, 0, SCAN_DEFINITE, SCAN_INDIRECT },
		{ -1, 40, -1, SCAN_NONE, SCAN_POSSIBLE },     { 0, -1, 40, SCAN_REACHABLE, SCAN_POSSIBLE },
		{ 40, -1, 0, SCAN_POSSIBLE, SCAN_POSSIBLE },  { 40, -1, 40, SCAN_POSSIBLE, SCAN_POSSIBLE },
		{ -1, -1, 40, SCAN_DEFINITE, SCAN_INDIRECT },
	};
	taddr_t a[ARRAY_SIZE(cases)], b[ARRAY_SIZE(cases)];

	(void)state;
	for (unsigned int i = 0; i < ARRAY_SIZE(cases); i++) {
		a[i] = cases[i].a == SCAN_NONE ? 0 : block(2 * i);
		b[i] = block(2 * i + 1);
		if (cases[i].root_to_a >= 0)
			put(GLOBALS + 16 * i, a[i] + (u64)cases[i].root_to_a);
		if (cases[i].root_to_b >= 0)
			put(GLOBALS + 16 * i + 8, b[i] + (u64)cases[i].root_to_b);
		if (cases[i].a_to_b >= 0)
			put(a[i] + 16, b[i] + (u64)cases[i].a_to_b);
	}
	scan_all();
	for (unsigned int i = 0; i < ARRAY_SIZE(cases); i++) {
		if (a[i])
			assert_verdict(a[i], cases[i].a);
		assert_verdict(b[i], cases[i].b);
	}
}

static void possible_is_lifted(void **state)
{
	taddr_t a = block(0), b = block(1), c = block(2);

	(void)state;
	put(GLOBALS, a + 8);
	put(a, b);
	put(GLOBALS + PAGE, c); /* found later, counts too */
	put(c, a);
	scan_all();
	assert_verdict(a, SCAN_REACHABLE);
	assert_verdict(b, SCAN_REACHABLE);
}

static void heuristics(void **state)
{
	taddr_t string = block_at(HEAP + 0x1000, 24 + 10 + 1), length = block_at(HEAP + 0x1100, 8 + 50);
	taddr_t array = block_at(HEAP + 0x1200, 8 + 5 * 16), object = block_at(HEAP + 0x1300, 64);
	taddr_t tables = GLOBALS + PAGE;

	(void)state;
	put(string, 7);
	put(string + 8, 10);
	put(length, 50);
	put(array, 5);
	/* Two virtual tables, each behind its offset and type. */
	put(tables + 16, TEXT + 4);
	put(tables + 24, (u64)-16);
	put(tables + 40, TEXT + 8);
	put(object, tables + 16);
	put(object + 16, tables + 40);
	put(tables + 32, GLOBALS);
	put(GLOBALS + 0, string + 24);
	put(GLOBALS + 8, length + 8);
	put(GLOBALS + 16, array + 8);
	put(GLOBALS + 24, object + 16);
	scan_all();
	assert_verdict(string, SCAN_REACHABLE);
	assert_verdict(length, SCAN_REACHABLE);
	assert_verdict(array, SCAN_REACHABLE);
	assert_verdict(object, SCAN_REACHABLE);
	scan_free(w.scan);
	w.next = 0;
	w.options.no_heuristics = SCAN_HEURISTICS;
	scan_all();
	assert_verdict(string, SCAN_POSSIBLE);
	assert_verdict(length, SCAN_POSSIBLE);
	assert_verdict(array, SCAN_POSSIBLE);
	assert_verdict(object, SCAN_POSSIBLE);
}

static void heuristics_need_their_words(void **state)
{
	taddr_t string = block_at(HEAP + 0x1000, 24 + 10 + 1), length = block_at(HEAP + 0x1100, 8 + 50);
	taddr_t array = block_at(HEAP + 0x1200, 8 + 5 * 16), object = block_at(HEAP + 0x1300, 64);

	(void)state;
	put(string, 11); /* longer than its room */
	put(string + 8, 10);
	put(length, 49);
	put(array, 7); /* does not divide the size */
	put(object, GLOBALS + 64);
	put(object + 16, GLOBALS + 64); /* no functions there */
	put(GLOBALS + 0, string + 24);
	put(GLOBALS + 8, length + 8);
	put(GLOBALS + 16, array + 8);
	put(GLOBALS + 24, object + 16);
	scan_all();
	assert_verdict(string, SCAN_POSSIBLE);
	assert_verdict(length, SCAN_POSSIBLE);
	assert_verdict(array, SCAN_POSSIBLE);
	assert_verdict(object, SCAN_POSSIBLE);
}

/* A table of hashbrown: entries, and behind them a byte for each of @nr and 16 more. Pointers lead between the two. */
static taddr_t rust_table(u32 n, u64 entry, u64 nr)
{
	return block_at(HEAP + 0x1000 + 0x1000ULL * n, entry * nr + nr + 16);
}

static void rust_tables(void **state)
{
	taddr_t newer = rust_table(0, 24, 8), older = rust_table(1, 48, 32), small = rust_table(2, 16, 4);
	taddr_t full = rust_table(3, 16, 8), odd = rust_table(4, 16, 8), longer = rust_table(5, 16, 8);
	const struct {
		taddr_t first;
		u64 words[3];
	} rows[] = {
		{ newer + 24 * 8, { 7, 3, 4 } }, { 31, { older + 48 * 32, 28, 0 } },
		{ small + 64, { 3, 0, 3 } },	 { full + 128, { 7, 4, 5 } }, /* more entries than room */
		{ odd + 128, { 6, 3, 3 } },				      /* no power of two */
		{ longer + 112, { 7, 3, 4 } },
	};

	(void)state;
	for (u32 i = 0; i < ARRAY_SIZE(rows); i++) {
		put(GLOBALS + 64 * i, rows[i].first);
		for (u32 k = 0; k < 3; k++)
			put(GLOBALS + 64 * i + 8 + 8 * k, rows[i].words[k]);
	}
	scan_all();
	assert_verdict(newer, SCAN_REACHABLE);
	assert_verdict(older, SCAN_REACHABLE);
	assert_verdict(small, SCAN_REACHABLE);
	assert_verdict(full, SCAN_POSSIBLE);
	assert_verdict(odd, SCAN_POSSIBLE);
	assert_verdict(longer, SCAN_POSSIBLE);
}

/* A table of Abseil: a header, a byte for each of @nr slots and 16 more, and slots. Each word of a global is told. */
static void abseil_tables(void **state)
{
	taddr_t tables[7];
	const struct {
		u64 words[4]; /* 1: the control bytes, 2: the slots */
		u32 header, nr;
		enum scan_verdict verdict;
	} rows[] = {
		{ { 7, 5 << 1, 1, 2 }, 8, 7, SCAN_REACHABLE },
		{ { 1, 2, 31, 9 }, 16, 31, SCAN_REACHABLE },
		{ { 1, 2, 9, 31 }, 8, 31, SCAN_REACHABLE },
		{ { 6, 5 << 1, 1, 2 }, 8, 7, SCAN_POSSIBLE },	/* no power of two */
		{ { 31, 5 << 1, 1, 2 }, 8, 7, SCAN_POSSIBLE },	/* not that many */
		{ { 7, 5 << 1, 1, 0 }, 8, 7, SCAN_POSSIBLE },	/* no slots */
		{ { 7, 5 << 1, 1, 2 }, 128, 7, SCAN_POSSIBLE }, /* no such header */
	};

	(void)state;
	for (u32 i = 0; i < ARRAY_SIZE(rows); i++) {
		u64 control = rows[i].header, slots = (control + rows[i].nr + 16 + 7) & ~7ULL;

		tables[i] = block_at(HEAP + 0x1000 + 0x1000ULL * i, slots + 24ULL * rows[i].nr);
		for (u32 k = 0; k < 4; k++) {
			u64 word = rows[i].words[k], to = word == 1 ? control : slots;

			put(GLOBALS + 64 * i + 8 * k, word == 1 || word == 2 ? tables[i] + to : word);
		}
	}
	scan_all();
	for (u32 i = 0; i < ARRAY_SIZE(rows); i++)
		assert_verdict(tables[i], rows[i].verdict);
}

/* The pointer of new T[0] leads behind its one word. The end of any other block does not belong to it. */
static void empty_array(void **state)
{
	taddr_t array = block_at(HEAP + 0x1000, 8), full = block_at(HEAP + 0x1100, 8);
	taddr_t longer = block_at(HEAP + 0x1200, 16), holder = block_at(HEAP + 0x1300, 16);
	taddr_t held = block_at(HEAP + 0x1400, 8);

	(void)state;
	put(full, 3);
	put(holder, held + 8);
	put(GLOBALS + 0, array + 8);
	put(GLOBALS + 8, full + 8);
	put(GLOBALS + 16, longer + 16);
	put(GLOBALS + 24, holder);
	scan_all();
	assert_verdict(array, SCAN_REACHABLE);
	assert_verdict(held, SCAN_REACHABLE);
	assert_verdict(full, SCAN_POSSIBLE);
	assert_verdict(longer, SCAN_DEFINITE);
	scan_free(w.scan);
	w.next = 0;
	w.options.no_heuristics = SCAN_HEURISTICS;
	scan_all();
	assert_verdict(array, SCAN_DEFINITE);
	assert_verdict(held, SCAN_DEFINITE);
}

/* Heuristics count for pointers between blocks too, also to a block at a higher address. */
static void heuristics_between_blocks(void **state)
{
	taddr_t holder = block(0), array = block_at(HEAP + 0x1200, 8 + 5 * 16), child = block(1);

	(void)state;
	put(array, 5);
	put(array + 8, child);
	put(holder, array + 8);
	put(GLOBALS, holder);
	scan_all();
	assert_verdict(array, SCAN_REACHABLE);
	assert_verdict(child, SCAN_REACHABLE);
}

/* Each page is a piece here. Parts of a block on both sides of a border belong together. */
static void pieces_meet_in_blocks(void **state)
{
	taddr_t tables = GLOBALS + PAGE, near = block_at(HEAP + PAGE - 32, 80),
		wide = block_at(HEAP + 2 * PAGE - 16, 3 * PAGE), first = block_at(HEAP + 8 * PAGE, 16),
		second = block_at(HEAP + 9 * PAGE, 16), last = block_at(HEAP + 7 * PAGE, 16);

	(void)state;
	put(tables + 16, TEXT + 4);
	put(tables + 40, TEXT + 8);
	put(near, tables + 16);
	put(near + 24, first);
	put(near + 48, tables + 40); /* in the next piece */
	put(near + 56, second);
	put(wide, tables + 16);
	put(wide + 2 * PAGE, tables + 40);
	put(wide + 3 * PAGE - 8, last);
	put(GLOBALS, near + 48);
	put(GLOBALS + 8, wide + 2 * PAGE);
	scan_all();
	assert_verdict(near, SCAN_REACHABLE);
	assert_verdict(wide, SCAN_REACHABLE);
	assert_verdict(first, SCAN_REACHABLE);
	assert_verdict(second, SCAN_REACHABLE);
	assert_verdict(last, SCAN_REACHABLE);
}

/* The leader of a cycle is its oldest block, wherever the block lies and whatever points into the cycle. */
static void cycle_has_oldest_leader(void **state)
{
	taddr_t c = block(9), a = block(2), b = block(5), tail = block(1);
	struct scan_block_info *leaders;
	size_t nr;

	(void)state;
	put(a, b);
	put(b, c);
	put(c, a);
	put(b + 8, tail);
	scan_all();
	assert_verdict(c, SCAN_DEFINITE); /* allocated first */
	assert_verdict(a, SCAN_INDIRECT);
	assert_verdict(b, SCAN_INDIRECT);
	assert_int_equal(info_of(tail).leader, c);
	assert_int_equal(scan_leaders(w.scan, &leaders, &nr), 0);
	assert_int_equal(nr, 1);
	assert_int_equal(leaders[0].indirect_blocks, 3);
	assert_int_equal(leaders[0].indirect_bytes, 3 * 64);
	free(leaders);
}

/* A young block points into an old cycle, not to its oldest block: only the young block is a leader. */
static void head_of_a_cycle(void **state)
{
	taddr_t a = block(0), b = block(1), head = block(2);

	(void)state;
	put(a, b);
	put(b, a);
	put(head, b);
	scan_all();
	assert_verdict(head, SCAN_DEFINITE);
	assert_verdict(a, SCAN_INDIRECT);
	assert_verdict(b, SCAN_INDIRECT);
}

static void shared_counts_once(void **state)
{
	taddr_t one = block(0), two = block(1), shared = block(2), below = block(3);
	struct scan_result result;

	(void)state;
	put(one, shared);
	put(two, shared);
	put(shared, below);
	scan_all();
	result = scan_result(w.scan);
	assert_int_equal(info_of(shared).leader, one); /* the older */
	assert_int_equal(info_of(below).leader, one);
	assert_int_equal(result.sums.of[SCAN_DEFINITE].blocks, 2);
	assert_int_equal(result.sums.of[SCAN_INDIRECT].blocks, 2);
	assert_int_equal(result.sums.of[SCAN_INDIRECT].bytes, 128);
}

static void self_pointer_holds_nothing(void **state)
{
	taddr_t a = block(0);

	(void)state;
	put(a, a);
	put(a + 8, a + 16);
	scan_all();
	assert_verdict(a, SCAN_DEFINITE);
}

static void edges_of_blocks(void **state)
{
	taddr_t empty = block_at(HEAP + 0x1000, 0), full = block_at(HEAP + 0x1010, 16),
		next = block_at(HEAP + 0x1030, 16);

	(void)state;
	put(GLOBALS, empty);
	put(GLOBALS + 8, full + 16); /* one behind the end is not inside */
	put(GLOBALS + 16, next + 15);
	scan_all();
	assert_verdict(empty, SCAN_REACHABLE);
	assert_verdict(full, SCAN_DEFINITE);
	assert_verdict(next, SCAN_POSSIBLE);
}

/* Freed memory and the allocator's own memory are not roots. After an attach they are. */
static void heap_bytes_are_no_roots(void **state)
{
	taddr_t a = block(0);

	(void)state;
	put(HEAP + 0x8000, a);
	scan_all();
	assert_verdict(a, SCAN_DEFINITE);
	scan_free(w.scan);
	w.next = 0;
	w.options.is_partial = true;
	scan_all();
	assert_verdict(a, SCAN_REACHABLE);
}

/* A .bss that is joined with the heap (no address randomization) stays a root. */
static void bss_before_the_heap_is_a_root(void **state)
{
	taddr_t a = block_at(HEAP + 2 * PAGE, 64);

	(void)state;
	w.snap.heap_start = HEAP + PAGE;
	put(HEAP + 64, a);
	scan_all();
	assert_verdict(a, SCAN_REACHABLE);
}

/* Static programs have the TLS of the main thread at the start of the heap. */
static void tls_in_the_heap_is_a_root(void **state)
{
	taddr_t a = block_at(HEAP + 2 * PAGE, 64), b = block_at(HEAP + 3 * PAGE, 64);

	(void)state;
	w.threads[w.snap.nr_threads++] = (struct snapshot_thread){ .tid = 1, .sp = STACK, .tp = HEAP + 256 };
	add_word(HEAP + 256, 0, 168);
	put(HEAP + 64, a);
	put(HEAP + 2 * PAGE + 512, b); /* another hole */
	scan_all();
	assert_verdict(a, SCAN_REACHABLE);
	assert_verdict(b, SCAN_DEFINITE);
}

/* In anonymous memory, pages with a block belong to the allocator. Other pages may belong to the program. */
static void anonymous_pages(void **state)
{
	taddr_t a = block(0), b = block(1), held;

	(void)state;
	add_map(ANON, 4 * PAGE, "rw-p", 0, "");
	held = block_at(ANON + PAGE + 16, 64);
	put(GLOBALS, held);
	put(ANON + PAGE + 512, a);     /* in the page of a block */
	put(ANON + 2 * PAGE + 512, b); /* next page */
	scan_all();
	assert_verdict(a, SCAN_DEFINITE);
	assert_verdict(b, SCAN_REACHABLE);
}

static void glibc_arena_is_no_root(void **state)
{
	taddr_t a = block(0), base = ANON + 0x4000000, held;

	(void)state;
	add_map(base, 64 * PAGE, "rw-p", 0, "");
	held = block_at(base + PAGE + 16, 64);
	put(base, base + 48); /* arena, previous part, size, writable */
	put(base + 16, 8 * PAGE);
	put(base + 24, 8 * PAGE);
	put(GLOBALS, held);
	put(base + 5 * PAGE, a);
	scan_all();
	assert_verdict(a, SCAN_DEFINITE);
	assert_verdict(held, SCAN_REACHABLE);
}

/* The main arena points to chunks, which begin in the last bytes of the block before. */
static void main_arena_is_no_root(void **state)
{
	taddr_t a = block_at(HEAP + 0x100, 72), b = block(3), bins = GLOBALS + 1024;

	(void)state;
	w.maps[0].path = (char *)(uintptr_t) "/lib/libc.so.6";
	for (u64 i = 0; i < 127; i++) {
		put(bins + 16 * i, bins + 16 * i - 16);
		put(bins + 16 * i + 8, bins + 16 * i - 16);
	}
	put(bins - 16, a + 64); /* top */
	put(bins + 16 * 5, a + 64);
	put(bins + 16 * 5 + 8, a + 64);
	put(bins - 16 * 8, b + 8); /* before the arena */
	put(bins + 254 * 8, b + 8);
	scan_all();
	assert_verdict(a, SCAN_DEFINITE);
	assert_verdict(b, SCAN_POSSIBLE);
}

/* Pointers below the red zone of a thread's own stack do not count. On another stack they do. */
static void stacks(void **state)
{
	taddr_t live = block(0), dead = block(1), red = block(2), other = block(3), tls = block(4);

	(void)state;
	add_map(STACK - PAGE, PAGE, "---p", 0, "");
	add_map(STACK, 8 * PAGE, "rw-p", 0, "");
	add_map(STACK + 16 * PAGE, 2 * PAGE, "rw-p", 0, "");
	w.threads[w.snap.nr_threads++] =
		(struct snapshot_thread){ .tid = 5, .sp = STACK + 4 * PAGE, .tp = STACK + 7 * PAGE };
	w.threads[w.snap.nr_threads++] =
		(struct snapshot_thread){ .tid = 6, .sp = STACK + 17 * PAGE, .tp = GLOBALS + 64 };
	add_word(STACK + 4 * PAGE, 0, 152);
	add_word(STACK + 7 * PAGE, 0, 168);
	add_word(STACK + 17 * PAGE, 1, 152);
	put(STACK + 5 * PAGE, live);
	put(STACK + 4 * PAGE - 64, red);
	put(STACK + 4 * PAGE - 256, dead);
	put(STACK + 7 * PAGE + 64, tls);
	put(STACK + 16 * PAGE, other);
	scan_all();
	assert_verdict(live, SCAN_REACHABLE);
	assert_verdict(red, SCAN_REACHABLE);
	assert_verdict(tls, SCAN_REACHABLE);
	assert_verdict(other, SCAN_REACHABLE);
	assert_verdict(dead, SCAN_DEFINITE);
}

/* A stack in a block of malloc: the thread on it holds the block and all that the block points to. */
static void stack_in_a_block(void **state)
{
	taddr_t stack = block_at(HEAP + PAGE, 4 * PAGE), a = block(0);

	(void)state;
	w.threads[w.snap.nr_threads++] = (struct snapshot_thread){ .tid = 5, .sp = stack + 2 * PAGE };
	add_word(stack + 2 * PAGE, 0, 152);
	put(stack + 3 * PAGE, a);
	scan_all();
	assert_verdict(stack, SCAN_REACHABLE);
	assert_verdict(a, SCAN_REACHABLE);
}

static void registers_and_kernel(void **state)
{
	taddr_t a = block(0), b = block(1), c = block(2);
	struct scan_chain *chain;

	(void)state;
	w.threads[w.snap.nr_threads++] = (struct snapshot_thread){ .tid = 5, .sp = STACK };
	add_word(a, 0, 40);
	add_word(b, SNAPSHOT_KERNEL, 9);
	put(b, c);
	scan_all();
	assert_verdict(a, SCAN_REACHABLE);
	assert_verdict(b, SCAN_REACHABLE);
	assert_int_equal(scan_why(w.scan, a, &chain), 0);
	assert_int_equal(chain->root.kind, ROOT_REGISTER);
	assert_int_equal(chain->root.tid, 5);
	free(chain);
	assert_int_equal(scan_why(w.scan, c, &chain), 0);
	assert_int_equal(chain->root.kind, ROOT_KERNEL);
	assert_int_equal(chain->root.where, 9);
	assert_int_equal(chain->nr, 2);
	assert_int_equal(chain->steps[0].addr, b);
	free(chain);
}

static void why_names_the_root(void **state)
{
	taddr_t a = block(0), b = block(1), c = block(2), head = block(3), lost = block(4);
	struct scan_chain *chain;

	(void)state;
	put(GLOBALS + 24, a);
	put(a, b + 40);
	put(b, c);
	put(head, lost);
	scan_all();
	assert_int_equal(scan_why(w.scan, c, &chain), 0);
	assert_int_equal(chain->root.kind, ROOT_MEMORY);
	assert_int_equal(chain->root.addr, GLOBALS + 24);
	assert_string_equal(chain->root.map->path, "/bin/x");
	assert_int_equal(chain->nr, 3);
	assert_int_equal(chain->steps[1].addr, b);
	assert_int_equal(chain->steps[1].offset, 40);
	free(chain);
	assert_int_equal(scan_why(w.scan, lost + 8, &chain), 0);
	assert_int_equal(chain->root.kind, ROOT_NONE);
	assert_int_equal(chain->steps[0].addr, head);
	free(chain);
	assert_int_equal(scan_why(w.scan, HEAP + 8, &chain), -ENOENT);
}

/* One search answers several questions, in any order and of any verdict. Globals are named before registers. */
static void why_goes_on(void **state)
{
	taddr_t a = block(0), b = block(1), middle = block(2), head = block(3), lost = block(4),
		alone = block(5);
	const taddr_t asked[] = { b, lost, middle, a, alone, lost, b };
	const taddr_t first[] = { a, head, middle, a, alone, head, a };
	struct scan_whys *whys;
	struct scan_chain *chain;

	(void)state;
	w.threads[w.snap.nr_threads++] = (struct snapshot_thread){ .tid = 5, .sp = STACK };
	add_word(a, 0, 40);
	add_word(b, 0, 48);
	put(GLOBALS + 24, a);
	put(a, b);
	put(GLOBALS + 32, middle + 8);
	put(head, lost);
	scan_all();
	assert_int_equal(scan_whys_new(&whys, w.scan), 0);
	for (size_t i = 0; i < sizeof(asked) / sizeof(asked[0]); i++) {
		assert_int_equal(scan_whys_find(whys, asked[i], &chain), 0);
		assert_int_equal(chain->steps[0].addr, first[i]);
		assert_int_equal(chain->steps[chain->nr - 1].addr, asked[i]);
		assert_int_equal(chain->root.kind,
				 first[i] == a || first[i] == middle ? ROOT_MEMORY : ROOT_NONE);
		free(chain);
	}
	scan_whys_free(whys);
}

static void word_sizes_and_orders(void **state)
{
	(void)state;
	for (int variant = 0; variant < 3; variant++) {
		taddr_t a, b, c;

		if (variant) {
			teardown(NULL);
			setup(NULL);
		}
		w.snap.word_size = variant == 2 ? 8 : 4;
		w.snap.is_big_endian = variant > 0;
		a = block(0);
		b = block(1);
		c = block(2);
		put(GLOBALS + 4 * (variant < 2), a);
		put(a + 12 - 4 * (variant == 2), b);
		scan_all();
		assert_verdict(a, SCAN_REACHABLE);
		assert_verdict(b, SCAN_REACHABLE);
		assert_verdict(c, SCAN_DEFINITE);
	}
}

static void tagged_and_unaligned(void **state)
{
	taddr_t a = block(0), b = block(1), c = block(2);

	(void)state;
	put(GLOBALS, a | 0xab00000000000000);
	put(GLOBALS + 19, b);
	put(GLOBALS + PAGE - 3, c); /* across two chunks */
	scan_all();
	assert_verdict(a, SCAN_DEFINITE);
	assert_verdict(b, SCAN_DEFINITE);
	scan_free(w.scan);
	w.next = 0;
	w.options.pointer_mask = UINT64_MAX >> 8;
	w.options.want_unaligned = true;
	scan_all();
	assert_verdict(a, SCAN_REACHABLE);
	assert_verdict(b, SCAN_REACHABLE);
	assert_verdict(c, SCAN_REACHABLE);
}

/* If a thread could not be stopped, or memory could not be read, nothing is definite (H1, H3). */
static void incomplete_is_unsure(void **state)
{
	taddr_t a = block(0), b = block(1), c = block(2);

	(void)state;
	put(GLOBALS, c + 8);
	put(a, b);
	w.snap.nr_unstopped = 1;
	scan_all();
	assert_verdict(a, SCAN_UNSURE);
	assert_verdict(b, SCAN_UNSURE);
	assert_verdict(c, SCAN_POSSIBLE);
	scan_free(w.scan);
	w.next = 0;
	w.snap.nr_unstopped = 0;
	w.snap.skipped_bytes[SKIP_FAULT] = PAGE;
	scan_all();
	assert_verdict(a, SCAN_UNSURE);
	assert_int_equal(scan_result(w.scan).skipped_bytes, PAGE);
}

/* A free may have been lost: the block is not lost, and neither are blocks that only it leads to. */
static void tainted_is_unsure(void **state)
{
	taddr_t a = block(0), b = block(1), c = block(2);

	(void)state;
	w.blocks[0].is_unsure = true;
	put(a, b);
	scan_all();
	assert_verdict(a, SCAN_UNSURE);
	assert_verdict(b, SCAN_UNSURE);
	assert_verdict(c, SCAN_DEFINITE);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(nine_cases),
		TEST(possible_is_lifted),
		TEST(heuristics),
		TEST(rust_tables),
		TEST(abseil_tables),
		TEST(heuristics_need_their_words),
		TEST(empty_array),
		TEST(heuristics_between_blocks),
		TEST(pieces_meet_in_blocks),
		TEST(cycle_has_oldest_leader),
		TEST(head_of_a_cycle),
		TEST(shared_counts_once),
		TEST(self_pointer_holds_nothing),
		TEST(edges_of_blocks),
		TEST(heap_bytes_are_no_roots),
		TEST(bss_before_the_heap_is_a_root),
		TEST(tls_in_the_heap_is_a_root),
		TEST(anonymous_pages),
		TEST(glibc_arena_is_no_root),
		TEST(main_arena_is_no_root),
		TEST(stacks),
		TEST(stack_in_a_block),
		TEST(registers_and_kernel),
		TEST(why_names_the_root),
		TEST(why_goes_on),
		TEST(word_sizes_and_orders),
		TEST(tagged_and_unaligned),
		TEST(incomplete_is_unsure),
		TEST(tainted_is_unsure),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
