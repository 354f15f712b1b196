/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The cost of a copy of a process, and whether there is room for it: memory, cgroups, limits of processes. */
#pragma once

#include "user/lib/types.h"

struct snapshot_price {
	u64 bytes; /* that the copy may take at most */
	u64 room;  /* that may be taken; UINT64_MAX = no limit is known */
};

/* The bytes of memory that the machine and all cgroups of @pid have left; UINT64_MAX = not known. */
u64 snapshot_price_room(pid_t pid);

/*
 * A fork of @pid: pages are copied when the process writes them, and count in its cgroups. @max_bytes replaces what the
 * cgroups and the machine have left; 0 = it does not. 0; -EDQUOT more than the room; -EUSERS its cgroup allows no more
 * processes; -ESRCH or -errno.
 */
int snapshot_price_fork(struct snapshot_price *out, pid_t pid, u64 max_bytes) __must_check;

/*
 * A copy of @pid in the memory of heaptap. @max_bytes replaces a half of what is left for heaptap; 0 = it does not. 0;
 * -EDQUOT; -EOPNOTSUPP: devices write into memory of the process (it is pinned), which nobody would note; -ESRCH or
 * -errno.
 */
int snapshot_price_precopy(struct snapshot_price *out, pid_t pid, u64 max_bytes) __must_check;
