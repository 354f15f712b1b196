/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copies of code with a breakpoint in it: which code they are of, and what is none of ours (T3). */
#include "fallback/copied_code.h"

#include <elf.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

enum { HERE = 0x10000, THERE = 0x20000 };

/* endbr64; push %rbx; sub $16,%rsp; ...; ret */
static const u8 original[CPU_CODE_BYTES] = { 0xf3, 0x0f, 0x1e, 0xfa, 0x53, 0x48, 0x83, 0xec,
					     0x10, 0x89, 0xfb, 0x31, 0xc0, 0x5b, 0xc3, 0x90 };

static struct copied_code copy_of(const u8 code[CPU_CODE_BYTES])
{
	struct copied_code c = {
		.cpu = cpu_find(EM_X86_64, 8, false), .pc = HERE, .addr = HERE, .nr = CPU_CODE_BYTES
	};

	memcpy(c.code, code, CPU_CODE_BYTES);
	return c;
}

/* A copy of @original, with breakpoints at its first instruction, and at @also. */
static struct copied_code copy_with(size_t also)
{
	u8 code[CPU_CODE_BYTES];

	memcpy(code, original, sizeof(code));
	code[0] = code[also] = 0xcc;
	return copy_of(code);
}

static void a_copy_is_known(void **state)
{
	struct copied_code c = copy_with(14);

	(void)state;
	assert_true(copied_code_try(&c, THERE, original, sizeof(original)));
	assert_true(copied_code_is_known(&c));
	assert_int_equal(c.nr_same, 14);
	/* Where it was before, it is that code and no other. */
	assert_true(copied_code_try(&c, HERE, original, sizeof(original)));
	/* Another thread has taken the breakpoint out. */
	c = copy_of(original);
	assert_true(copied_code_try(&c, THERE, original, sizeof(original)));
	/* The original ends with its mapping. */
	c = copy_with(0);
	assert_true(copied_code_try(&c, THERE, original, 5));
	c = copy_with(0);
	assert_false(copied_code_try(&c, THERE, original, 4));
}

static void a_hook_copies_little(void **state)
{
	struct copied_code c = copy_with(0);

	(void)state;
	memset(c.code + 5, 0x11, sizeof(c.code) - 5);
	assert_true(copied_code_try(&c, THERE, original, sizeof(original)));
	c = copy_with(0);
	memset(c.code + 4, 0x11, sizeof(c.code) - 4);
	assert_false(copied_code_try(&c, THERE, original, sizeof(original)));
	assert_false(copied_code_is_known(&c));
}

/* Two places differ in nothing but the first byte, which the breakpoint hides. */
static void two_origins_are_unsure(void **state)
{
	struct copied_code c = copy_with(0);
	struct cpu_regs regs = { .size = 0 };
	u8 other[CPU_CODE_BYTES];

	(void)state;
	memcpy(other, original, sizeof(other));
	other[0] = 0xf2;
	assert_true(copied_code_try(&c, THERE, original, sizeof(original)));
	assert_false(copied_code_try(&c, THERE + 64, original, sizeof(original)));
	assert_true(copied_code_is_known(&c));
	assert_false(copied_code_try(&c, THERE + 128, other, sizeof(other)));
	assert_false(copied_code_is_known(&c));
	assert_int_equal(copied_code_mend(&c, &regs, NULL), -ENOENT);
	/* One that lay where the copy lies now is certain. */
	assert_true(copied_code_try(&c, HERE, other, sizeof(other)));
	assert_true(copied_code_is_known(&c));
	assert_int_equal(c.original[0], 0xf2);
}

/* The program's own breakpoints are delivered. */
static void own_breakpoints_are_no_copies(void **state)
{
	struct copied_code c = copy_with(0);

	(void)state;
	assert_false(copied_code_try(&c, THERE, c.code, sizeof(c.code)));
	c = copy_with(0);
	c.code[1] = 0xcd;
	assert_false(copied_code_try(&c, THERE, original, sizeof(original)));
	/* No breakpoint, nor the first byte of the code. */
	c = copy_with(0);
	c.code[0] = 0x03;
	assert_false(copied_code_try(&c, THERE, original, sizeof(original)));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_copy_is_known),
		cmocka_unit_test(a_hook_copies_little),
		cmocka_unit_test(two_origins_are_unsure),
		cmocka_unit_test(own_breakpoints_are_no_copies),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
