/* SPDX-License-Identifier: GPL-2.0-or-later */
/* aarch64, and 32-bit ARM processes on it: a stopped, ptraced thread. */
#include "arch/tracee.h"

#include <elf.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>

#ifndef NT_ARM_SYSTEM_CALL
#define NT_ARM_SYSTEM_CALL 0x404
#endif

enum { PROT_ARG = 2 /* of mmap, from 0 */, NR_WORDS_32 = 18, NUMBER_32 = 7 /* r7 */ };

/* System call numbers of 32-bit code, from arch/arm/tools/syscall.tbl. */
enum {
	ARM_EXIT = 1,
	ARM_READ = 3,
	ARM_OPEN = 5,
	ARM_CLOSE = 6,
	ARM_ACCESS = 33,
	ARM_BRK = 45,
	ARM_READLINK = 85,
	ARM_MUNMAP = 91,
	ARM_CLONE = 120,
	ARM_MPROTECT = 125,
	ARM_PREAD64 = 180,
	ARM_MMAP2 = 192,
	ARM_STAT64 = 195,
	ARM_FSTAT64 = 197,
	ARM_EXIT_GROUP = 248,
	ARM_OPENAT = 322,
	ARM_FSTATAT64 = 327,
	ARM_READLINKAT = 332,
	ARM_FACCESSAT = 334,
	ARM_STATX = 397,
	ARM_SET_TLS = 0xf0005,
};

static enum tracee_call call_64(const struct user_regs_struct *regs, int number)
{
	switch (number) {
	case SYS_mmap:
		return regs->regs[PROT_ARG] & PROT_EXEC ? TRACEE_CALL_MAPS_CODE : TRACEE_CALL_LOADING;
	case SYS_mprotect:
	case SYS_munmap:
	case SYS_close:
	case SYS_fstat:
	case SYS_newfstatat:
	case SYS_statx:
	case SYS_read:
	case SYS_pread64:
	case SYS_openat:
	case SYS_faccessat:
	case SYS_brk:
	case SYS_readlinkat:
		return TRACEE_CALL_LOADING;
	case SYS_exit_group:
		return TRACEE_CALL_EXITS_ALL;
	case SYS_exit:
		return TRACEE_CALL_EXITS;
	case SYS_clone:
		return regs->regs[0] & CLONE_UNTRACED ? TRACEE_CALL_OBSERVED : TRACEE_CALL_OTHER;
	default:
		return TRACEE_CALL_OTHER;
	}
}

static enum tracee_call call_32(const u32 *words)
{
	switch (words[NUMBER_32]) {
	case ARM_MMAP2:
		return words[PROT_ARG] & PROT_EXEC ? TRACEE_CALL_MAPS_CODE : TRACEE_CALL_LOADING;
	case ARM_READ:
	case ARM_OPEN:
	case ARM_CLOSE:
	case ARM_ACCESS:
	case ARM_BRK:
	case ARM_READLINK:
	case ARM_MUNMAP:
	case ARM_MPROTECT:
	case ARM_PREAD64:
	case ARM_STAT64:
	case ARM_FSTAT64:
	case ARM_OPENAT:
	case ARM_FSTATAT64:
	case ARM_READLINKAT:
	case ARM_FACCESSAT:
	case ARM_STATX:
	case ARM_SET_TLS:
		return TRACEE_CALL_LOADING;
	case ARM_EXIT_GROUP:
		return TRACEE_CALL_EXITS_ALL;
	case ARM_EXIT:
		return TRACEE_CALL_EXITS;
	case ARM_CLONE:
		return words[0] & CLONE_UNTRACED ? TRACEE_CALL_OBSERVED : TRACEE_CALL_OTHER;
	default:
		return TRACEE_CALL_OTHER;
	}
}

enum tracee_call tracee_call(pid_t tid)
{
	union {
		struct user_regs_struct wide;
		u32 narrow[NR_WORDS_32];
	} regs;
	int number = -1;
	struct iovec iov = { .iov_base = &regs, .iov_len = sizeof(regs) };
	struct iovec call = { .iov_base = &number, .iov_len = sizeof(number) };

	if (ptrace(PTRACE_GETREGSET, tid, (void *)NT_PRSTATUS, &iov))
		return TRACEE_CALL_OTHER;
	if (iov.iov_len == sizeof(regs.narrow))
		return call_32(regs.narrow);
	if (ptrace(PTRACE_GETREGSET, tid, (void *)NT_ARM_SYSTEM_CALL, &call))
		return TRACEE_CALL_OTHER;
	return call_64(&regs.wide, number);
}
