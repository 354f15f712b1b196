/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Books of glibc that are made to mislead: each walk ends, and no memory is walked twice. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "user/census/census_walk.h"
#include "user/lib/array.h"
#include "user/scan/snapshot_make.h"

/* The layout of 2.28 with words of 8 bytes. */
enum {
	TOP = 96,
	BINS = 112,
	NEXT = BINS + 127 * 16 + 16,
	SYSTEM = NEXT + 24,
	ARENA_SIZE = NEXT + 40,
	HEADER = 0x30, /* of a heap */
	SIZE = 0x20000,
	LIBC_SIZE = 0x10000,
	CHUNK = 0x40,
	NR_CHUNKS = 10,
	GAP = 4 << 20,
};

#define LIBC	 0x7f0000000000
#define MAIN	 (LIBC + 0x800)
#define FIRST	 0x10000000ULL
#define ARENA	 (FIRST + HEADER)
#define SECOND	 0x14000000ULL
#define THIRD	 0x18000000ULL
#define HUGE_MAP 0x100000000000
#define BRK	 0x20000000ULL

struct region {
	struct snapshot_map map;
	u8 *bytes; /* owned; NULL = there is nothing */
	u64 nr_reads;
};

struct process {
	struct snapshot snap;
	struct snapshot_map maps[8];
	struct region regions[8];
	struct census_blocks blocks;
};

static u64 clock_step_ns, now_ns, nr_looks;

/* The time stands, or goes on with each look. */
int clock_gettime(clockid_t clock, struct timespec *ts)
{
	(void)clock;
	nr_looks++;
	now_ns += clock_step_ns;
	*ts = (struct timespec){ .tv_sec = (time_t)(now_ns / 1000000000),
				 .tv_nsec = (long)(now_ns % 1000000000) };
	return 0;
}

static int fake_peek(struct snapshot *s, taddr_t addr, void *buf, size_t len)
{
	struct process *p = (struct process *)s;
	const struct snapshot_map *map = snapshot_map_find(s, addr);
	struct region *r = map ? &p->regions[map - p->maps] : NULL;

	if (!r)
		return -ENODATA;
	r->nr_reads++;
	if (!r->bytes || len > map->end - addr)
		return -ENODATA;
	memcpy(buf, r->bytes + (addr - map->start), len);
	return 0;
}

static const struct snapshot_ops fake_ops = { .name = "fake", .peek = fake_peek };

/* Add a mapping; addresses ascend. */
static struct region *add(struct process *p, taddr_t start, u64 len, bool has_bytes)
{
	size_t i = p->snap.nr_maps++;

	assert_true(i < ARRAY_SIZE(p->maps));
	p->maps[i] = (struct snapshot_map){ .start = start,
					    .end = start + len,
					    .path = (char *)(uintptr_t) "",
					    .is_readable = true,
					    .is_writable = true };
	if (has_bytes) {
		p->regions[i].bytes = calloc(1, len);
		assert_non_null(p->regions[i].bytes);
	}
	return &p->regions[i];
}

static void put(struct process *p, taddr_t at, u64 word)
{
	const struct snapshot_map *map = snapshot_map_find(&p->snap, at);

	assert_non_null(map);
	memcpy(p->regions[map - p->maps].bytes + (at - map->start), &word, sizeof(word));
}

static struct process *process_new(void)
{
	struct process *p = calloc(1, sizeof(*p));

	assert_non_null(p);
	p->snap = (struct snapshot){ .ops = &fake_ops, .word_size = 8, .maps = p->maps };
	clock_step_ns = 0;
	now_ns = 1000000000;
	nr_looks = 0;
	return p;
}

static void process_free(struct process *p)
{
	for (size_t i = 0; i < p->snap.nr_maps; i++)
		free(p->regions[i].bytes);
	census_blocks_fini(&p->blocks);
	free(p);
}

/* Add the data of libc: no mapping follows it. */
static void add_libc(struct process *p)
{
	add(p, LIBC, LIBC_SIZE, true);
	p->maps[p->snap.nr_maps - 1].ino = 1;
}

static void put_arena(struct process *p, taddr_t arena, taddr_t next, taddr_t top, u64 system)
{
	for (u32 i = 0; i < 127; i++) {
		put(p, arena + BINS + 16 * i, arena + BINS + 16 * i - 16);
		put(p, arena + BINS + 16 * i + 8, arena + BINS + 16 * i - 16);
	}
	put(p, arena + TOP, top ? top : arena + TOP);
	put(p, arena + NEXT, next);
	put(p, arena + SYSTEM, system);
}

