/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reads the limits of control groups, of address spaces and of the machine. */
#include "user/system/limit.h"

#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "user/lib/cgroup_memory.h"
#include "user/lib/proc.h"
#include "user/lib/proc_limit.h"
#include "user/system/cgroup.h"

enum { PATH_BYTES = 4096 };

static const struct hierarchy {
	enum cgroup_kind kind;
	enum cgroup_version version;
	const char *root;
} hierarchies[] = {
	{ CGROUP_UNIFIED, CGROUP_SECOND, "/sys/fs/cgroup" },
	{ CGROUP_MEMORY, CGROUP_FIRST, "/sys/fs/cgroup/memory" },
};

static void limit_take(struct limit *l, enum limit_kind kind, u64 max, u64 used)
{
	u64 left = max > used ? max - used : 0;

	if (l->kind == LIMIT_NONE || left < l->left)
		*l = (struct limit){ kind, left, max };
}

/* The group and all above it: each may have a limit. */
static void take_groups(struct limit *l, const struct hierarchy *h, const char *group)
{
	char dir[PATH_BYTES];
	size_t root = strlen(h->root);

	if (strstr(group, "..") || (size_t)snprintf(dir, sizeof(dir), "%s%s", h->root, group) >= sizeof(dir))
		return;
	for (;;) {
		struct cgroup_memory m;
		char *slash;

		if (cgroup_memory_read(&m, dir, h->version))
			limit_take(l, LIMIT_CGROUP, m.max, m.used);
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

	if (!proc_read_number("/proc", "meminfo", "MemTotal:", &total) ||
	    !proc_read_number("/proc", "meminfo", "MemAvailable:", &available))
		return;
	if (!proc_read_number("/proc", "meminfo", "SwapFree:", &swap))
		swap = 0;
	limit_take_machine(l, total * 1024, available * 1024, swap * 1024);
}

struct limit limit_read(pid_t pid, u64 size)
{
	struct limit l = { LIMIT_NONE };
	char group[PATH_BYTES];

	for (size_t i = 0; i < ARRAY_SIZE(hierarchies); i++)
		if (!cgroup_read(pid, hierarchies[i].kind, group, sizeof(group)))
			take_groups(&l, &hierarchies[i], group);
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
