/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Yama, a security module of the kernel: what its setting forbids, in words. */
#include "user/lib/yama.h"

#include <linux/capability.h>
#include <stdlib.h>
#include <unistd.h>

#include "user/lib/proc.h"

enum { YAMA_CHILDREN = 1, YAMA_PRIVILEGED = 2 };

const char *yama_reason_for(int scope, bool has_ptrace)
{
	if (scope >= YAMA_NO_ATTACH)
		return "kernel.yama.ptrace_scope is 3, which forbids it to all until the next boot";
	if (has_ptrace || scope < YAMA_CHILDREN)
		return NULL;
	if (scope == YAMA_PRIVILEGED)
		return "kernel.yama.ptrace_scope is 2, which asks for CAP_SYS_PTRACE: be root";
	return "kernel.yama.ptrace_scope is 1: be root, or start it with \"heaptap run\"";
}

const char *yama_reason(void)
{
	struct proc_status own = { 0 };
	char text[32];

	if (proc_read_text("/proc/sys/kernel/yama/ptrace_scope", text, sizeof(text)) <= 0)
		return NULL;
	if (proc_read_status(&own, getpid()))
		return NULL;
	return yama_reason_for(atoi(text), own.caps_effective & 1ULL << CAP_SYS_PTRACE);
}