/* A heap with NR_CHUNKS chunks behind its header, then one with the rest. Returns the address of that one. */
static taddr_t put_heap(struct process *p, taddr_t heap, taddr_t before, taddr_t first)
{
	put(p, heap, ARENA);
	put(p, heap + 8, before);
	put(p, heap + 16, SIZE);
	put(p, heap + 24, SIZE);
	for (u32 i = 0; i < NR_CHUNKS; i++, first += CHUNK)
		put(p, first + 8, CHUNK | 1);
	put(p, first + 8, (heap + SIZE - first) | 1);
	return first;
}

/* A second arena with heaps at FIRST, SECOND and THIRD; the heap before each is as told. */
static struct process *with_heaps(taddr_t before_second, taddr_t before_third, u64 system)
{
	struct process *p = process_new();
	taddr_t top, first = (ARENA + ARENA_SIZE + 15) / 16 * 16;

	add(p, FIRST, SIZE, true);
	add(p, SECOND, SIZE, true);
	add(p, THIRD, SIZE, true);
	add_libc(p);
	put_heap(p, FIRST, 0, first);
	put_heap(p, SECOND, before_second, SECOND + HEADER);
	top = put_heap(p, THIRD, before_third, THIRD + HEADER);
	put_arena(p, MAIN, ARENA, 0, 0);
	put_arena(p, ARENA, MAIN, top, system);
	return p;
}

static int walk(struct process *p, u64 deadline_ns)
{
	struct census_walk w;
	int err = census_walk_init(&w, &p->snap, &p->blocks, deadline_ns);

	assert_int_equal(err, 0);
	err = glibc_walk(&w);
	if (!err)
		census_add_up(&p->blocks);
	census_walk_fini(&w);
	return err;
}

static u32 count_notes(const struct process *p, const char *text)
{
	u32 nr = 0;

	for (size_t i = 0; i < p->blocks.nr_notes && i < CENSUS_MAX_NOTES; i++)
		nr += strstr(p->blocks.notes[i].text, text) != NULL;
	return nr;
}

/* The books of this test are understood when they do not mislead. */
static void healthy(void **state)
{
	struct process *p = with_heaps(FIRST, SECOND, 3ULL * SIZE);

	(void)state;
	assert_int_equal(walk(p, 0), 0);
	assert_int_equal(p->blocks.nr_arenas, 2);
	assert_int_equal(p->blocks.nr_segments, 3);
	/* The last chunk of the first two heaps is a block, too. */
	assert_int_equal(p->blocks.nr, 3 * NR_CHUNKS + 2);
	assert_int_equal(p->blocks.nr_notes, 1);
	assert_int_equal(count_notes(p, "the counters of blocks"), 1);
	process_free(p);
}

static void check_circle(taddr_t before_second, taddr_t before_third, u32 nr_heaps, u64 system)
{
	struct process *p = with_heaps(before_second, before_third, system);

	assert_int_equal(walk(p, 0), 0);
	assert_int_equal(p->blocks.nr_segments, nr_heaps);
	assert_int_equal(p->blocks.arenas[1].nr_segments, nr_heaps);
	assert_int_equal(p->blocks.nr, nr_heaps * NR_CHUNKS + nr_heaps - 1);
	assert_true(count_notes(p, "two parts of memory overlap") > 0);
	for (size_t i = 1; i < p->blocks.nr; i++)
		assert_true(p->blocks.blocks[i - 1].addr < p->blocks.blocks[i].addr);
	process_free(p);
}

/* A heap whose former one is itself, and two that name each other. */
static void heaps_in_circle(void **state)
{
	(void)state;
	check_circle(FIRST, THIRD, 1, 3ULL * SIZE);
	check_circle(THIRD, SECOND, 2, 3ULL * SIZE);
	check_circle(FIRST, THIRD, 1, 1ULL << 62);
	check_circle(THIRD, SECOND, 2, 1ULL << 62);
}

/* No more heaps are added than the arena has bytes. */
static void heaps_have_bytes(void **state)
{
	struct process *p = with_heaps(THIRD, SECOND, 3ULL * SIZE);

	(void)state;
	assert_int_equal(walk(p, 0), 0);
	assert_true(p->blocks.nr_notes < 10);
	process_free(p);
}

