/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reads the limits of control groups, of address spaces and of the machine. */
#include "user/system/limit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "user/lib/cleanup.h"
#include "user/lib/proc.h"
#include "user/lib/proc_limit.h"
#include "user/system/cgroup.h"

enum { PATH_BYTES = 4096, TEXT_BYTES = 16384 };

/* The files of a group that counts memory, in the second and the first version of control groups. */
static const struct version {
	enum cgroup_kind kind;
	const char *root, *max, *used, *cache; /* cache: the key in memory.stat of what can be taken back */
} versions[] = {
	{ CGROUP_UNIFIED, "/sys/fs/cgroup", "memory.max", "memory.current", "inactive_file " },
	{ CGROUP_MEMORY, "/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes",
	  "total_inactive_file " },
};

/* The number in @dir/@name behind @key ("" = the first one). False: there is none. */
static bool limit_read_number(const char *dir, const char *name, const char *key, u64 *out)
{
	auto_free char *text = malloc(TEXT_BYTES);
	char path[PATH_BYTES + 64];
	const char *at;
	char *end;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	if (!text || proc_read_text(path, text, TEXT_BYTES) < 0)
		return false;
	at = strstr(text, key);
	if (!at)
		return false;
	at += strlen(key);
	*out = strtoull(at, &end, 10);
	return end != at;
}

static void limit_take(struct limit *l, enum limit_kind kind, u64 max, u64 used)
{
	u64 left = max > used ? max - used : 0;

	if (l->kind == LIMIT_NONE || left < l->left)
		*l = (struct limit){ kind, left, max };
}

/* The group and all above it: each may have a limit. */
static void take_groups(struct limit *l, const struct version *v, const char *group)
{
	const u64 no_limit = 1ULL << 60;
	char dir[PATH_BYTES];
	size_t root = strlen(v->root);

	if (strstr(group, "..") || (size_t)snprintf(dir, sizeof(dir), "%s%s", v->root, group) >= sizeof(dir))
		return;
	for (;;) {
		u64 max, used, cache = 0;
		char *slash;

		if (limit_read_number(dir, v->max, "", &max) && max < no_limit &&
		    limit_read_number(dir, v->used, "", &used)) {
			if (!limit_read_number(dir, "memory.stat", v->cache, &cache) || cache > used)
				cache = 0;
			limit_take(l, LIMIT_CGROUP, max, used - cache);
		}
		slash = strrchr(dir, '/');
		if (!slash || (size_t)(slash - dir) < root)
			return;
		*slash = '\0';
	}
}

static void take_address_space(struct limit *l, pid_t pid, u64 size)
{
	u64 now = proc_limit(pid, RLIMIT_AS);

	if (now != UINT64_MAX)
		limit_take(l, LIMIT_ADDRESS_SPACE, now, size);
}

void limit_take_machine(struct limit *l, u64 total, u64 available, u64 free_swap)
{
	limit_take(l, LIMIT_MACHINE, total + free_swap, total > available ? total - available : 0);
}

static void take_machine(struct limit *l)
{
	u64 total = 0, available = 0, swap = 0;

	if (!limit_read_number("/proc", "meminfo", "MemTotal:", &total) ||
	    !limit_read_number("/proc", "meminfo", "MemAvailable:", &available))
		return;
	if (!limit_read_number("/proc", "meminfo", "SwapFree:", &swap))
		swap = 0;
	limit_take_machine(l, total * 1024, available * 1024, swap * 1024);
}

struct limit limit_read(pid_t pid, u64 size)
{
	struct limit l = { LIMIT_NONE };
	char group[PATH_BYTES];

	for (size_t i = 0; i < ARRAY_SIZE(versions); i++)
		if (!cgroup_read(pid, versions[i].kind, group, sizeof(group)))
			take_groups(&l, &versions[i], group);
	take_address_space(&l, pid, size);
	take_machine(&l);
	return l;
}

const char *limit_name(enum limit_kind kind)
{
	static const char *const names[] = {
		[LIMIT_NONE] = "none",
		[LIMIT_CGROUP] = "cgroup",
		[LIMIT_ADDRESS_SPACE] = "address space",
		[LIMIT_MACHINE] = "RAM",
	};

	_Static_assert(ARRAY_SIZE(names) == NR_LIMIT_KINDS, "a name for each kind");
	return names[kind];
}

u64 limit_time_ns(const struct limit *l, double bytes_per_s)
{
	const double ten_years_s = 10 * 365.25 * 86400;
	double s = bytes_per_s > 0 ? (double)l->left / bytes_per_s : ten_years_s;

	return l->kind == LIMIT_NONE || s >= ten_years_s ? 0 : (u64)(s * 1e9) + 1;
}
