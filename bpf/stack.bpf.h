/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Call stacks: taken at entry of the outermost call, sent once, known by a hash from then on. */
#pragma once

#include "bpf/send.bpf.h"

/* Stacks that user space has got. Forgetting one only means to send it again. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, MAX_STACKS_SEEN);
	__type(key, u64);
	__type(value, u8);
} stacks_seen SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct stack_event);
} stack_scratch SEC(".maps");

/* Hash over the frames; two stacks with one hash are told apart by nobody, at odds of 2^-64 a pair. */
static __always_inline u64 stack_hash(const struct stack_event *ev)
{
	u64 h = 0x9e3779b97f4a7c15ULL ^ ((u64)ev->epoch << 32) ^ ev->h.pid;

	for (u32 i = 0; i < STACK_MAX_FRAMES; i++) {
		if (i >= ev->nr_frames)
			break;
		h = (h ^ ev->ips[i]) * 0xff51afd7ed558ccdULL;
		h ^= h >> 32;
	}
	return h < STACK_FIRST_ID ? h + STACK_FIRST_ID : h;
}

/* Send the stack unless user space has it. Returns its id, or STACK_LOST. */
static __always_inline u64 stack_send(const struct thread *t, struct stack_event *ev)
{
	struct process_state *process;
	u64 len = sizeof(*ev) - sizeof(ev->ips);
	u32 nr = ev->nr_frames;
	u8 seen = 1;

	ev->id = stack_hash(ev);
	if (bpf_map_lookup_elem(&stacks_seen, &ev->id))
		return ev->id;
	ev->h.kind = EVENT_STACK;
	ev->h.pid = t->pid;
	ev->h.tid = (u32)bpf_get_current_pid_tgid();
	if (nr > STACK_MAX_FRAMES)
		nr = STACK_MAX_FRAMES;
	len += nr * 8;
	if (bpf_ringbuf_output(&ring, ev, len, wake_flag())) {
		process = process_of(t->pid);
		if (process)
			__sync_fetch_and_add(&process->lost_stacks, 1);
		return STACK_LOST;
	}
	bpf_map_update_elem(&stacks_seen, &ev->id, &seen, BPF_ANY);
	return ev->id;
}

/* The stack above the call at ctx, whose return address is still at the stack pointer. */
static __always_inline u64 stack_take(struct pt_regs *ctx, const struct thread *t,
				      const struct probe_info *info)
{
	struct process_state *process;
	struct stack_event *ev;
	u32 zero = 0;
	long bytes;

	if (!config.depth)
		return STACK_NONE;
	ev = bpf_map_lookup_elem(&stack_scratch, &zero);
	process = process_of(t->pid);
	if (!ev || !process)
		return STACK_NONE;
	bytes = bpf_get_stack(ctx, ev->ips, sizeof(ev->ips), BPF_F_USER_STACK);
	ev->nr_frames = bytes > 8 ? (u32)bytes >> 3 : 1;
	/* It begins with the probe's own address; the caller's is at the stack pointer. */
	ev->ips[0] = read_word(info, REGS_SP(ctx));
	ev->end = STACK_NO_INFO;
	if (ev->nr_frames > config.depth) {
		ev->nr_frames = config.depth;
		ev->end = STACK_DEPTH;
	}
	ev->epoch = process->epoch;
	return stack_send(t, ev);
}
