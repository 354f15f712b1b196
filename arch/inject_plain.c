/* SPDX-License-Identifier: GPL-2.0-or-later */
/* CPUs on which no thread carries out system calls for heaptap. */
#include "arch/inject.h"

#include <errno.h>

#if !defined(__x86_64__)

enum inject_place inject_place(const struct cpu_regs *regs)
{
	(void)regs;
	return INJECT_NOWHERE;
}

taddr_t inject_pc(const struct cpu_regs *regs)
{
	(void)regs;
	return 0;
}

int inject_find(const u8 *code, size_t len, size_t *at)
{
	(void)code;
	(void)len;
	(void)at;
	return -ENOTSUP;
}

void inject_call(struct cpu_regs *regs, taddr_t insn, u64 number, const u64 args[INJECT_ARGS])
{
	(void)regs;
	(void)insn;
	(void)number;
	(void)args;
}

s64 inject_result(const struct cpu_regs *regs)
{
	(void)regs;
	return -ENOTSUP;
}

#endif
