/* SPDX-License-Identifier: GPL-2.0-or-later */
/* aarch64: a stopped, ptraced thread. Of 32-bit ones only that they are 32-bit is known. */
#include "arch/tracee.h"

#include <elf.h>
#include <errno.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>

#ifndef NT_ARM_SYSTEM_CALL
#define NT_ARM_SYSTEM_CALL 0x404
#endif

enum { PROT_ARG = 2 /* of mmap, from 0 */ };

static const u32 brk_0 = 0xd4200000;

/* -ENOTSUP for a thread that runs 32-bit code, whose registers have another layout. */
static int get_regs(pid_t tid, struct user_regs_struct *regs)
{
	struct iovec iov = { .iov_base = regs, .iov_len = sizeof(*regs) };

	if (ptrace(PTRACE_GETREGSET, tid, (void *)NT_PRSTATUS, &iov))
		return -errno;
	return iov.iov_len == sizeof(*regs) ? 0 : -ENOTSUP;
}

int tracee_get_pc(pid_t tid, taddr_t *pc)
{
	struct user_regs_struct regs;
	int err = get_regs(tid, &regs);

	if (!err)
		*pc = regs.pc;
	return err;
}

int tracee_set_pc(pid_t tid, taddr_t pc)
{
	struct user_regs_struct regs;
	struct iovec iov = { .iov_base = &regs, .iov_len = sizeof(regs) };
	int err = get_regs(tid, &regs);

	if (err)
		return err;
	regs.pc = pc;
	return ptrace(PTRACE_SETREGSET, tid, (void *)NT_PRSTATUS, &iov) ? -errno : 0;
}

long tracee_breakpoint(long word)
{
	return (word & ~0xffffffffL) | brk_0;
}

taddr_t tracee_after_breakpoint(taddr_t addr)
{
	return addr;
}

enum tracee_call tracee_call(pid_t tid)
{
	struct user_regs_struct regs;
	int number = -1;
	struct iovec iov = { .iov_base = &number, .iov_len = sizeof(number) };

	if (get_regs(tid, &regs) || ptrace(PTRACE_GETREGSET, tid, (void *)NT_ARM_SYSTEM_CALL, &iov))
		return TRACEE_CALL_OTHER;
	switch (number) {
	case SYS_mmap:
		return regs.regs[PROT_ARG] & PROT_EXEC ? TRACEE_CALL_MAPS_CODE : TRACEE_CALL_LOADING;
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
	default:
		return TRACEE_CALL_OTHER;
	}
}
