/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Unit tests for user/scan/mimalloc_layout.c: where the versions of mimalloc begin with the blocks of a page. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "user/lib/array.h"
#include "user/scan/mimalloc_layout.h"

enum { START = 0x1000000, NR_SLICED = 6 /* of version 2, which come first */ };

/* As the sources of each version have it. */
static const struct {
	u64 slot;
	u32 first[NR_SLICED - 2]; /* of those without a word for it */
} rows[] = {
	{ 8, { 128, 128, 384, 24 } },	{ 16, { 128, 128, 384, 48 } },	 { 64, { 128, 128, 384, 192 } },
	{ 80, { 128, 128, 384, 80 } },	{ 512, { 128, 128, 384, 512 } }, { 640, { 128, 128, 384, 0 } },
	{ 1024, { 128, 128, 384, 0 } }, { 1280, { 0, 0, 0, 0 } },
};

static void test_first_block(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		for (size_t k = 0; k < NR_SLICED; k++) {
			const struct mimalloc_layout *l = &mimalloc_layouts[k];
			u64 words[MIMALLOC_MAX_WORDS] = { [6] = START + 96 };

			assert_true(l->segment->has_slices);
			assert_int_equal(mimalloc_first(l, words, START - 4096, START, rows[i].slot),
					 START + (l->how == START_AT ? 96 : rows[i].first[k]));
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_first_block),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
