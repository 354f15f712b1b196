/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Settles a process that heaptap has forked for its own ends. System calls only, so it may follow a fork at once. */
#pragma once

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

/* Close the descriptors from @first to @last: a helper must not hold heaptap's outputs and pipes open. */
void helper_process_close(unsigned int first, unsigned int last);
