/* SPDX-License-Identifier: GPL-2.0-or-later */
/* System calls of a stopped thread on x86_64. */
#include "arch/remote.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>

#include <linux/ptrace.h>

enum { CS_64BIT = 0x33, MAX_STOPS = 64 };

const u8 remote_syscall_code[REMOTE_SYSCALL_BYTES] = { 0x0f, 0x05 };

_Static_assert(sizeof(struct user_regs_struct) <= REMOTE_REGS_BYTES, "room for registers");

/* The kind of the system call stop of @tid: PTRACE_SYSCALL_INFO_..., NONE in another stop. */
static int syscall_stop(pid_t tid, struct __ptrace_syscall_info *info)
{
	memset(info, 0, sizeof(*info));
	return ptrace(PTRACE_GET_SYSCALL_INFO, tid, sizeof(*info), info) <= 0 ? PTRACE_SYSCALL_INFO_NONE
									      : info->op;
}

int remote_begin(struct remote_regs *out, pid_t tid)
{
	struct __ptrace_syscall_info info;
	struct user_regs_struct regs;
	u64 all = ~0ULL;

	if (ptrace(PTRACE_GETREGS, tid, 0, &regs))
		return -errno;
	if (regs.cs != CS_64BIT)
		return -EOPNOTSUPP;
	out->is_at_syscall = syscall_stop(tid, &info) == PTRACE_SYSCALL_INFO_ENTRY;
	if (out->is_at_syscall) {
		regs.rip -= REMOTE_SYSCALL_BYTES;
		regs.rax = regs.orig_rax;
		regs.orig_rax = (u64)-1;
	}
	out->pc = regs.rip;
	out->sp = regs.rsp;
	memcpy(out->bytes, &regs, sizeof(regs));
	if (ptrace(PTRACE_GETSIGMASK, tid, sizeof(out->blocked), &out->blocked) ||
	    ptrace(PTRACE_SETSIGMASK, tid, sizeof(all), &all))
		return -errno;
	return 0;
}

int remote_call(pid_t tid, const struct remote_regs *saved, taddr_t insn, long nr,
		const u64 args[REMOTE_MAX_ARGS], s64 *result, int *sig)
{
	struct __ptrace_syscall_info info;
	struct user_regs_struct regs;
	bool has_begun = false;
	int status;

	memcpy(&regs, saved->bytes, sizeof(regs));
	regs.rip = insn;
	regs.rax = (u64)nr;
	regs.orig_rax = (u64)-1;
	regs.rdi = args[0];
	regs.rsi = args[1];
	regs.rdx = args[2];
	regs.r10 = args[3];
	regs.r8 = args[4];
	regs.r9 = args[5];
	for (int i = 0; i < MAX_STOPS; i++) {
		int kind;

		/* In the stop of an exec the kernel is still going to write the result of that. */
		if (!has_begun && ptrace(PTRACE_SETREGS, tid, 0, &regs))
			return -errno;
		if (ptrace(PTRACE_SYSCALL, tid, 0, 0))
			return -errno;
		while (waitpid(tid, &status, __WALL) < 0)
			if (errno != EINTR)
				return -errno;
		if (!WIFSTOPPED(status))
			return -ESRCH;
		if (!(status >> 16) && (WSTOPSIG(status) & 0x7f) != SIGTRAP)
			*sig = WSTOPSIG(status);
		kind = syscall_stop(tid, &info);
		if (kind == PTRACE_SYSCALL_INFO_ENTRY && info.entry.nr == (u64)nr &&
		    info.instruction_pointer == insn + REMOTE_SYSCALL_BYTES)
			has_begun = true;
		else if (kind == PTRACE_SYSCALL_INFO_EXIT && has_begun) {
			*result = info.exit.rval;
			return 0;
		}
	}
	return -EIO;
}

int remote_restore(pid_t tid, const struct remote_regs *saved)
{
	struct user_regs_struct regs;

	memcpy(&regs, saved->bytes, sizeof(regs));
	if (ptrace(PTRACE_SETREGS, tid, 0, &regs) ||
	    ptrace(PTRACE_SETSIGMASK, tid, sizeof(saved->blocked), &saved->blocked))
		return -errno;
	return 0;
}
