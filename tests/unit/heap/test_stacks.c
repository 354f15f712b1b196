/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tests of the table of stacks. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "user/heap/fold.h"
#include "user/heap/stacks.h"

static struct module libs[] = { { .id = 7, .path = (char *)"/lib/a" },
				{ .id = 8, .path = (char *)"/lib/b" } };
static struct mapping maps[] = {
	{ .start = 0x1000, .end = 0x3000, .bias = 0x800, .module = &libs[0] },
	{ .start = 0x3000, .end = 0x5000, .bias = 0x3000, .module = &libs[1] },
	{ .start = 0x9000, .end = 0xa000 },
};
static const struct mapping_list list = { .maps = maps, .nr = ARRAY_SIZE(maps), .epoch = 1 };

static struct stack_event stack_of(u64 id, u16 nr_frames, u64 ip)
{
	struct stack_event ev = {
		.h.kind = EVENT_STACK, .id = id, .nr_frames = nr_frames, .end = STACK_DEPTH
	};

	for (u16 i = 0; i < nr_frames && i < STACK_MAX_FRAMES; i++)
		ev.ips[i] = ip + i;
	return ev;
}

static void test_places(void **state)
{
	struct stack_event ev = stack_of(2, 5, 0);
	const u64 ips[] = { 0x1801, 0x3000, 0x3001, 0x9500, 0x7777 };
	const struct code_ref refs[] = {
		{ 7, 0x1001 }, { 7, 0x2800 }, { 8, 1 }, { 0, 0x9500 }, { 0, 0x7777 }
	};
	const struct stack *s;
	struct stack_table *t;

	(void)state;
	assert_int_equal(stack_table_new(&t), 0);
	for (u16 i = 0; i < ARRAY_SIZE(ips); i++)
		ev.ips[i] = ips[i];
	assert_null(stack_get(t, 2));
	assert_int_equal(stack_table_add(t, &ev, &list), 0);
	s = stack_get(t, 2);
	assert_non_null(s);
	assert_int_equal(s->id, 2);
	assert_int_equal(s->nr_frames, ARRAY_SIZE(ips));
	assert_int_equal(s->end, STACK_DEPTH);
	for (u16 i = 0; i < ARRAY_SIZE(ips); i++) {
		assert_int_equal(s->frames[i].module, refs[i].module);
		assert_int_equal(s->frames[i].offset, refs[i].offset);
	}
	ev.nr_frames = 1; /* known already: stays */
	assert_int_equal(stack_table_add(t, &ev, &list), 0);
	assert_int_equal(stack_get(t, 2)->nr_frames, ARRAY_SIZE(ips));
	stack_table_free(t);
	stack_table_free(NULL);
}

static void test_hostile(void **state)
{
	struct stack_event ev = stack_of(STACK_LOST, 1, 0x1234);
	struct stack_table *t;

	(void)state;
	assert_int_equal(stack_table_new(&t), 0);
	assert_int_equal(stack_table_add(t, &ev, &list), 0);
	ev.id = STACK_NONE;
	assert_int_equal(stack_table_add(t, &ev, &list), 0);
	assert_null(stack_get(t, STACK_LOST));
	assert_null(stack_get(t, STACK_NONE));
	ev = stack_of(5, UINT16_MAX, 0);
	ev.end = 200;
	assert_int_equal(stack_table_add(t, &ev, &list), 0);
	assert_int_equal(stack_get(t, 5)->nr_frames, STACK_MAX_FRAMES);
	assert_int_equal(stack_get(t, 5)->end, STACK_LIMIT);
	ev = stack_of(UINT64_MAX, 0, 0);
	assert_int_equal(stack_table_add(t, &ev, &list), 0);
	assert_int_equal(stack_get(t, UINT64_MAX)->nr_frames, 0);
	stack_table_free(t);
}

/* Stacks do not move while the table grows, and take little more memory than their frames. */
static void test_many(void **state)
{
	enum { NR = 20000 };
	const struct stack **seen = calloc(NR, sizeof(struct stack *));
	struct stack_table *t;
	u64 frames = 0;

	(void)state;
	assert_int_equal(stack_table_new(&t), 0);
	for (u32 i = 0; i < NR; i++) {
		struct stack_event ev =
			stack_of(STACK_FIRST_ID + i * 0x10001ULL, 1 + i % 99, 0x100000 + i * 128);

		assert_int_equal(stack_table_add(t, &ev, &list), 0);
		seen[i] = stack_get(t, ev.id);
		frames += ev.nr_frames;
	}
	for (u32 i = 0; i < NR; i++) {
		assert_ptr_equal(stack_get(t, STACK_FIRST_ID + i * 0x10001ULL), seen[i]);
		assert_int_equal(seen[i]->nr_frames, 1 + i % 99);
		for (u16 k = 0; k < 1 + i % 99; k++)
			assert_int_equal(seen[i]->frames[k].offset, 0x100000 + i * 128 + k);
	}
	assert_null(stack_get(t, STACK_FIRST_ID + 1));
	assert_true(stack_table_memory(t) < frames * 17 + NR * 72);
	stack_table_free(t);
	free(seen);
}

