/* SPDX-License-Identifier: GPL-2.0-or-later */
/* System calls that a stopped, ptraced thread makes for us. */
#pragma once

#include <sys/types.h>

#include "user/lib/types.h"

enum { REMOTE_MAX_ARGS = 6, REMOTE_REGS_BYTES = 512, REMOTE_SYSCALL_BYTES = 2 };

/* The registers that a thread goes on with. */
struct remote_regs {
	taddr_t pc, sp;
	bool is_at_syscall; /* stopped before a system call, which it will begin again */
	u64 blocked;	    /* signals */
	_Alignas(16) u8 bytes[REMOTE_REGS_BYTES];
};

/*
 * Read the registers of @tid, and block its signals until remote_restore(). -EOPNOTSUPP: not on this CPU, or not in
 * 32-bit code.
 */
int remote_begin(struct remote_regs *out, pid_t tid) __must_check;

/* The instruction that makes a system call. */
extern const u8 remote_syscall_code[REMOTE_SYSCALL_BYTES];

/*
 * Have thread @tid, whose registers are @regs, make system call @nr with @args by the instruction at @insn. Its result,
 * which may be -errno, is in *@result. The thread is then stopped behind the call: remote_restore() brings it back.
 * Blocks until the call has returned. *@sig is set to a signal that came meanwhile (SIGSTOP), and is to be delivered.
 * -ESRCH: the thread has ended.
 */
int remote_call(pid_t tid, const struct remote_regs *regs, taddr_t insn, long nr,
		const u64 args[REMOTE_MAX_ARGS], s64 *result, int *sig) __must_check;

/* 0, -ESRCH, or another -errno. */
int remote_restore(pid_t tid, const struct remote_regs *regs) __must_check;
