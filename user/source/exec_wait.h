/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A process without a tracer, of which a thread waits at execve() for a moment (THREAD_STOP_EXEC): it is stopped. */
#pragma once

#include "arch/stop_all.h"

/* Stop all threads of @pid, as the tracer, within a second. False: not all have. In any case end by exec_wait_end(). */
bool exec_wait_stop(struct stopped_threads *all, pid_t pid);
void exec_wait_end(struct stopped_threads *all);
