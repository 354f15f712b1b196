/* SPDX-License-Identifier: GPL-2.0-or-later */
/* x86_64, and i386 processes on it: a stopped, ptraced thread. */
#include "arch/tracee.h"

#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/user.h>

enum { CS_64BIT = 0x33 };

static const u32 loading_64[] = {
	SYS_mprotect, SYS_munmap,  SYS_close, SYS_fstat,  SYS_stat,   SYS_newfstatat, SYS_statx,
	SYS_read,     SYS_pread64, SYS_open,  SYS_openat, SYS_access, SYS_brk,	      SYS_readlink,
};
static const struct tracee_numbers numbers_64 = {
	SYS_mmap, SYS_mmap, SYS_exit, SYS_exit_group, SYS_clone, loading_64, ARRAY_SIZE(loading_64),
};

/*
 * Of arch/x86/entry/syscalls/syscall_32.tbl: read, open, close, access, brk, readlink, munmap, mprotect, pread64,
 * stat64, fstat64, openat, fstatat64, statx.
 */
static const u32 loading_32[] = { 3, 5, 6, 33, 45, 85, 91, 125, 180, 195, 197, 295, 300, 383 };
static const struct tracee_numbers numbers_32 = {
	192, 192, 1, 252, 120, loading_32, ARRAY_SIZE(loading_32),
};

enum tracee_call tracee_call(pid_t tid)
{
	struct user_regs_struct regs;

	if (ptrace(PTRACE_GETREGS, tid, 0, &regs))
		return TRACEE_CALL_OTHER;
	if (regs.cs == CS_64BIT)
		return tracee_meaning(&numbers_64, (u32)regs.orig_rax, regs.rdx, regs.rdi);
	return tracee_meaning(&numbers_32, (u32)regs.orig_rax, regs.rdx, regs.rbx);
}
