/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A process that is seen by breakpoints is stopped where no thread is in a call, so that code can take their place. */
#pragma once

#include "arch/stop_all.h"

struct source;
struct target;

/*
 * Stop all threads of @t, whose calls are seen by @bpf, outside of all calls. @all is all zero, or was given before.
 * The calling thread is their tracer until stop_all_release() returns 0, which is to be called also after an error,
 * because a thread that was asked may stop later. 0; -EAGAIN: a thread stays in a call; or another -errno: all run.
 */
int inline_switch_stop(struct stopped_threads *all, const struct source *bpf,
		       const struct target *t) __must_check;

/* The end: waits up to a second for threads that have not stopped. */
void inline_switch_fini(struct stopped_threads *all);
