/* SPDX-License-Identifier: GPL-2.0-or-later */
/* ptrace() without the C library's function: with --follow that has a probe, which heaptap itself would run into. */
#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifdef __GLIBC__
/* Takes the place of the library's function, in all of heaptap. Contract: that of <sys/ptrace.h>. */
long ptrace(enum __ptrace_request request, ...)
{
	void *addr, *data;
	long word = 0, ret;
	bool is_peek = request == PTRACE_PEEKTEXT || request == PTRACE_PEEKDATA || request == PTRACE_PEEKUSER;
	va_list args;
	pid_t tid;

	va_start(args, request);
	tid = va_arg(args, pid_t);
	addr = va_arg(args, void *);
	data = va_arg(args, void *);
	va_end(args);
	/* The system call writes what the function returns. */
	ret = syscall(SYS_ptrace, request, tid, addr, is_peek ? &word : data);
	if (ret || !is_peek)
		return ret;
	errno = 0;
	return word;
}
#endif