/* One stack under two ids, as after dlopen: it is kept once, and found by both. */
static void test_canonical(void **state)
{
	struct stack_event ev = stack_of(10, 20, 0x1100);
	struct stack_table *t;
	u64 before;

	(void)state;
	assert_int_equal(stack_table_new(&t), 0);
	assert_int_equal(stack_table_add(t, &ev, &list), 0);
	before = stack_table_memory(t);
	ev.id = 11;
	assert_int_equal(stack_table_add(t, &ev, &list), 0);
	assert_ptr_equal(stack_get(t, 11), stack_get(t, 10));
	assert_int_equal(stack_canonical(t, 11), 10);
	assert_int_equal(stack_canonical(t, 10), 10);
	assert_int_equal(stack_canonical(t, 12), 12);
	assert_int_equal(stack_table_memory(t), before);
	ev.id = 12;
	ev.end = STACK_COMPLETE; /* the same frames, but another end, are another stack */
	assert_int_equal(stack_table_add(t, &ev, &list), 0);
	assert_int_equal(stack_canonical(t, 12), 12);
	assert_int_equal(stack_get(t, 12)->nr_frames, 20);
	for (u32 i = 0; i < 5000; i++) {
		ev.id = 100 + i;
		ev.ips[0] = 0x100000 + i;
		assert_int_equal(stack_table_add(t, &ev, &list), 0);
	}
	assert_int_equal(stack_canonical(t, 11), 10);
	assert_int_equal(stack_get(t, 11)->nr_frames, 20);
	stack_table_free(t);
}

/* An id that is not the hash of the frames is false, and so is an id of two stacks (C7). */
static void test_false_ids(void **state)
{
	struct stack_event a = stack_of(0, 5, 0x1100), b = stack_of(0, 5, 0x2100), c = a;
	struct stack_table *t;

	(void)state;
	assert_int_equal(stack_table_new(&t), 0);
	stack_table_check_ids(t);
	a.id = stack_event_id(&a);
	b.id = stack_event_id(&b);
	c.end = STACK_GUESSED;
	c.id = stack_event_id(&c);
	assert_true(a.id != b.id && a.id != c.id && b.id != c.id);
	assert_int_equal(stack_table_add(t, &a, &list), 0);
	assert_int_equal(stack_table_add(t, &a, &list),
			 0); /* once more, as after the kernel has forgotten it */
	assert_int_equal(stack_table_add(t, &c, &list), 0);
	assert_int_equal(stack_table_false(t), 0);
	assert_int_equal(stack_canonical(t, a.id), a.id);
	/* The id is not the hash of the frames. */
	b.id++;
	assert_int_equal(stack_table_add(t, &b, &list), 0);
	assert_int_equal(stack_table_false(t), 1);
	assert_int_equal(stack_canonical(t, b.id), STACK_LOST);
	/* The id belongs to another stack, which keeps its frames. */
	b.id = a.id;
	assert_int_equal(stack_table_add(t, &b, &list), 0);
	assert_int_equal(stack_table_add(t, &b, &list), 0);
	assert_int_equal(stack_table_false(t), 2);
	assert_int_equal(stack_canonical(t, a.id), STACK_LOST);
	assert_int_equal(stack_get(t, a.id)->frames[0].offset, 0x900);
	assert_int_equal(stack_canonical(t, c.id), c.id);
	stack_table_free(t);
}

/* Stacks that differ in anything have different ids (C7). */
static void test_id_depends(void **state)
{
	struct stack_event ev = stack_of(0, 3, 0x1100), other = ev;
	u64 id = stack_event_id(&ev);

	(void)state;
	other.ips[2]++;
	assert_true(stack_event_id(&other) != id);
	other = ev;
	other.nr_frames = 2;
	assert_true(stack_event_id(&other) != id);
	other = ev;
	other.h.pid++;
	assert_true(stack_event_id(&other) != id);
	other = ev;
	other.epoch++;
	assert_true(stack_event_id(&other) != id);
	other = ev;
	other.end = STACK_COMPLETE;
	assert_true(stack_event_id(&other) != id);
	ev = other;
	other.end = STACK_GUESSED;
	assert_true(stack_event_id(&other) != stack_event_id(&ev));
}

