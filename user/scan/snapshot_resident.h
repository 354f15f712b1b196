/* SPDX-License-Identifier: GPL-2.0-or-later */
/* How much of each mapping exists in memory, where /proc/PID/pagemap may not be read. For user/scan/ only. */
#pragma once

#include "user/lib/types.h"

struct resident_map {
	taddr_t start;
	u64 bytes;	   /* in memory or swapped out, as far as the process has touched it */
	u64 private_bytes; /* of these: private copies */
};

/*
 * Read /proc/@tid/smaps, which asks for the right to trace only. *@out is owned by the caller, in the order of start.
 * Returns 0, -ENOMEM or -errno. Takes as long as the kernel needs to walk the page tables.
 */
int resident_read(struct resident_map **out, size_t *nr, pid_t tid) __must_check;

/* The row of the mapping that begins at @start, or NULL. */
const struct resident_map *resident_find(const struct resident_map *maps, size_t nr, taddr_t start);
