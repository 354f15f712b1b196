/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Why the BPF programs have stopped a thread of a program that heaptap started: they tell its ptracer. */
#pragma once

#ifndef __bpf__ /* the BPF programs define these types in bpf/compat.bpf.h */
#include "user/lib/types.h"
#endif

enum thread_stop_why {
	THREAD_STOP_LOOK, /* its mappings have changed, or it asks for a verdict: look at it, then let it go on */
	THREAD_STOP_UNTRACED, /* it has made a task that cannot be traced, and that may want to trace it */
};

struct thread_stop {
	u32 why; /* enum thread_stop_why */
	u32 reserved;
};
