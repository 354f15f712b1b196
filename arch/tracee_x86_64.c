/* SPDX-License-Identifier: GPL-2.0-or-later */
/* x86_64, and i386 processes on it: a stopped, ptraced thread. */
#include "arch/tracee.h"

#include <sched.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/user.h>

enum { CS_64BIT = 0x33 };

/* Numbers of arch/x86/entry/syscalls/syscall_32.tbl, where they differ in use. */
enum {
	I386_EXIT = 1,
	I386_READ = 3,
	I386_OPEN = 5,
	I386_CLOSE = 6,
	I386_ACCESS = 33,
	I386_BRK = 45,
	I386_READLINK = 85,
	I386_MUNMAP = 91,
	I386_CLONE = 120,
	I386_MPROTECT = 125,
	I386_PREAD64 = 180,
	I386_MMAP2 = 192,
	I386_STAT64 = 195,
	I386_FSTAT64 = 197,
	I386_SET_THREAD_AREA = 243,
	I386_EXIT_GROUP = 252,
	I386_OPENAT = 295,
	I386_FSTATAT64 = 300,
	I386_STATX = 383,
};

static enum tracee_call call_64(const struct user_regs_struct *regs)
{
	switch (regs->orig_rax) {
	case SYS_mmap:
		return regs->rdx & PROT_EXEC ? TRACEE_CALL_MAPS_CODE : TRACEE_CALL_LOADING;
	case SYS_mprotect:
	case SYS_munmap:
	case SYS_close:
	case SYS_fstat:
	case SYS_stat:
	case SYS_newfstatat:
	case SYS_statx:
	case SYS_read:
	case SYS_pread64:
	case SYS_open:
	case SYS_openat:
	case SYS_access:
	case SYS_brk:
	case SYS_readlink:
		return TRACEE_CALL_LOADING;
	case SYS_exit_group:
		return TRACEE_CALL_EXITS_ALL;
	case SYS_exit:
		return TRACEE_CALL_EXITS;
	case SYS_clone:
		return regs->rdi & CLONE_UNTRACED ? TRACEE_CALL_OBSERVED : TRACEE_CALL_OTHER;
	default:
		return TRACEE_CALL_OTHER;
	}
}

static enum tracee_call call_32(const struct user_regs_struct *regs)
{
	switch ((u32)regs->orig_rax) {
	case I386_MMAP2:
		return regs->rdx & PROT_EXEC ? TRACEE_CALL_MAPS_CODE : TRACEE_CALL_LOADING;
	case I386_READ:
	case I386_OPEN:
	case I386_CLOSE:
	case I386_ACCESS:
	case I386_BRK:
	case I386_READLINK:
	case I386_MUNMAP:
	case I386_MPROTECT:
	case I386_PREAD64:
	case I386_STAT64:
	case I386_FSTAT64:
	case I386_OPENAT:
	case I386_FSTATAT64:
	case I386_STATX:
		return TRACEE_CALL_LOADING;
	case I386_EXIT_GROUP:
		return TRACEE_CALL_EXITS_ALL;
	case I386_EXIT:
		return TRACEE_CALL_EXITS;
	case I386_CLONE:
		return regs->rbx & CLONE_UNTRACED ? TRACEE_CALL_OBSERVED : TRACEE_CALL_OTHER;
	default:
		return TRACEE_CALL_OTHER;
	}
}

enum tracee_call tracee_call(pid_t tid)
{
	struct user_regs_struct regs;

	if (ptrace(PTRACE_GETREGS, tid, 0, &regs))
		return TRACEE_CALL_OTHER;
	return regs.cs == CS_64BIT ? call_64(&regs) : call_32(&regs);
}
