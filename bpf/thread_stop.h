/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Why the BPF programs have stopped a thread of a program that heaptap started: they tell its ptracer. */
#pragma once

#ifndef __bpf__ /* the BPF programs define these types in bpf/compat.bpf.h */
#include "user/lib/types.h"
#endif

enum thread_stop_why {
	THREAD_STOP_LOOK, /* its mappings have changed, or it asks for a verdict: look at it, then let it go on */
	THREAD_STOP_UNTRACED, /* it has made a task that cannot be traced, and that may want to trace it */
	THREAD_STOP_TRACER, /* it is about to call ptrace(), to trace another one or to be traced by its parent */
	THREAD_STOP_EXEC, /* without a tracer: it waits at execve() until heaptap has stopped it, or has read this */
};

/*
 * A flag of EVENT_MAPS: the thread that has changed the mappings stops, for its ptracer to look at them. Of NOTE_EXEC:
 * it waits as THREAD_STOP_EXEC says.
 */
enum { EVENT_STOPS = 2 };

/* Requests of ptrace(2), on all CPUs. */
enum { THREAD_STOP_TRACEME = 0, THREAD_STOP_ATTACH = 16, THREAD_STOP_SEIZE = 0x4206 };

struct thread_stop {
	u32 why;     /* enum thread_stop_why */
	u32 request; /* THREAD_STOP_TRACER: one of the above */
	s32 pid;     /* and the thread that it wants to trace, if that is not the parent's business */
	u32 reserved;
};
