/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Unit tests for user/scan/scan_mimalloc.c: where the versions of mimalloc begin with the blocks of a page. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "user/lib/array.h"
#include "user/scan/mimalloc_layout.h"

enum { START = 0x1000000 };

/* As the sources of each version have it. */
static const struct {
	u64 slot;
	u32 first[NR_MIMALLOC_LAYOUTS - 2]; /* of those without a word for it */
} rows[] = {
	{ 8, { 128, 128, 384, 24 } },	{ 16, { 128, 128, 384, 48 } },	 { 64, { 128, 128, 384, 192 } },
	{ 80, { 128, 128, 384, 80 } },	{ 512, { 128, 128, 384, 512 } }, { 640, { 128, 128, 384, 0 } },
	{ 1024, { 128, 128, 384, 0 } }, { 1280, { 0, 0, 0, 0 } },
};

static void test_first_block(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		for (size_t k = 0; k < NR_MIMALLOC_LAYOUTS; k++) {
			const struct mimalloc_layout *l = &mimalloc_layouts[k];
			u64 words[MIMALLOC_MAX_ENTRY] = { 0 };

			words[3] = rows[i].slot << 32;
			if (l->has_start) {
				words[5] = rows[i].slot;
				words[6] = START + 96;
			}
			assert_int_equal(mimalloc_slot(l, words), rows[i].slot);
			assert_int_equal(mimalloc_first(l, words, START),
					 START + (l->has_start ? 96 : rows[i].first[k]));
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_first_block),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
