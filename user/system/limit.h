/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The limit that a growing process meets first: of its control group, of its address space, or the machine's memory. */
#pragma once

#include "user/lib/types.h"

enum limit_kind { LIMIT_NONE, LIMIT_CGROUP, LIMIT_ADDRESS_SPACE, LIMIT_MACHINE, NR_LIMIT_KINDS };

struct limit {
	enum limit_kind kind;
	u64 left; /* bytes until it is met */
	u64 max;  /* bytes */
};

/* The limit that leaves @pid least. @size is of its address space, in bytes. LIMIT_NONE: nothing is known. */
struct limit limit_read(pid_t pid, u64 size);

/*
 * Take the memory of the machine for the limit if it leaves less than @l. All in bytes, as /proc/meminfo has them: what
 * is available, and free swap beside it.
 */
void limit_take_machine(struct limit *l, u64 total, u64 available, u64 free_swap);

/* "cgroup", "address space", "RAM" */
const char *limit_name(enum limit_kind kind);

/* When @left bytes are used up at this rate, in nanoseconds; 0 = never, or in more than ten years. */
u64 limit_time_ns(const struct limit *l, double bytes_per_s);
