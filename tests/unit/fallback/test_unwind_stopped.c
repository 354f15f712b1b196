/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Stack walks of a thread that has stopped in code without information: its next instruction is no return address. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <elf.h>
#include <errno.h>
#include <string.h>

#include "arch/unwind.h"
#include "bpf/cfi_rule.h"
#include "fallback/unwind.h"
#include "user/unwind/cfi.h"

enum { CODE_AT = 0x400000, RETURN_AT = CODE_AT + 0x200, STACK_AT = 0x1000, NR_WORDS = 80, MAX_FRAMES = 4 };

static u64 words[NR_WORDS];

/* The code by which a signal handler returns is at RETURN_AT, and no other code can be read. */
static int read_stopped(void *ctx, taddr_t addr, void *buf, size_t len)
{
	const struct unwind_arch *arch = ctx;

	if (addr == RETURN_AT && len == sizeof(arch->signal_code)) {
		memcpy(buf, &arch->signal_code, len);
		return 0;
	}
	if (addr < STACK_AT || addr + len > STACK_AT + sizeof(words))
		return -EFAULT;
	memcpy(buf, (const char *)words + (addr - STACK_AT), len);
	return 0;
}

/* There is information from CODE_AT + 0x20 up to RETURN_AT: the outermost function. */
static bool find_stopped(void *ctx, taddr_t pc, struct unwind_place *place)
{
	static struct cfi_row rows[] = { { 0, CFI_NONE }, { 0x20, 0 }, { RETURN_AT - CODE_AT, CFI_NONE } };
	static const struct cfi_table table = { .text_base = CODE_AT, .rows = rows, .nr_rows = 3 };

	(void)ctx;
	rows[1].rule = cfi_rule(CFI_OUTERMOST, 0, 0, 0);
	place->table = &table;
	return pc >= CODE_AT && pc < CODE_AT + 0x1000;
}

static size_t walk_from(taddr_t pc, taddr_t *ips, enum stack_end *end)
{
	const struct unwind_arch *arch = unwind_arch(EM_X86_64, 8);
	const struct unwinder u = {
		.arch = arch, .ctx = (void *)arch, .read = read_stopped, .find = find_stopped
	};
	const struct unwind_regs regs = { .pc = pc, .sp = STACK_AT };

	words[(arch->signal_sp + arch->signal_pc) / 8] = CODE_AT + 0x42;
	return unwind_walk(&u, &regs, ips, MAX_FRAMES, end);
}

static void at_the_return_of_a_handler(void **state)
{
	taddr_t ips[MAX_FRAMES];
	enum stack_end end;

	(void)state;
	assert_int_equal(walk_from(RETURN_AT, ips, &end), 1);
	assert_int_equal(ips[0], CODE_AT + 0x43);
	assert_int_equal(end, STACK_COMPLETE);
}

/* No call returns to code with information behind code without. This is none. */
static void before_code_with_information(void **state)
{
	taddr_t ips[MAX_FRAMES];
	enum stack_end end;

	(void)state;
	assert_int_equal(walk_from(CODE_AT + 0x1f, ips, &end), 0);
	assert_int_equal(end, STACK_NO_INFO);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(at_the_return_of_a_handler),
					    cmocka_unit_test(before_code_with_information) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