static void test_limit(void **state)
{
	struct stack_event ev = stack_of(2, 10, 0x1000);
	struct stack_table *t;
	int err;

	(void)state;
	assert_int_equal(stack_table_new(&t), 0);
	stack_table_set_limit(t, 100000);
	do {
		ev.id++;
		ev.ips[0] = 0x100000 + ev.id;
		err = stack_table_add(t, &ev, &list);
	} while (!err);
	assert_int_equal(err, -ENOMEM);
	assert_null(stack_get(t, ev.id));
	assert_non_null(stack_get(t, ev.id - 1));
	assert_true(ev.id > 303 && stack_table_memory(t) <= 100000);
	stack_table_free(t);
}

/* Stacks of processes that are gone are forgotten, but not the frames that others have, or that are named. */
static void test_keep(void **state)
{
	struct stack_event shared = stack_of(1000, 3, 0x1100), named = stack_of(2000, 3, 0x3100),
			   gone = stack_of(3000, 3, 0x1200);
	const u32 pids[] = { 10, 12 };
	bool is_used[8] = { 0 }, modules[16] = { 0 };
	struct stack_table *t;
	u64 memory;

	(void)state;
	assert_int_equal(stack_table_new(&t), 0);
	shared.h.pid = named.h.pid = gone.h.pid = 11;
	assert_int_equal(stack_table_add(t, &shared, &list), 0);
	assert_int_equal(stack_table_add(t, &named, &list), 0);
	assert_int_equal(stack_table_add(t, &gone, &list), 0);
	shared.h.pid = 12;
	shared.id = 1001;
	assert_int_equal(stack_table_add(t, &shared, &list), 0);
	assert_int_equal(stack_canonical(t, 1001), 1000);
	memory = stack_table_memory(t);
	is_used[stack_table_number(t, 2000)] = true;
	stack_table_keep(t, is_used, pids, ARRAY_SIZE(pids));
	assert_null(stack_get(t, 3000));
	assert_int_equal(stack_get(t, 1001)->frames[0].offset, 0x1100 - 0x800);
	assert_int_equal(stack_get(t, 2000)->nr_frames, 3);
	assert_true(stack_table_memory(t) < memory);
	stack_table_name_modules(t, modules);
	assert_true(modules[7] && modules[8]);
	/* The slot is used again, and what was forgotten can come again. */
	assert_int_equal(stack_table_add(t, &gone, &list), 0);
	assert_int_equal(stack_get(t, 3000)->nr_frames, 3);
	assert_int_equal(stack_table_memory(t), memory);
	memset(is_used, 0, sizeof(is_used));
	stack_table_keep(t, is_used, pids, 0);
	assert_null(stack_get(t, 1001));
	assert_null(stack_get(t, 2000));
	stack_table_free(t);
}

/* Processes come and go, each with ids of its own for stacks of the one program: the table stays small. */
static void test_months(void **state)
{
	struct stack_table *t;
	u64 most = 0;

	(void)state;
	assert_int_equal(stack_table_new(&t), 0);
	for (u32 pid = 1; pid < 20000; pid++) {
		for (u32 i = 0; i < 10; i++) {
			struct stack_event ev = stack_of(pid * 100ULL + i, 5, 0x1100 + i * 8);

			ev.h.pid = pid;
			assert_int_equal(stack_table_add(t, &ev, &list), 0);
		}
		if (stack_table_is_crowded(t)) {
			bool *is_used = calloc(stack_table_slots(t), sizeof(*is_used));

			stack_table_keep(t, is_used, &pid, 1);
			free(is_used);
		}
		most = stack_table_memory(t) > most ? stack_table_memory(t) : most;
	}
	assert_true(most < 4 << 20);
	assert_int_equal(stack_get(t, 19999 * 100ULL)->nr_frames, 5);
	stack_table_free(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_places),	   cmocka_unit_test(test_hostile),
		cmocka_unit_test(test_many),	   cmocka_unit_test(test_canonical),
		cmocka_unit_test(test_limit),	   cmocka_unit_test(test_false_ids),
		cmocka_unit_test(test_id_depends), cmocka_unit_test(test_keep),
		cmocka_unit_test(test_months),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
