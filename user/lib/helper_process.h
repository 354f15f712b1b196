/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Settles a process that heaptap has forked for its own ends. System calls only, so it may follow a fork at once. */
#pragma once

#include <stddef.h>
#include <sys/types.h>

#include "user/lib/types.h"

/* fork(2). Signals are blocked in the child: those for heaptap are not for it. */
pid_t helper_process_fork(void);
/* Wait for the end of child @pid; 0 and less: there is none. *@status as of waitpid(2), or NULL. False: unknown. */
bool helper_process_wait(pid_t pid, int *status);

/*
 * Have process @pid end, to which @fd is a socket: it sees the end of messages. Wait until it has, or until it has set
 * *@outlives, in shared memory, and sent a byte: its job is done, but for the time behind heaptap's end.
 */
void helper_process_end(pid_t pid, int fd, const u32 *outlives);

/*
 * Name this process, which heaptap has forked, @name: of at most 15 bytes, and without "heaptap" if the process must
 * outlive heaptap, because people end that by pkill -KILL heaptap, or pkill -f.
 */
void helper_process_name(const char *name);

/*
 * Name this process @name, as above, and keep it out of the way of signals for heaptap's terminal and process group,
 * and of the killer of processes without memory. It has a session of its own, and all signals are blocked. The limit
 * of CPU time is lifted. Steps that are not permitted are left out.
 */
void helper_process_settle(const char *name);

/*
 * Keep the descriptors @fds only, some of them perhaps -1: they become HELPER_PROCESS_FIRST and the following ones. A
 * helper must not hold heaptap's outputs and pipes open: input and output are /dev/null where there is one, and, but if
 * @has_messages, messages, too.
 */
enum { HELPER_PROCESS_FIRST = 3 };
void helper_process_keep(int *fds, int nr, bool has_messages);

/* Close the descriptors from @first to @last. */
void helper_process_close(unsigned int first, unsigned int last);
