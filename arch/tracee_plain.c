/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A stopped, ptraced thread, on CPUs that need nothing but arch/cpu.h and two words of a system call. */
#include "arch/tracee.h"

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

static const u32 loading[] = {
#ifdef SYS_open
	SYS_open,	  SYS_access,	  SYS_readlink,
#endif
#ifdef SYS_fstat64
	SYS_fstat64,	  SYS_stat64,	  SYS_fstatat64,
#endif
#ifdef SYS_newfstatat
	SYS_fstat,	  SYS_newfstatat,
#endif
#ifdef SYS_statx
	SYS_statx,
#endif
#ifdef __ARM_NR_set_tls
	__ARM_NR_set_tls,
#endif
	SYS_openat,	  SYS_close,	  SYS_read,	  SYS_pread64,	 SYS_mprotect,
	SYS_munmap,	  SYS_brk,	  SYS_readlinkat, SYS_faccessat,
};

/* A CPU may have one of the two only. */
#ifndef SYS_mmap2
#define SYS_mmap2 SYS_mmap
#endif
#ifndef SYS_mmap
#define SYS_mmap SYS_mmap2
#endif

static const struct tracee_numbers numbers = {
	SYS_mmap, SYS_mmap2, SYS_exit, SYS_exit_group, SYS_clone, loading, ARRAY_SIZE(loading),
};

enum tracee_call tracee_call(pid_t tid)
{
	struct cpu_regs regs;

	if (cpu_regs_read(&regs, tid))
		return TRACEE_CALL_OTHER;
	return tracee_meaning(&numbers, (u32)cpu_regs_word(&regs, NATIVE.word_size, NUMBER),
			      cpu_regs_word(&regs, NATIVE.word_size, PROT_ARG),
			      0 /* observers are not looked for here */);
}

#endif
