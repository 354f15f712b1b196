/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Guesses of addresses: blocks that were freed come again, the last one first; else blocks follow one another. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "user/stream/stream_guess.h"

static void guess_learns(struct stream_guess *g, u8 kind, u64 addr, u64 size)
{
	const struct heap_event ev = { .h = { .kind = kind }, .addr = addr, .size = size };

	stream_guess_learn(g, &ev);
}

static void last_freed_first(void **state)
{
	struct stream_guess *g = malloc(sizeof(*g));

	(void)state;
	assert_non_null(g);
	stream_guess_begin(g, GUESS_BITS);
	guess_learns(g, EVENT_ALLOC, 0x1000, 40);
	assert_int_equal(stream_guess_addr(g, 40), 0x1030);
	for (u64 i = 1; i <= 20; i++)
		guess_learns(g, EVENT_ALLOC, 0x1000 + i * 0x30, 40);
	guess_learns(g, EVENT_ALLOC, 0x8000, 600);
	guess_learns(g, EVENT_FREE, 0x8000, 0);
	for (u64 i = 0; i <= 20; i++)
		guess_learns(g, EVENT_FREE, 0x1000 + i * 0x30, 0);
	/* One that was never allocated has no size. */
	guess_learns(g, EVENT_FREE, 0x1000, 0);
	for (u64 i = 20; i > 20 - GUESS_DEPTH; i--) {
		assert_int_equal(stream_guess_addr(g, 33), 0x1000 + i * 0x30);
		guess_learns(g, EVENT_ALLOC, 0x1000 + i * 0x30, 33);
	}
	assert_int_equal(stream_guess_addr(g, 595), 0x8000);
	free(g);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(last_freed_first) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
