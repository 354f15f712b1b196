/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reads the files of a control group that counts memory. */
#include "user/lib/cgroup_memory.h"

#include <string.h>

#include "user/lib/proc.h"

/* Without a limit the first version has nearly 2^63. */
#define NO_LIMIT (1ULL << 60)

/* A part of the memory of the group and of those below it, for which the first version has the prefix of @key. */
static u64 cgroup_memory_part(const char *dir, enum cgroup_version version, const char *key)
{
	u64 bytes = 0;

	key += version == CGROUP_SECOND ? strlen("total_") : 0;
	return proc_read_number(dir, "memory.stat", key, &bytes) ? bytes : 0;
}

/* Locked pages are in none of the lists of files. The agent, for which small is enough, counts one of them. */
static u64 cgroup_memory_spare(const char *dir, enum cgroup_version version)
{
	u64 spare = cgroup_memory_part(dir, version, "total_inactive_file "), kept;

	if (IS_AGENT)
		return spare;
	spare += cgroup_memory_part(dir, version, "total_active_file ") +
		 cgroup_memory_part(dir, version, "total_slab_reclaimable ");
	kept = cgroup_memory_part(dir, version, "total_dirty ") +
	       cgroup_memory_part(dir, version, "total_writeback ") +
	       cgroup_memory_part(dir, version, "total_file_dirty ") +
	       cgroup_memory_part(dir, version, "total_file_writeback ");
	return spare > kept ? spare - kept : 0;
}

bool cgroup_memory_read(struct cgroup_memory *out, const char *dir, enum cgroup_version version)
{
	bool is_first = version == CGROUP_FIRST;
	u64 spare;

	if (!proc_read_number(dir, is_first ? "memory.limit_in_bytes" : "memory.max", NULL, &out->max) ||
	    out->max >= NO_LIMIT ||
	    !proc_read_number(dir, is_first ? "memory.usage_in_bytes" : "memory.current", NULL, &out->used))
		return false;
	spare = cgroup_memory_spare(dir, version);
	out->used -= spare < out->used ? spare : out->used;
	out->used = out->used < out->max ? out->used : out->max;
	return true;
}
