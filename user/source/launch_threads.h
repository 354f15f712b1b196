/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Threads of a process that the calling thread traces by ptrace, for launch.c. Unlike the tracer, launch.c keeps no
 * list of threads: /proc has them, and a program with many threads costs nothing between its start and its end.
 */
#pragma once

#include "user/lib/types.h"

/* Alive, and on their way to their ends; 0 if the process is gone. */
u32 launch_threads_count(pid_t pid);

/* Is @tid a thread of @pid? Clones that are processes of their own are traced, too. */
bool launch_threads_have(pid_t pid, pid_t tid);

/* Wait for a thread that is stopped where it ends the whole process. 0 if there is none before @end_ns. */
pid_t launch_threads_exiting(pid_t pid, u64 end_ns);

/* Wait until @tid stops, @max_ns at most, and fill in *@status. False: it has not stopped, or it has ended. */
bool launch_threads_await(pid_t tid, u64 max_ns, int *status);
