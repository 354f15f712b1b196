/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Preloaded: the kernel takes a BPF program at the second try only, as it does while a signal is pending
 * (kernel/bpf/verifier.c).
 */
#include <dlfcn.h>
#include <errno.h>
#include <linux/bpf.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>

long syscall(long nr, ...)
{
	static long (*next)(long nr, ...);
	static unsigned long long put_off; /* its instructions; 0 = none */
	const union bpf_attr *attr;
	long args[6];
	va_list list;

	va_start(list, nr);
	for (int i = 0; i < 6; i++)
		args[i] = va_arg(list, long);
	va_end(list);
	if (!next)
		next = (long (*)(long, ...))dlsym(RTLD_NEXT, "syscall");
	attr = nr == SYS_bpf && args[0] == BPF_PROG_LOAD ? (const union bpf_attr *)(uintptr_t)args[1] : NULL;
	if (attr && attr->insns != put_off) {
		put_off = attr->insns;
		errno = EAGAIN;
		return -1;
	}
	if (attr)
		put_off = 0;
	return next(nr, args[0], args[1], args[2], args[3], args[4], args[5]);
}
