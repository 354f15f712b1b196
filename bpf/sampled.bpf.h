/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The sampled blocks of all processes, which are live: only their releases are sent. */
#pragma once

#include "bpf/thread.bpf.h"

/* From a block to the time of its call. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, struct sampled_key);
	__type(value, u64);
} sampled SEC(".maps");

static __always_inline bool sampled_add(u32 pid, u64 addr)
{
	const struct sampled_key key = { .addr = addr, .pid = pid };
	u64 now = bpf_ktime_get_ns();

	return !bpf_map_update_elem(&sampled, &key, &now, BPF_ANY);
}

/* False: it is not there. Nearly all blocks are not, and a look takes no lock. */
static __always_inline bool sampled_take(u32 pid, u64 addr)
{
	const struct sampled_key key = { .addr = addr, .pid = pid };

	return bpf_map_lookup_elem(&sampled, &key) && !bpf_map_delete_elem(&sampled, &key);
}

struct sampled_copy {
	u32 parent, child;
};

static long sampled_copy_one(const void *map, const struct sampled_key *from, const u64 *time,
			     const struct sampled_copy *copy)
{
	const struct sampled_key key = { .addr = from->addr, .pid = copy->child };

	if (from->pid == copy->parent)
		bpf_map_update_elem(&sampled, &key, time, BPF_ANY);
	return 0;
}

/* @child has a copy of the memory of @parent, and has not run yet. Linux 5.13. */
static __always_inline void sampled_copy_all(u32 parent, u32 child)
{
	struct sampled_copy copy = { parent, child };

	bpf_for_each_map_elem(&sampled, sampled_copy_one, &copy, 0);
}
