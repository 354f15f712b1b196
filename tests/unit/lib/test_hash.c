/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The hash tells inputs apart, each bit of them, and spreads over a table. */
#include "user/lib/hash.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

enum { BYTES = 100, CELLS = 1 << 12 };

static void each_bit_counts(void **state)
{
	u8 data[BYTES];
	int flipped = 0;

	(void)state;
	for (size_t i = 0; i < BYTES; i++)
		data[i] = i * 7;
	for (size_t size = 1; size <= BYTES; size++) {
		u64 whole = hash_bytes(data, size, 1);

		assert_int_not_equal(whole, hash_bytes(data, size - 1, 1));
		assert_int_not_equal(whole, hash_bytes(data, size, 2));
		for (size_t bit = 0; bit < size * 8; bit++) {
			data[bit / 8] ^= 1 << bit % 8;
			flipped += __builtin_popcountll(hash_bytes(data, size, 1) ^ whole);
			assert_int_not_equal(hash_bytes(data, size, 1), whole);
			data[bit / 8] ^= 1 << bit % 8;
		}
	}
	/* Half of the bits change, on average. */
	assert_in_range(flipped / (BYTES * (BYTES + 1) / 2 * 8), 31, 32);
}

static void alignment_does_not_count(void **state)
{
	u8 data[BYTES + 8];
	u64 first = 0;

	(void)state;
	for (size_t shift = 0; shift < 8; shift++) {
		for (size_t i = 0; i < BYTES; i++)
			data[shift + i] = i;
		if (!shift)
			first = hash_bytes(data, BYTES, 0);
		assert_int_equal(hash_bytes(data + shift, BYTES, 0), first);
	}
}

/* Zeros of all lengths, too. */
static void zeros_differ(void **state)
{
	static const u8 zeros[BYTES];
	u64 seen[BYTES];

	(void)state;
	for (size_t i = 0; i < BYTES; i++) {
		seen[i] = hash_bytes(zeros, i, 0);
		for (size_t j = 0; j < i; j++)
			assert_int_not_equal(seen[i], seen[j]);
	}
}

/* Counters as keys: the low bits, which choose a table's cell, and the high ones. */
static void spreads(void **state)
{
	static u16 low[CELLS], high[CELLS];

	(void)state;
	for (u64 key = 0; key < 16 * CELLS; key++) {
		u64 h = hash_bytes(&key, sizeof(key), 0);

		low[h % CELLS]++;
		high[h >> 52]++;
	}
	for (size_t i = 0; i < CELLS; i++) {
		assert_in_range(low[i], 1, 48);
		assert_in_range(high[i], 1, 48);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_bit_counts),
		cmocka_unit_test(alignment_does_not_count),
		cmocka_unit_test(zeros_differ),
		cmocka_unit_test(spreads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
