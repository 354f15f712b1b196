/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Where the files of a process's control groups are. */
#pragma once

#include "user/lib/types.h"

#define CGROUP_DIRS "/sys/fs/cgroup"

enum { CGROUP_DIR_SIZE = 4096 };

/*
 * Directory of the control group of @pid in the hierarchy @name, which is mounted at CGROUP_DIRS@mount: @name is
 * "memory", "freezer" and so on in the first version, "0" in the second. False: not known.
 */
bool cgroup_dir_find(pid_t pid, const char *name, const char *mount, char dir[CGROUP_DIR_SIZE]);

/* Is the control group of @pid, or one above it, frozen? False where that is not known. */
bool cgroup_dir_is_frozen(pid_t pid);
