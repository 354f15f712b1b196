/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The threads of a snapshot: who stops them, and their registers. */
#pragma once

#include "arch/stop_all.h"
#include "user/scan/snapshot.h"

/* By whom a process is stopped. @is_traced: the calling thread traces it, or @holder does, which may be NULL. */
enum stop_by snapshot_stopped_by(bool is_traced, const struct snapshot_holder *holder);

/*
 * Fill the threads and the words of registers of @s; @holder, which may be NULL, reads them if it has stopped the
 * process. 0; -ESRCH if all threads have ended; -ETIME, -ENOMEM.
 */
int snapshot_read_registers(struct snapshot *s, const struct stopped_threads *stopped,
			    const struct snapshot_holder *holder, u64 deadline_ns) __must_check;
