/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Memory and limits, read from /proc and from the cgroups. */
#include "user/scan/snapshot_price.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "user/lib/cleanup.h"
#include "user/lib/proc.h"

#define CGROUPS "/sys/fs/cgroup"

enum { MAX_PATH = 4096, MAX_LEVELS = 64 };

/* The number behind @key in the file @dir/@name; NULL: the only number of the file. False: it has none. */
static bool snapshot_price_read_number(const char *dir, const char *name, const char *key, u64 *out)
{
	auto_fclose FILE *f = NULL;
	char path[MAX_PATH + 64], line[256];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f)) {
		size_t len = key ? strlen(key) : 0;
		char *end;

		if (key && strncmp(line, key, len) != 0)
			continue;
		*out = strtoull(line + len, &end, 10);
		return end != line + len;
	}
	return false;
}

/*
 * Directory of the cgroup of @pid in the hierarchy @name, which is mounted at @mount: "memory" of the first version,
 * "0" for the second version. False: not known.
 */
static bool find_cgroup(pid_t pid, const char *name, const char *mount, char dir[MAX_PATH])
{
	auto_fclose FILE *f = NULL;
	char path[40], line[MAX_PATH];

	snprintf(path, sizeof(path), "/proc/%d/cgroup", (int)pid);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f)) {
		char *first = strchr(line, ':'), *second = first ? strchr(first + 1, ':') : NULL;

		if (!second)
			continue;
		*first = *second = '\0';
		/* The second version has the number 0 and no name. */
		if (strcmp(name, first[1] ? first + 1 : line) != 0)
			continue;
		second[1 + strcspn(second + 1, "\n")] = '\0';
		snprintf(dir, MAX_PATH, CGROUPS "%s%.*s", mount, MAX_PATH - 64, second + 1);
		return true;
	}
	return false;
}

/* To the parent. False: @dir is the root, which has no limits. */
static bool go_up(char dir[MAX_PATH])
{
	char *slash = strrchr(dir, '/');

	if (!slash || slash - dir < (long)strlen(CGROUPS))
		return false;
	*slash = '\0';
	return true;
}

/* The files of a cgroup that counts memory. */
struct memory_files {
	const char *max, *now,
		*spare; /* spare: the key in memory.stat of pages of files that are not in use */
};

static const struct memory_files second_version = { "memory.max", "memory.current", "inactive_file " };
static const struct memory_files first_version = { "memory.limit_in_bytes", "memory.usage_in_bytes",
						   "total_inactive_file " };

/* The memory that cgroup @dir itself has left. Pages of files that it does not use can be given back. */
static u64 room_of(const char *dir, const struct memory_files *f)
{
	u64 max, now, spare = 0;

	if (!snapshot_price_read_number(dir, f->max, NULL, &max) ||
	    !snapshot_price_read_number(dir, f->now, NULL, &now))
		return UINT64_MAX;
	if (!snapshot_price_read_number(dir, "memory.stat", f->spare, &spare))
		spare = 0;
	now -= spare < now ? spare : now;
	return max > now ? max - now : 0;
}

/* The least that @dir and those above it have left. */
static u64 least_room(char dir[MAX_PATH], const struct memory_files *f)
{
	u64 room = UINT64_MAX;

	for (int i = 0; i < MAX_LEVELS; i++) {
		u64 here = room_of(dir, f);

		room = here < room ? here : room;
		if (!go_up(dir))
			break;
	}
	return room;
}

u64 snapshot_price_room(pid_t pid)
{
	char dir[MAX_PATH];
	u64 room = UINT64_MAX, kib, here;

	if (snapshot_price_read_number("/proc", "meminfo", "MemAvailable:", &kib))
		room = kib << 10;
	here = find_cgroup(pid, "0", "", dir) ? least_room(dir, &second_version) : UINT64_MAX;
	room = here < room ? here : room;
	here = find_cgroup(pid, "memory", "/memory", dir) ? least_room(dir, &first_version) : UINT64_MAX;
	return here < room ? here : room;
}

/* May the cgroups of @pid have one more process? */
static bool may_fork(pid_t pid)
{
	char dir[MAX_PATH];
	u64 max, now;

	if (!find_cgroup(pid, "0", "", dir))
		return true;
	for (int i = 0; i < MAX_LEVELS; i++) {
		if (snapshot_price_read_number(dir, "pids.max", NULL, &max) &&
		    snapshot_price_read_number(dir, "pids.current", NULL, &now) && now >= max)
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
