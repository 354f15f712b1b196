/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Makes the filter program of a list of system calls, and gives it to the kernel. */
#include "user/lib/call_filter.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__x86_64__)
#define NATIVE AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define NATIVE AUDIT_ARCH_AARCH64
#else
#define NATIVE AUDIT_ARCH_RISCV64
#endif

#ifdef HAS_CALL_FILTER
/* Numbers from here on are those of x32, a second set on x86_64. No CPU has others. */
enum { X32_CALLS = 0x40000000 };

int call_filter_set(enum call_filter kind, const u16 *calls, size_t nr)
{
	enum { HEAD = 5, TAIL = 2 };
	const u32 pass = SECCOMP_RET_ALLOW, refuse = SECCOMP_RET_ERRNO | EPERM;
	struct sock_filter code[HEAD + CALL_FILTER_MAX + TAIL] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, NATIVE, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, refuse),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		/* To the end, which refuses by CALL_FILTER_DENY, or to the instruction before it. */
		BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, X32_CALLS, kind == CALL_FILTER_DENY ? nr + 1 : nr, 0),
	};
	const struct sock_fprog program = { .len = (u16)(HEAD + nr + TAIL), .filter = code };
	long err;

	if (nr > CALL_FILTER_MAX)
		return -E2BIG;
	for (size_t i = 0; i < nr; i++)
		code[HEAD + i] =
			(struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, calls[i], (u8)(nr - i), 0);
	code[HEAD + nr] =
		(struct sock_filter)BPF_STMT(BPF_RET | BPF_K, kind == CALL_FILTER_DENY ? pass : refuse);
	code[HEAD + nr + 1] =
		(struct sock_filter)BPF_STMT(BPF_RET | BPF_K, kind == CALL_FILTER_DENY ? refuse : pass);
	/* A positive result is a thread that has another filter. */
	err = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program);
	return err > 0 ? -ESRCH : err ? -errno : 0;
}
#else
int call_filter_set(enum call_filter kind, const u16 *calls, size_t nr)
{
	(void)kind, (void)calls, (void)nr;
	return -ENOSYS;
}
#endif
