/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The registers of the threads of a snapshot. */
#pragma once

#include "user/scan/snapshot.h"

/*
 * Fill the threads and the words of registers of @s; @holder, which may be NULL, reads them if it has stopped the
 * process. 0; -ESRCH if all threads have ended; -ETIME, -ENOMEM.
 */
int snapshot_read_registers(struct snapshot *s, const struct stopped_threads *stopped,
			    const struct snapshot_holder *holder, u64 deadline_ns) __must_check;
