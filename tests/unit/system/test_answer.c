/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The words of an answer: growth that is in no block is said, and that of blocks is not taken for it. */
#include "user/system/answer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

enum { MIB = 1 << 20 };

static const char *words(const struct zoom_answer *f)
{
	static char text[640];

	answer_describe(f, text, sizeof(text));
	return text;
}

static void growth_in_no_block(void **state)
{
	struct zoom_answer f = { .kind = ANSWER_STILL, .time_ns = 1, .needed = 10 * MIB };

	(void)state;
	f.held_needs = 10 * MIB + MIB / 2;
	assert_int_equal(answer_elsewhere(&f), 0);
	f.held_needs = 22 * MIB;
	assert_int_equal(answer_elsewhere(&f), 12 * MIB);
	assert_string_equal(words(&f),
			    "nothing that it allocated since is live; 12.0 MiB of its growth since is in "
			    "no block: it maps memory itself");
	/* Most of it is in blocks. */
	f.held = 2 * MIB;
	assert_int_equal(answer_elsewhere(&f), 10 * MIB);
	f.held = 7 * MIB;
	assert_int_equal(answer_elsewhere(&f), 0);
	f.held = 20 * MIB;
	assert_int_equal(answer_elsewhere(&f), 0);
	assert_string_equal(words(&f), "nothing that it allocated since is live");
	/* Calls between windows are not seen. */
	f.held = 0;
	f.nr_windows = 2;
	assert_int_equal(answer_elsewhere(&f), 0);
	/* A process that shrinks. */
	f.nr_windows = 0;
	f.held_needs = 5 * MIB;
	assert_int_equal(answer_elsewhere(&f), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(growth_in_no_block),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
