/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The set of sampled blocks of a process, beside a list of what must be in it. */
#include "fallback/sampled.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "user/lib/types.h"

enum { BLOCKS = 1000, STEPS = 20000 };

static u64 address_of(u32 i)
{
	return 0x7f0000000000 + 16ULL * i;
}

static void sampled_as_a_list(void **state)
{
	struct sampled s = { 0 }, copy = { 0 };
	bool is_in[BLOCKS] = { false };
	u64 seed = 1;
	size_t nr = 0;

	(void)state;
	for (int i = 0; i < STEPS; i++) {
		u32 block = (u32)((seed = seed * 6364136223846793005ULL + 1) >> 33) % BLOCKS;

		if (seed >> 63) {
			assert_true(sampled_add(&s, address_of(block)));
			nr += !is_in[block];
			is_in[block] = true;
		} else {
			assert_int_equal(sampled_take(&s, address_of(block)), is_in[block]);
			nr -= is_in[block];
			is_in[block] = false;
		}
		assert_int_equal(s.nr, nr);
	}
	assert_int_equal(sampled_copy(&copy, &s), 0);
	for (u32 i = 0; i < BLOCKS; i++) {
		assert_int_equal(sampled_take(&s, address_of(i)), is_in[i]);
		assert_int_equal(sampled_take(&copy, address_of(i)), is_in[i]);
	}
	assert_int_equal(s.nr + copy.nr, 0);
	sampled_fini(&s);
	sampled_fini(&copy);
	assert_int_equal(sampled_copy(&copy, &s), 0);
	assert_false(sampled_take(&copy, 1));
	sampled_fini(&copy);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(sampled_as_a_list) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
