/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Unit tests for user/scan/scan_filter.c: it lets through exactly the words that one comparison lets through. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "user/scan/scan_filter.h"

enum { NR_WORDS = 1000 };

static const struct scan_filter filters[] = {
	{ UINT64_MAX, 0x555555554000, 0x21000 },
	{ UINT64_MAX, 0x555555554000, 1 },
	{ UINT64_MAX, 0x5555fffff000, 0x2000 },		 /* across 4 GiB */
	{ UINT64_MAX, 0xa00000, 0x100000 },		 /* low addresses, beside small numbers */
	{ UINT64_MAX, 0x10, 0x100000000 },		 /* as long as half a word can tell */
	{ UINT64_MAX, 0x10, 0x100000001 },		 /* and one more */
	{ UINT64_MAX, 0x555555554000, 0x2aaaaaaab000 },	 /* from the program to the libraries */
	{ 0x00ffffffffffffff, 0xffffe0000000, 0x40000 }, /* tagged pointers */
	{ UINT64_MAX, UINT64_MAX - 15, 16 },
	{ UINT64_MAX, 0, UINT64_MAX },
};

static u64 next_random(u64 *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

/* Words at and around both ends, inside, and anywhere. */
static u64 make_word(const struct scan_filter *f, u64 *state)
{
	u64 random = next_random(state), small = random >> 8 & 3;

	switch (random & 7) {
	case 0:
		return f->lo - 2 + small;
	case 1:
		return f->lo + f->length - 2 + small;
	case 2:
		return f->lo + next_random(state) % f->length;
	case 3:
		return (f->lo + next_random(state) % f->length) ^ 1ULL << (random >> 8 & 63);
	case 4:
		return (f->lo + next_random(state) % f->length) | 0x2aULL << 56;
	case 5:
		return small;
	default:
		return random;
	}
}

static void check(const struct scan_filter *f, const u8 *p, u32 nr)
{
	u16 found[NR_WORDS], expected[NR_WORDS];
	u32 nr_expected = 0;

	for (u32 i = 0; i < nr; i++) {
		u64 value;

		memcpy(&value, p + 8 * (size_t)i, 8);
		if ((value & f->mask) - f->lo < f->length)
			expected[nr_expected++] = (u16)i;
	}
	assert_int_equal(scan_filter(p, nr, f, found), nr_expected);
	assert_memory_equal(found, expected, nr_expected * sizeof(*found));
}

static void test_words(void **cmocka)
{
	static u8 bytes[NR_WORDS * 8 + 8];
	u64 state = 88172645463325252ULL;

	(void)cmocka;
	for (size_t i = 0; i < ARRAY_SIZE(filters); i++) {
		for (u32 k = 0; k < NR_WORDS; k++) {
			u64 word = make_word(&filters[i], &state);

			memcpy(bytes + 3 + 8 * (size_t)k, &word, 8);
		}
		for (u32 nr = 0; nr < NR_WORDS; nr += 1 + nr / 3)
			check(&filters[i], bytes + 3, nr);
		check(&filters[i], bytes + 3, NR_WORDS);
	}
}

static void test_all_pass(void **cmocka)
{
	static u64 words[NR_WORDS];
	const struct scan_filter f = { UINT64_MAX, 0x1000, 0x1000 };

	(void)cmocka;
	for (u32 i = 0; i < NR_WORDS; i++)
		words[i] = 0x1000 + i;
	check(&f, (const u8 *)words, NR_WORDS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_words),
		cmocka_unit_test(test_all_pass),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
