/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Memory and limits, read from /proc and from the cgroups. */
#include "user/scan/snapshot_price.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "user/lib/cgroup_dir.h"
#include "user/lib/cgroup_memory.h"
#include "user/lib/proc.h"

enum { MAX_LEVELS = 64 };

/* To the parent. False: @dir is the root, which has no limits. */
static bool go_up(char dir[CGROUP_DIR_SIZE])
{
	char *slash = strrchr(dir, '/');

	if (!slash || slash - dir < (long)strlen(CGROUP_DIRS))
		return false;
	*slash = '\0';
	return true;
}

/* The least that @dir and those above it have left. */
static u64 least_room(char dir[CGROUP_DIR_SIZE], enum cgroup_version version)
{
	u64 room = UINT64_MAX;

	for (int i = 0; i < MAX_LEVELS; i++) {
		struct cgroup_memory m;
		u64 here = cgroup_memory_read(&m, dir, version) ? m.max - m.used : UINT64_MAX;

		room = here < room ? here : room;
		if (!go_up(dir))
			break;
	}
	return room;
}

u64 snapshot_price_room(pid_t pid)
{
	char dir[CGROUP_DIR_SIZE];
	u64 room = UINT64_MAX, kib, here;

	if (proc_read_number("/proc", "meminfo", "MemAvailable:", &kib))
		room = kib << 10;
	here = cgroup_dir_find(pid, "0", "", dir) ? least_room(dir, CGROUP_SECOND) : UINT64_MAX;
	room = here < room ? here : room;
	here = cgroup_dir_find(pid, "memory", "/memory", dir) ? least_room(dir, CGROUP_FIRST) : UINT64_MAX;
	return here < room ? here : room;
}

/* May the cgroups of @pid have one more process? */
static bool may_fork(pid_t pid)
{
	char dir[CGROUP_DIR_SIZE];
	u64 max, now;

	if (!cgroup_dir_find(pid, "0", "", dir))
		return true;
	for (int i = 0; i < MAX_LEVELS; i++) {
		if (proc_read_number(dir, "pids.max", NULL, &max) &&
		    proc_read_number(dir, "pids.current", NULL, &now) && now >= max)
			return false;
		if (!go_up(dir))
			break;
	}
	return true;
}

int snapshot_price_fork(struct snapshot_price *out, pid_t pid, u64 max_bytes)
{
	struct proc_status status = { 0 };
	int err = proc_read_status(&status, pid);
	u64 page_tables;

	if (err)
		return err;
	/* One entry of 8 bytes a page, in pages of their own. */
	page_tables = (status.resident_bytes + status.swapped_bytes) / 512;
	out->bytes = status.anonymous_bytes + page_tables;
	out->room = max_bytes ? max_bytes : snapshot_price_room(pid);
	if (!may_fork(pid))
		return -EUSERS;
	return out->bytes > out->room ? -EDQUOT : 0;
}

int snapshot_price_precopy(struct snapshot_price *out, pid_t pid, u64 max_bytes)
{
	struct proc_status status = { 0 };
	int err = proc_read_status(&status, pid);

	if (err)
		return err;
	out->bytes = status.anonymous_bytes + status.swapped_bytes;
	out->room = max_bytes ? max_bytes : snapshot_price_room(getpid()) / 2;
	if (status.pinned_bytes)
		return -EOPNOTSUPP;
	return out->bytes > out->room ? -EDQUOT : 0;
}
