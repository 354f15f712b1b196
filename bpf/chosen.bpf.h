/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Programs that were chosen by their names are traced from their exec on, before they make a call. */
#pragma once

#include "bpf/send.bpf.h"

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct chosen_names);
} chosen SEC(".maps");

/* Does @comm fit one of the chosen names? */
static __always_inline bool chosen_fits(const char comm[16])
{
	u32 zero = 0;
	const struct chosen_names *names = bpf_map_lookup_elem(&chosen, &zero);
	u64 now;

	if (!names)
		return false;
	now = names->begins;
	_Pragma("unroll") for (int i = 0; i < 15; i++)
	{
		if (!comm[i])
			break;
		now = (now & names->steps[(u8)comm[i]]) << 1 | (now & names->stays);
	}
	return now & names->ends;
}

/* The process @pid, which is not traced, has executed a program: trace it if that was chosen. */
static __always_inline void chosen_take(u32 pid, const char comm[16])
{
	struct process_state own = { .is_followed = 1, .maps_pid = NO_MAPS_PID };

	if (!config.has_chosen || !state.is_on || !chosen_fits(comm))
		return;
	__builtin_memcpy(own.comm, comm, sizeof(own.comm));
	if (state.nr_followed < config.max_followed &&
	    !bpf_map_update_elem(&processes, &pid, &own, BPF_ANY)) {
		if (send_process(EVENT_FORK, EVENT_NO_COPY, 0, pid, 0)) {
			__sync_fetch_and_add(&state.nr_followed, 1);
			return;
		}
		bpf_map_delete_elem(&processes, &pid);
	}
	__sync_fetch_and_add(&state.nr_unchosen, 1);
}
