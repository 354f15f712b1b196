/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Pointers between blocks and from roots: what is written in few bytes is read again, whatever the parts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "user/scan/scan_state.h"

enum { NR = 70000, MAX_EDGES = 40 };

struct edge {
	u32 target;
	u64 offset;
};

/* The truth: a few pointers of each block, and many of some. */
static u32 nr_of[NR];
static struct edge *edges_of[NR];
static u64 state = 88172645463325252ULL;

static u64 next_random(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state;
}

static u64 any_offset(void)
{
	static const u64 offsets[] = { 0,  0,  0,	8,	 16,	     32,	40,
				       63, 64, 1 << 14, 1 << 22, UINT32_MAX, UINT64_MAX };

	return offsets[next_random() % ARRAY_SIZE(offsets)];
}

/* Near and far, at both ends, and half the blocks away. */
static u32 any_target(u32 source)
{
	const u32 targets[] = {
		(source + 1) % NR,	    (source + NR - 1) % NR,   0, NR - 1, (source + NR / 2) % NR,
		(source + NR / 2 + 1) % NR, (u32)(next_random() % NR)
	};

	return targets[next_random() % ARRAY_SIZE(targets)];
}

static void make_truth(void)
{
	for (u32 i = 0; i < NR; i++) {
		u32 nr = next_random() % 100 == 0 ? 3000 : (u32)(next_random() % MAX_EDGES);

		if (next_random() % 3 == 0 || (i > 5000 && i < 5300))
			nr = 0;
		edges_of[i] = calloc(nr + 1, sizeof(struct edge));
		for (u32 k = 0; k < nr; k++) {
			struct edge e = { any_target(i), any_offset() };
			const struct edge *last = nr_of[i] ? &edges_of[i][nr_of[i] - 1] : NULL;

			/* The store leaves out a pointer that is the same as the one before. */
			if (!last || last->target != e.target || last->offset != e.offset)
				edges_of[i][nr_of[i]++] = e;
		}
	}
}

/* The store that parts of random size make; the pointers of a block may be in several of them. */
static void write_all(struct edge_store *e)
{
	struct edge_part p;

	assert_int_equal(edges_init(e, NR, UINT64_MAX), 0);
	edge_part_init(&p, e);
	for (u32 i = 0; i < NR; i++) {
		if (i % 7 == 3)
			assert_int_equal(edges_add_vptr(&p, i, i), 0);
		for (u32 k = 0; k < nr_of[i]; k++) {
			assert_int_equal(
				edges_add(&p, i, edges_of[i][k].target, edges_of[i][k].offset, false), 0);
			if (next_random() % 500 == 0)
				assert_int_equal(edges_append(e, &p), 0);
		}
	}
	assert_int_equal(edges_append(e, &p), 0);
	assert_int_equal(edges_finish(e, NR), 0);
	edge_part_fini(&p);
}

static void check_block(struct edge_iter *it, u32 block)
{
	for (u32 k = 0; k < nr_of[block]; k++) {
		assert_true(edge_next(it));
		assert_int_equal(it->source, block);
		assert_int_equal(it->target, edges_of[block][k].target);
		assert_int_equal(it->offset, edges_of[block][k].offset);
	}
	assert_false(edge_next(it));
}

static void edges_come_back(void **ctx)
{
	struct edge_store e;
	struct edge_iter it;

	(void)ctx;
	make_truth();
	write_all(&e);
	assert_true(e.nr_longs > NR / 200);
	for (u32 i = 0; i < NR; i++) {
		edge_begin(&it, &e, i);
		check_block(&it, i);
		assert_int_equal(edge_has_vptr(&e, i, i), i % 7 == 3);
		assert_false(edge_has_vptr(&e, i, i + 1));
	}
	/* From the first of a group to its others, which are looked at or skipped. */
	for (u32 first = 0; first < NR; first += EDGE_GROUP) {
		u32 i = first;

		for (edge_begin(&it, &e, first); i < NR && i < first + EDGE_GROUP; edge_next_source(&it), i++)
			if (i % 3)
				check_block(&it, i);
	}
	edges_fini(&e);
	for (u32 i = 0; i < NR; i++)
		free(edges_of[i]);
}

/* The bytes of a million pointers from 4 million blocks to @offset of any others. */
static u64 bytes_of_pointers(u64 offset)
{
	enum { MANY = 4 << 20 };
	struct edge_store e;
	struct edge_part p;
	u64 bytes;

	assert_int_equal(edges_init(&e, MANY, UINT64_MAX), 0);
	edge_part_init(&p, &e);
	for (u32 i = 0; i < MANY; i += 4) {
		assert_int_equal(edges_add(&p, i, (u32)(next_random() % MANY), offset, false), 0);
		if (i % 5000 == 0)
			assert_int_equal(edges_append(&e, &p), 0);
	}
	assert_int_equal(edges_append(&e, &p), 0);
	assert_int_equal(edges_finish(&e, MANY), 0);
	bytes = e.nr;
	edge_part_fini(&p);
	edges_fini(&e);
	return bytes;
}

/* Pointers of 4 million blocks that lead anywhere take three bytes, also behind a short header. */
static void three_bytes_a_pointer(void **ctx)
{
	(void)ctx;
	assert_true(bytes_of_pointers(0) < 3200000);
	for (u64 offset = 8; offset <= 32; offset += 8)
		assert_true(bytes_of_pointers(offset) < 3200000);
}

static void roots_come_back(void **ctx)
{
	enum { NR_ROOTS = 100000 };
	struct root_ref *truth = calloc(NR_ROOTS, sizeof(*truth)), ref;
	struct root_store roots = { 0 };
	struct root_iter it = { &roots };
	u64 where = 0x7f0000000000;

	(void)ctx;
	assert_false(root_next(&it, &ref));
	for (u32 i = 0; i < NR_ROOTS; i++) {
		u64 jump = i % 100 ? 8 : next_random() % (1ULL << 40) - (1ULL << 39);

		where += jump;
		truth[i] = (struct root_ref){ WHERE(i % 3 == 2 ? WHERE_WORD : WHERE_MEMORY,
						    where & ((1ULL << 56) - 1)),
					      (u32)next_random() >> i % 32, i % 10 ? 0 : (u32)any_offset() };
		if (i % 10 && i % 1000 > 500) /* runs of one offset */
			truth[i].offset = truth[i - 1].offset;
		assert_int_equal(roots_add(&roots, &truth[i]), 0);
	}
	roots_finish(&roots);
	assert_int_equal(roots.nr, NR_ROOTS);
	for (u32 i = 0; i < NR_ROOTS; i++) {
		assert_true(root_next(&it, &ref));
		assert_int_equal(ref.where, truth[i].where);
		assert_int_equal(ref.block, truth[i].block);
		assert_int_equal(ref.offset, truth[i].offset);
	}
	assert_false(root_next(&it, &ref));
	roots_fini(&roots);
	free(truth);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(edges_come_back),
		cmocka_unit_test(three_bytes_a_pointer),
		cmocka_unit_test(roots_come_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
