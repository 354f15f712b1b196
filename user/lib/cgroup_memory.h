/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The memory of a control group: its limit, and how much of it is in use. */
#pragma once

#include "user/lib/types.h"

enum cgroup_version { CGROUP_FIRST, CGROUP_SECOND };

struct cgroup_memory {
	u64 max, used; /* bytes; used is at most max, without what the kernel can take back at once */
};

/*
 * Read it for the group with the directory @dir in the files of @version. Pages of files can be taken back, and caches
 * of the kernel; not pages that are locked, or that are still to be written. False: no limit is known.
 */
bool cgroup_memory_read(struct cgroup_memory *out, const char *dir, enum cgroup_version version);
