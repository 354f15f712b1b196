/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The words that led a walk: each of them, changed, is seen from its frame inwards, and from no frame outside it, and
 * those outside it are counted.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#if defined(__x86_64__) || defined(__aarch64__)

#include "inline/words.h"

enum { NR_FRAMES = 6, FRAME = 8 /* words */, NR_WORDS = NR_FRAMES * FRAME };

static u64 stack[NR_WORDS];
static struct walk *w;
static struct piece_words *words;

/* Where the frame ends whose index, counted from the outermost, is @i. */
static u64 end_of(u32 i)
{
	return (u64)(uintptr_t)&stack[NR_WORDS - i * FRAME];
}

static void put(u64 at, u64 value)
{
	*(u64 *)(uintptr_t)at = value;
}

/* A stack of the kinds of frames: a saved frame pointer, a CFA that was read, and neither. */
static int set_up(void **state)
{
	(void)state;
	w = calloc(1, sizeof(*w));
	words = calloc(1, sizeof(*words));
	if (!w || !words)
		return -1;
	memset(stack, 0, sizeof(stack));
	w->nr = NR_FRAMES;
	w->copy_start = (u64)(uintptr_t)stack;
	w->copy_bytes = sizeof(stack);
	for (u32 i = 0; i < NR_FRAMES; i++)
		w->last[i] = (struct walk_frame){
			.sp = end_of(i + 1), .pc = 100 + i, .fp = 1000 + i, .needs_fp = 1
		};
	for (u32 i = 1; i < NR_FRAMES; i++) {
		struct walk_frame *f = &w->last[i];
		u64 cfa = w->last[i - 1].sp;

#if HAS_LINK
		f->ra_slot = 1;
#endif
		put(cfa - 8, w->last[i - 1].pc);
		f->fp_slot = i % 3 ? 2 : 0;
		if (f->fp_slot)
			put(cfa - 16, w->last[i - 1].fp);
		f->cfa_slot = i % 3 == 2 ? 4 : 0;
		f->cfa_extra = 1;
		if (f->cfa_slot)
			put(cfa - 32, cfa - 8);
	}
	words_follow(words, w, 0);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	free(w);
	free(words);
	return 0;
}

/* Do the words show that all from frame @i outwards is unchanged? */
static bool holds(u32 i)
{
	w->candidate = i + 1;
	w->sp = w->last[i].sp;
	return words_hold(words, w);
}

/* The number of frames that are unchanged, of those from frame @i outwards. */
static u32 nr_same(u32 i)
{
	w->candidate = i + 1;
	w->sp = w->last[i].sp;
	return words_nr_same(words, w);
}

/* The word at @at, which is of frame @i, is seen by frames from @i inwards only. */
static void check_word(u64 at, u32 i)
{
	u64 old = *(u64 *)(uintptr_t)at;

	put(at, old + 1);
	for (u32 k = 0; k < NR_FRAMES; k++) {
		assert_int_equal(holds(k), k < i);
		assert_int_equal(nr_same(k), k < i ? k + 1 : i);
	}
	put(at, old);
}

static void test_each_word(void **state)
{
	(void)state;
	for (u32 i = 0; i < NR_FRAMES; i++)
		assert_true(holds(i));
	for (u32 i = 1; i < NR_FRAMES; i++) {
		const struct walk_frame *f = &w->last[i];
		u64 cfa = w->last[i - 1].sp;

		check_word(cfa - 8, i);
		if (f->fp_slot)
			check_word(cfa - 16, i);
		if (f->cfa_slot)
			check_word(cfa - 32, i);
	}
	/* Words that led nowhere. */
	put(end_of(2) - 40, 77);
	assert_true(holds(NR_FRAMES - 1));
}

/* A frame pointer that no frame outside needs is not compared. */
static void test_needless_fp(void **state)
{
	(void)state;
	for (u32 i = 0; i < NR_FRAMES; i++)
		w->last[i].needs_fp = 0;
	words_follow(words, w, 0);
	put(w->last[0].sp - 16, 77);
	assert_true(holds(NR_FRAMES - 1));
}

/* From such a frame outwards only a walk can tell. */
static void test_fixed(void **state)
{
	(void)state;
	w->last[3].is_fixed = 1;
	words_follow(words, w, 0);
	for (u32 i = 0; i < NR_FRAMES; i++) {
		assert_int_equal(holds(i), i < 3);
		assert_int_equal(nr_same(i), i < 3 ? i + 1 : 3);
	}
	w->last[0].is_fixed = 1;
	words_follow(words, w, 0);
	assert_false(holds(0));
	assert_int_equal(nr_same(NR_FRAMES - 1), 0);
}

/* The next walk took the inner frames anew. */
static void test_follow(void **state)
{
	(void)state;
	put(w->last[2].sp - 8, 500);
	assert_false(holds(3));
	w->last[2].pc = 500;
	words_follow(words, w, 2);
	for (u32 i = 0; i < NR_FRAMES; i++)
		assert_true(holds(i));
	/* Frames may be fewer, and come again. */
	w->nr = 3;
	words_follow(words, w, 2);
	assert_true(holds(2));
	assert_false(holds(3));
	w->nr = NR_FRAMES;
	words_follow(words, w, 3);
	check_word(w->last[3].sp - 8, 4);
}

/* Nothing is read outside of the stack that the walk knows. */
static void test_limits(void **state)
{
	(void)state;
	w->copy_bytes -= 8;
	assert_true(holds(0));
	w->copy_bytes -= FRAME * 8;
	assert_false(holds(NR_FRAMES - 1));
	w->copy_bytes = sizeof(stack);
	w->copy_start = w->last[2].sp;
	assert_true(holds(2));
	assert_false(holds(3));
	assert_int_equal(nr_same(2), 3);
	assert_int_equal(nr_same(3), 0);
	/* A word below its frame. */
	w->copy_start = (u64)(uintptr_t)stack;
	w->last[4].cfa_slot = FRAME + 1;
	words_follow(words, w, 0);
	assert_true(holds(3));
	assert_false(holds(4));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_each_word, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_needless_fp, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_fixed, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_follow, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_limits, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

#else

int main(void)
{
	print_message("skipped: no code for this CPU\n");
	return 0;
}

#endif
