/* SPDX-License-Identifier: GPL-2.0-or-later */
/* ARM's unwind operations by hand, in words that need no memory, and all words that chance makes. */
#include "user/unwind/cfi_exidx.h"

#include <elf.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "arch/unwind.h"
#include "bpf/cfi_rule.h"

enum { ROUNDS = 200000 };

static u32 rule_of(u32 word)
{
	static const struct elf elf = { .machine = EM_ARM, .word_size = 4 };

	return cfi_exidx_rule(&elf, unwind_arch(EM_ARM, 4), 0x1004, word);
}

static void test_operations(void **state)
{
	static const struct {
		u32 word, rule;
	} cases[] = {
		{ 1, CFI_NONE },
		{ 0x80b0b0b0, CFI_SP | CFI_SAME << CFI_SAVE_SHIFT },
	};
	static const struct {
		u32 word, kind, cfa, save, words;
	} frames[] = {
		{ 0x80a8b0b0, CFI_SP, 2, CFI_RA_AT_CFA, 1 },	     /* pop {r4, lr} */
		{ 0x8001a8b0, CFI_SP, 4, CFI_RA_AT_CFA, 1 },	     /* sp += 8, pop {r4, lr} */
		{ 0x808408b0, CFI_SP, 2, CFI_PAIR_AT_CFA, 2 },	     /* pop {r7, lr} */
		{ 0x80abb0b0, CFI_SP, 5, CFI_PAIR_AT_CFA, 2 },	     /* pop {r4 to r7, lr} */
		{ 0x808418b0, CFI_SP, 3, CFI_RA_AT_CFA_FP_LOST, 1 }, /* pop {r7, r8, lr} */
		{ 0x80978408, CFI_FP, 2, CFI_PAIR_AT_CFA, 2 },	     /* sp = r7, pop {r7, lr} */
		{ 0x80b10fa8, CFI_SP, 6, CFI_RA_AT_CFA, 1 },	     /* pop {r0 to r3}, pop {r4, lr} */
		{ 0x80b201a8, CFI_SP, 132, CFI_RA_AT_CFA, 1 },	     /* sp += 0x208, pop {r4, lr} */
		{ 0x80b9a8b0, CFI_SP, 7, CFI_RA_AT_CFA, 1 }, /* pop {d8, d9} and a word, pop {r4, lr} */
	};
	static const u32 unsupported[] = {
		0x809bb0b0,			    /* sp = r11: the table knows r7 only */
		0x808000b0,			    /* refuses */
		0x80b100b0, 0x80b110b0, 0x80c0b0b0, /* spare */
		0x80840497,			    /* sp = r7, but not at first */
		0x83000000,			    /* no such personality */
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		assert_int_equal(rule_of(cases[i].word), cases[i].rule);
	for (size_t i = 0; i < ARRAY_SIZE(frames); i++)
		assert_int_equal(rule_of(frames[i].word), cfi_rule(frames[i].kind, (s32)frames[i].cfa,
								   frames[i].save, frames[i].words));
	for (size_t i = 0; i < ARRAY_SIZE(unsupported); i++)
		assert_int_equal(rule_of(unsupported[i]), CFI_UNSUPPORTED);
}

/* Nothing is walked but what a rule can say. */
static void test_chance(void **state)
{
	(void)state;
	srandom(1);
	for (int i = 0; i < ROUNDS; i++) {
		u32 rule = rule_of(0x80000000 | ((u32)random() & 0xffffff)), kind = cfi_kind(rule);

		assert_true(rule == CFI_UNSUPPORTED || kind == CFI_SP || kind == CFI_FP);
		if (rule != CFI_UNSUPPORTED)
			assert_true(cfi_cfa_words(rule) >= 0);
	}
}

/* A file without the table. */
static void test_none(void **state)
{
	const struct elf elf = { .machine = EM_ARM, .word_size = 4 };

	(void)state;
	assert_int_equal(cfi_exidx_each(&elf, unwind_arch(EM_ARM, 4), NULL, NULL), -ENOENT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_operations),
		cmocka_unit_test(test_chance),
		cmocka_unit_test(test_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
