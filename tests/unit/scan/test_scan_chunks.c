/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Free chunks of the C library between two blocks, and chunks that are wrong. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "user/scan/scan_regions.h"

static u64 words[64];
static struct dead_range ranges[8];

enum { AT = 0x10000 };

/* Make the chunk at word @i: its size with flags, and at its end the size again if it is free. */
static void chunk(size_t i, u64 size, bool is_before_used, bool is_free)
{
	words[i + 1] = size | is_before_used;
	if (is_free)
		words[i + size / 8] = size;
}

/* In use, free, in use; then the next block's header. */
static void make(void)
{
	memset(words, 0, sizeof(words));
	chunk(0, 48, true, false);
	chunk(6, 64, true, true);
	chunk(14, 32, false, false);
	chunk(18, 80, true, false);
}

static s32 find(u32 max)
{
	return chunk_find_free(AT, AT + 18 * 8, (const u8 *)words, ranges, max);
}

static void one_is_free(void **state)
{
	(void)state;
	make();
	assert_int_equal(find(8), 1);
	assert_int_equal(ranges[0].start, AT + 6 * 8 + 16);
	assert_int_equal(ranges[0].end, AT + 14 * 8);
	assert_int_equal(find(0), 0);
	assert_int_equal(chunk_find_free(AT, AT, (const u8 *)words, ranges, 8), 0);
}

static void lies(void **state)
{
	(void)state;
	make();
	words[14] = 72; /* the two sizes differ */
	assert_int_equal(find(8), 0);
	make();
	words[15] |= 1; /* in use */
	assert_int_equal(find(8), 0);
	make();
	words[7] = 48; /* leads elsewhere */
	assert_int_equal(find(8), -1);
	make();
	words[15] = 48; /* beyond the next block */
	assert_int_equal(find(8), -1);
	make();
	words[1] = 0; /* too small for a chunk */
	assert_int_equal(find(8), -1);
	assert_int_equal(chunk_find_free(AT + 8, AT + 80, (const u8 *)words, ranges, 8), -1);
	assert_int_equal(chunk_find_free(AT + 16, AT, (const u8 *)words, ranges, 8), -1);
}

static void ends(void **state)
{
	(void)state;
	make();
	assert_int_equal(chunk_end(AT + 16, (const u8 *)(words + 2)), AT + 48);
	assert_int_equal(chunk_end(AT + 8, (const u8 *)(words + 2)), 0);
	words[1] = 1;
	assert_int_equal(chunk_end(AT + 16, (const u8 *)(words + 2)), 0);
	words[1] = UINT64_MAX;
	assert_int_equal(chunk_end(AT + 16, (const u8 *)(words + 2)), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_is_free),
		cmocka_unit_test(lies),
		cmocka_unit_test(ends),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
