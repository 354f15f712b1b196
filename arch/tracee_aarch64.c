/* SPDX-License-Identifier: GPL-2.0-or-later */
/* aarch64, and 32-bit ARM processes on it: a stopped, ptraced thread. */
#include "arch/tracee.h"

#include <elf.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>

#ifndef NT_ARM_SYSTEM_CALL
#define NT_ARM_SYSTEM_CALL 0x404
#endif

enum { PROT_ARG = 2 /* of mmap, from 0 */, NR_WORDS_32 = 18, NUMBER_32 = 7 /* r7 */ };

static const u32 loading_64[] = {
	SYS_mprotect, SYS_munmap,  SYS_close,  SYS_fstat,     SYS_newfstatat, SYS_statx,
	SYS_read,     SYS_pread64, SYS_openat, SYS_faccessat, SYS_brk,	      SYS_readlinkat,
};
static const struct tracee_numbers numbers_64 = {
	SYS_mmap, SYS_mmap, SYS_exit, SYS_exit_group, SYS_clone, loading_64, ARRAY_SIZE(loading_64),
};

/*
 * Of 32-bit code, from arch/arm/tools/syscall.tbl: read, open, close, access, brk, readlink, munmap, mprotect, pread64,
 * stat64, fstat64, openat, fstatat64, readlinkat, faccessat, statx; and set_tls.
 */
static const u32 loading_32[] = { 3,   5,   6,	 33,  45,  85,	91,  125,    180,
				  195, 197, 322, 327, 332, 334, 397, 0xf0005 };
static const struct tracee_numbers numbers_32 = {
	192, 192, 1, 248, 120, loading_32, ARRAY_SIZE(loading_32),
};

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
		return tracee_meaning(&numbers_32, regs.narrow[NUMBER_32], regs.narrow[PROT_ARG],
				      regs.narrow[0]);
	if (ptrace(PTRACE_GETREGSET, tid, (void *)NT_ARM_SYSTEM_CALL, &call))
		return TRACEE_CALL_OTHER;
	return tracee_meaning(&numbers_64, (u32)number, regs.wide.regs[PROT_ARG], regs.wide.regs[0]);
}
