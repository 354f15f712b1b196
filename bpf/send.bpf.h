/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Records on their way to user space: one ring for all, in the order of the calls. */
#pragma once

#include "bpf/thread.bpf.h"

#include "bpf/call_met.h"

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 23);
} ring SEC(".maps");

/* Where processes number their own calls (--backend inline), by PID. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, MAX_PROCESSES);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, u32);
	__type(value, u64);
} sequences SEC(".maps");

/* The lower half of the number of the last call of @pid, which runs now; 0 = not known. */
static __always_inline u32 number_of_call(u32 pid)
{
	const u64 *at = config.has_numbers ? bpf_map_lookup_elem(&sequences, &pid) : NULL;
	u64 numbers[2] = {}; /* struct piece_sequence */

	if (at)
		bpf_probe_read_user(numbers, sizeof(numbers), (const void *)*at);
	return (u32)(numbers[1] ? numbers[1] : numbers[0]);
}

/* To wake the reader costs more than a record: wake it only when many bytes wait. */
static __always_inline u64 wake_flag(void)
{
	return bpf_ringbuf_query(&ring, BPF_RB_AVAIL_DATA) >= config.wake_bytes ? BPF_RB_FORCE_WAKEUP
										: BPF_RB_NO_WAKEUP;
}

/*
 * Send @ev, whose kind, fn, flags, addresses, size and stack are filled in. False: no room; nothing is counted.
 * The thread stops before it returns to its program if somebody waits for this call.
 */
static __always_inline bool send_heap_event(const struct inflight *t, const struct heap_event *ev)
{
	struct heap_event *out = bpf_ringbuf_reserve(&ring, sizeof(*out), 0);

	if (!out)
		return false;
	*out = *ev;
	out->h.pid = t->pid;
	out->h.tid = (u32)current_ids();
	if (config.has_numbers)
		out->h.call_number = number_of_call(t->pid);
	out->time_ns = bpf_ktime_get_ns();
	if (state.is_measured)
		__sync_fetch_and_add(&state.nr_own_calls, 1);
	if (state.wish.pid != t->pid || !call_wish_is_for(&state.wish, ev)) {
		bpf_ringbuf_submit(out, wake_flag());
		return true;
	}
	state.wish.pid = 0;
	bpf_send_signal_thread(SIGNAL_STOP);
	bpf_ringbuf_submit(out, BPF_RB_FORCE_WAKEUP);
	return true;
}

/* Send a change in the life of process @pid. False: no room; the loss is counted. */
static __always_inline bool send_process(u8 kind, u8 flags, u32 pid, u32 child, u32 execs)
{
	struct process_event *out = bpf_ringbuf_reserve(&ring, sizeof(*out), 0);
	struct process_state *process;

	if (!out) {
		process = process_of(pid);
		if (process)
			count_loss(&process->lost_other);
		return false;
	}
	__builtin_memset(out, 0, sizeof(*out));
	out->h.kind = kind;
	out->h.flags = flags;
	out->h.pid = pid;
	out->h.tid = (u32)current_ids();
	if (kind == EVENT_FORK && !(flags & EVENT_NO_COPY))
		out->h.call_number = number_of_call(pid);
	out->time_ns = bpf_ktime_get_ns();
	out->child_pid = child;
	out->exit_status = execs;
	bpf_ringbuf_submit(out, BPF_RB_FORCE_WAKEUP);
	return true;
}
