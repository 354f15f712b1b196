/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The control group of a process. */
#pragma once

#include "user/lib/types.h"

enum cgroup_kind {
	CGROUP_MEMORY,	/* of the first version's hierarchy that counts memory */
	CGROUP_UNIFIED, /* of the second version's one hierarchy */
	CGROUP_ANY,	/* the first of these that there is, else another one */
};

/*
 * Find the path of kind @kind in @text, which is from /proc/PID/cgroup. "/" becomes "". False: there is none, or it
 * does not fit.
 */
bool cgroup_find(const char *text, enum cgroup_kind kind, char *path, size_t size);

/* As cgroup_find(), of process @pid. 0; -ENOENT: there is none; -ESRCH if the process is gone; or -errno. */
int cgroup_read(pid_t pid, enum cgroup_kind kind, char *path, size_t size) __must_check;
