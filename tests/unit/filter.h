/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A seccomp filter that answers chosen system calls with an errno, as containers do. */
#pragma once

#include <errno.h>
#include <linux/audit.h>
#include <linux/bpf.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#if defined(__x86_64__)
#define FILTER_ARCH AUDIT_ARCH_X86_64
#elif defined(__i386__)
#define FILTER_ARCH AUDIT_ARCH_I386
#elif defined(__aarch64__)
#define FILTER_ARCH AUDIT_ARCH_AARCH64
#elif defined(__arm__)
#define FILTER_ARCH AUDIT_ARCH_ARM
#elif defined(__riscv)
#define FILTER_ARCH AUDIT_ARCH_RISCV64
#endif

enum { FILTER_BPF = 1, FILTER_PERF = 2, FILTER_LINK = 4 }; /* FILTER_LINK: only bpf(BPF_LINK_CREATE) */

/* System calls in @what fail with @err from now on, in this process and those it starts. 0 or -errno. */
static inline int filter_install(int what, int err)
{
	uint32_t no = SECCOMP_RET_ERRNO | ((uint32_t)err & SECCOMP_RET_DATA);
	/* Numbers of another instruction set (32-bit calls of a 64-bit kernel) mean other calls: let them be. */
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, FILTER_ARCH, 0, 7),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, what & FILTER_PERF ? SYS_perf_event_open : UINT32_MAX, 4,
			 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, what & FILTER_BPF ? SYS_bpf : UINT32_MAX, 3, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, what & FILTER_LINK ? SYS_bpf : UINT32_MAX, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
			 offsetof(struct seccomp_data, args[0])), /* low word: little endian */
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, BPF_LINK_CREATE, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, no),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog prog = { .len = sizeof(filter) / sizeof(filter[0]), .filter = filter };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog) != 0)
		return -errno;
	return 0;
}
