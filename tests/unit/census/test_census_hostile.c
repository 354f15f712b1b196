/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Books of glibc that are made to mislead: each walk ends, and no memory is walked twice. */
#include <stdio.h>
#include <time.h>

#include "tests/unit/glibc_heaps.h"

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

static int begin(void **state)
{
	(void)state;
	clock_step_ns = 0;
	now_ns = 1000000000;
	nr_looks = 0;
	return 0;
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
		cmocka_unit_test_setup(healthy, begin),
		cmocka_unit_test_setup(heaps_in_circle, begin),
		cmocka_unit_test_setup(heaps_have_bytes, begin),
		cmocka_unit_test_setup(endless_arenas, begin),
		cmocka_unit_test_setup(devices_untouched, begin),
		cmocka_unit_test_setup(gap, begin),
		cmocka_unit_test_setup(huge_map, begin),
		cmocka_unit_test_setup(many_notes, begin),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
