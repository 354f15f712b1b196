/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Stack walks by the chain of frames of PowerPC, from a call and from an instruction. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <elf.h>
#include <errno.h>
#include <string.h>

#include "arch/unwind.h"
#include "fallback/unwind.h"

enum { CODE_AT = 0x10000, STACK_AT = 0x20000, MAX_FRAMES = 8 };

/* Three frames of 16 bytes; the word behind the pointer to a caller's frame is where that frame's callee returns to. */
static const u32 stack[] = {
	STACK_AT + 16, 0, 0, 0, STACK_AT + 32, CODE_AT + 0x20, 0, 0, 0, 0,
};

static int read_stack(void *ctx, taddr_t addr, void *buf, size_t len)
{
	(void)ctx;
	if (addr < STACK_AT || addr + len > STACK_AT + sizeof(stack))
		return -EFAULT;
	memcpy(buf, (const char *)stack + (addr - STACK_AT), len);
	return 0;
}

static bool find_code(void *ctx, taddr_t pc, struct unwind_place *place)
{
	(void)ctx;
	(void)place;
	return pc >= CODE_AT && pc < CODE_AT + 0x1000;
}

static void check(bool is_at_entry, const taddr_t *want, size_t nr)
{
	const struct unwinder u = { .arch = unwind_arch(EM_PPC, 4), .read = read_stack, .find = find_code };
	const struct unwind_regs regs = {
		.pc = CODE_AT + 0x80, .sp = STACK_AT, .lr = CODE_AT + 0x10, .is_at_entry = is_at_entry
	};
	enum stack_end end;
	taddr_t ips[MAX_FRAMES];

	assert_int_equal(unwind_walk(&u, &regs, ips, MAX_FRAMES, &end), nr);
	for (size_t i = 0; i < nr; i++)
		assert_int_equal(ips[i], want[i]);
	assert_int_equal(end, STACK_COMPLETE);
}

/* All frames are return addresses, whatever the walk began with; the last one returns to address 0. */
static void frames_are_return_addresses(void **state)
{
	(void)state;
	check(true, (const taddr_t[]){ CODE_AT + 0x10, CODE_AT + 0x20 }, 2);
	check(false, (const taddr_t[]){ CODE_AT + 0x20 }, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(frames_are_return_addresses) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
