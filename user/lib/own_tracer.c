/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Names the tracer of this process. */
#include "user/lib/own_tracer.h"

#include <stdio.h>
#include <unistd.h>

#include "user/lib/proc.h"

const char *own_tracer_reason(char *buf, size_t size)
{
	struct proc_status own = { 0 };
	struct proc_stat tracer = { .comm = "" };

	if (proc_read_status(&own, getpid()) || !own.tracer_pid)
		return NULL;
	if (proc_read_stat(&tracer, own.tracer_pid))
		snprintf(tracer.comm, sizeof(tracer.comm), "another program");
	snprintf(buf, size, "%s (PID %d) traces heaptap and what it starts, and Linux allows one tracer",
		 tracer.comm, own.tracer_pid);
	return buf;
}
