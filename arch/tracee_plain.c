/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A stopped, ptraced thread, on CPUs that need nothing but arch/cpu.h and two words of a system call. */
#include "arch/tracee.h"

#include <sys/mman.h>
#include <sys/syscall.h>

#include "arch/cpu_emulate.h"

#if !defined(__x86_64__) && !defined(__aarch64__)

/* Words in the kernel's order: the number of the system call, and its third argument (the access rights of mmap). */
#if defined(__arm__)
enum { NUMBER = 7, PROT_ARG = 2 };
#define NATIVE cpu_arm
#elif defined(__riscv)
enum { NUMBER = 17, PROT_ARG = 12 };
#define NATIVE cpu_riscv64
#elif defined(__mips__)
enum { NUMBER = 8, PROT_ARG = 12 };
#define NATIVE cpu_mipsel
#elif defined(__powerpc__)
enum { NUMBER = 0, PROT_ARG = 5 };
#define NATIVE cpu_powerpc
#elif defined(__i386__)
enum { NUMBER = 11, PROT_ARG = 2 };
#define NATIVE cpu_i386
#endif

static const struct system_call {
	u32 number;
	enum tracee_call meaning;
} calls[] = {
#ifdef SYS_mmap
	{ SYS_mmap, TRACEE_CALL_MAPS_CODE },
#endif
#ifdef SYS_mmap2
	{ SYS_mmap2, TRACEE_CALL_MAPS_CODE },
#endif
#ifdef SYS_open
	{ SYS_open, TRACEE_CALL_LOADING },	   { SYS_access, TRACEE_CALL_LOADING },
	{ SYS_readlink, TRACEE_CALL_LOADING },
#endif
#ifdef SYS_fstat64
	{ SYS_fstat64, TRACEE_CALL_LOADING },	   { SYS_stat64, TRACEE_CALL_LOADING },
	{ SYS_fstatat64, TRACEE_CALL_LOADING },
#endif
#ifdef SYS_newfstatat
	{ SYS_fstat, TRACEE_CALL_LOADING },	   { SYS_newfstatat, TRACEE_CALL_LOADING },
#endif
#ifdef SYS_statx
	{ SYS_statx, TRACEE_CALL_LOADING },
#endif
#ifdef __ARM_NR_set_tls
	{ __ARM_NR_set_tls, TRACEE_CALL_LOADING },
#endif
	{ SYS_openat, TRACEE_CALL_LOADING },	   { SYS_close, TRACEE_CALL_LOADING },
	{ SYS_read, TRACEE_CALL_LOADING },	   { SYS_pread64, TRACEE_CALL_LOADING },
	{ SYS_mprotect, TRACEE_CALL_LOADING },	   { SYS_munmap, TRACEE_CALL_LOADING },
	{ SYS_brk, TRACEE_CALL_LOADING },	   { SYS_readlinkat, TRACEE_CALL_LOADING },
	{ SYS_faccessat, TRACEE_CALL_LOADING },	   { SYS_exit, TRACEE_CALL_EXITS },
	{ SYS_exit_group, TRACEE_CALL_EXITS_ALL },
};

enum tracee_call tracee_call(pid_t tid)
{
	struct cpu_regs regs;
	u32 number;

	if (cpu_regs_read(&regs, tid))
		return TRACEE_CALL_OTHER;
	number = (u32)cpu_regs_word(&regs, NATIVE.word_size, NUMBER);
	for (size_t i = 0; i < ARRAY_SIZE(calls); i++) {
		if (calls[i].number != number)
			continue;
		if (calls[i].meaning == TRACEE_CALL_MAPS_CODE &&
		    !(cpu_regs_word(&regs, NATIVE.word_size, PROT_ARG) & PROT_EXEC))
			return TRACEE_CALL_LOADING;
		return calls[i].meaning;
	}
	return TRACEE_CALL_OTHER;
}

#endif
