/* SPDX-License-Identifier: GPL-2.0-or-later */
/* System calls of a stopped thread: not on this CPU yet. */
#include "arch/remote.h"

#include <errno.h>

#if !defined(__x86_64__)

const u8 remote_syscall_code[REMOTE_SYSCALL_BYTES];

int remote_begin(struct remote_regs *out, pid_t tid)
{
	(void)out;
	(void)tid;
	return -EOPNOTSUPP;
}

int remote_call(pid_t tid, const struct remote_regs *regs, taddr_t insn, long nr,
		const u64 args[REMOTE_MAX_ARGS], s64 *result, int *sig)
{
	(void)tid;
	(void)regs;
	(void)insn;
	(void)nr;
	(void)args;
	(void)result;
	(void)sig;
	return -EOPNOTSUPP;
}

int remote_restore(pid_t tid, const struct remote_regs *regs)
{
	(void)tid;
	(void)regs;
	return -EOPNOTSUPP;
}

#endif