/* Arenas that lead on and on: the search looks at the clock. */
static void endless_arenas(void **state)
{
	enum { LEN = 1 << 20 };
	struct process *p = process_new();
	struct region *r;

	(void)state;
	r = add(p, FIRST, LEN, true);
	add_libc(p);
	put_arena(p, MAIN, FIRST, 0, 0);
	for (taddr_t at = FIRST; at + NEXT + 8 < FIRST + LEN; at += 8)
		put(p, at + NEXT, at + 8);
	clock_step_ns = 1000000;
	assert_int_equal(walk(p, now_ns + 10 * clock_step_ns), -ETIME);
	assert_true(nr_looks < 20);
	assert_true(r->nr_reads < 10000);
	process_free(p);
}

/* Shared memory and devices are not read, wherever the books lead. */
static void check_untouched(bool is_shared, const char *path)
{
	struct process *p = process_new();
	struct region *r = add(p, FIRST, SIZE, true);

	p->maps[0].is_shared = is_shared;
	p->maps[0].path = (char *)(uintptr_t)path;
	add_libc(p);
	put_arena(p, MAIN, FIRST, 0, 0);
	put_arena(p, FIRST, MAIN, 0, 0);
	assert_int_equal(walk(p, 0), is_shared || *path ? -ENOENT : 0);
	assert_int_equal(r->nr_reads > 0, !is_shared && !*path);
	process_free(p);
}

static void devices_untouched(void **state)
{
	(void)state;
	check_untouched(false, "");
	check_untouched(true, "");
	check_untouched(false, "/dev/dri/card0");
}

/* The main arena with a fence, and behind it memory of another that has no chunk. */
static struct process *with_gap(struct region **r)
{
	struct process *p = process_new();
	taddr_t top = BRK + GAP;

	*r = add(p, BRK, GAP + 0x1000, true);
	add_libc(p);
	put_arena(p, MAIN, MAIN, top, GAP + 0x1000);
	put(p, BRK + 8, CHUNK | 1);
	put(p, BRK + CHUNK + 8, 0x10 | 1);
	put(p, BRK + CHUNK + 0x18, 0x10 | 1);
	put(p, top + 8, 0x1000 | 1);
	return p;
}

/* A gap is read by windows, and the search for its end looks at the clock. */
static void gap(void **state)
{
	struct region *r;
	struct process *p = with_gap(&r);

	(void)state;
	assert_int_equal(walk(p, 0), 0);
	assert_int_equal(p->blocks.nr, 1);
	assert_true(r->nr_reads < 3000);
	process_free(p);
	p = with_gap(&r);
	clock_step_ns = 1000000;
	assert_int_equal(walk(p, now_ns + 50 * clock_step_ns), -ETIME);
	assert_true(nr_looks < 60);
	process_free(p);
}

/* A mapping of 2^60 bytes without any. */
static void huge_map(void **state)
{
	struct process *p = process_new();
	struct region *r;

	(void)state;
	add(p, FIRST, SIZE, true);
	add_libc(p);
	r = add(p, LIBC + (1ULL << 40), 1ULL << 60, false);
	put_arena(p, MAIN, MAIN, 0, 0);
	assert_int_equal(walk(p, 0), 0);
	assert_int_equal(count_notes(p, "is too large to be searched to its end"), 1);
	assert_true(r->nr_reads <= (1 << 24) + 2);
	process_free(p);
}

/* Notes beyond the last one are counted. */
static void many_notes(void **state)
{
	struct process *p = process_new();

	(void)state;
	for (u32 i = 0; i < 3 * CENSUS_MAX_NOTES; i++)
		census_note(&p->blocks, i, "note %u", i);
	assert_int_equal(p->blocks.nr_notes, 3 * CENSUS_MAX_NOTES);
	assert_string_equal(p->blocks.notes[CENSUS_MAX_NOTES - 1].text, "note 63");
	process_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(healthy),	     cmocka_unit_test(heaps_in_circle),
		cmocka_unit_test(heaps_have_bytes),  cmocka_unit_test(endless_arenas),
		cmocka_unit_test(devices_untouched), cmocka_unit_test(gap),
		cmocka_unit_test(huge_map),	     cmocka_unit_test(many_notes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
