/* SPDX-License-Identifier: GPL-2.0-or-later */
/* x86_64: a system call that a stopped thread carries out. */
#include "arch/inject.h"

#include <errno.h>
#include <string.h>
#include <sys/user.h>

enum { CS_64BIT = 0x33, NO_CALL = -1 };

static void get(struct user_regs_struct *out, const struct cpu_regs *regs)
{
	memcpy(out, regs->bytes, sizeof(*out));
}

enum inject_place inject_place(const struct cpu_regs *regs)
{
	struct user_regs_struct r;

	if (regs->size < sizeof(r))
		return INJECT_NOWHERE;
	get(&r, regs);
	if (r.cs != CS_64BIT)
		return INJECT_NOWHERE;
	return (s64)r.orig_rax >= 0 ? INJECT_IN_CALL : INJECT_IN_PROGRAM;
}

taddr_t inject_pc(const struct cpu_regs *regs)
{
	struct user_regs_struct r;

	get(&r, regs);
	return r.rip;
}

int inject_find(const u8 *code, size_t len, size_t *at)
{
	for (size_t i = 0; i + 1 < len; i++) {
		if (code[i] != 0x0f || code[i + 1] != 0x05)
			continue;
		*at = i;
		return 0;
	}
	return -ENOENT;
}

void inject_call(struct cpu_regs *regs, taddr_t insn, u64 number, const u64 args[INJECT_ARGS])
{
	struct user_regs_struct r;

	get(&r, regs);
	r.rip = insn;
	r.rax = number;
	r.orig_rax = (unsigned long long)NO_CALL;
	r.rdi = args[0];
	r.rsi = args[1];
	r.rdx = args[2];
	r.r10 = args[3];
	r.r8 = args[4];
	r.r9 = args[5];
	memcpy(regs->bytes, &r, sizeof(r));
}

s64 inject_result(const struct cpu_regs *regs)
{
	struct user_regs_struct r;

	get(&r, regs);
	return (s64)r.rax;
}
