/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Call stacks: taken at entry of the outermost call, sent once, known by a hash from then on. */
#pragma once

#include "bpf/send.bpf.h"
#include "bpf/unwind.bpf.h"

/* Stacks that user space has got. Forgetting one only means to send it again. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, MAX_STACKS_SEEN);
	__type(key, u64);
	__type(value, u8);
} stacks_seen SEC(".maps");

/* The current thread's walk; NULL when there are too many threads. */
static __always_inline struct walk *walk_current(void)
{
	u32 tid = (u32)bpf_get_current_pid_tgid();
	struct walk *w = bpf_map_lookup_elem(&walks, &tid);

	if (w)
		return w;
	bpf_map_update_elem(&walks, &tid, &empty_walk, BPF_NOEXIST);
	return bpf_map_lookup_elem(&walks, &tid);
}

static __always_inline const struct unwind_maps *maps_of(u32 pid)
{
	void *inner = bpf_map_lookup_elem(&process_maps, &pid);
	u32 zero = 0;

	return inner ? bpf_map_lookup_elem(inner, &zero) : NULL;
}

/* The walk begins where the call returns to: its return address is still at the stack pointer. */
static __always_inline void walk_begin(struct walk *w, struct pt_regs *ctx, u32 pid, u32 word)
{
	struct process_state *process;

	w->word = word;
	w->copy_bytes = 0;
	w->nr_fresh = 0;
	w->is_guessed = 0;
	w->is_matched = 0;
	w->has_fp = 1;
	if (w->generation != state.generation) {
		w->generation = state.generation;
		process = process_of(pid);
		w->epoch = process ? process->epoch : 0;
		w->nr = 0;
	}
	w->candidate = w->nr;
	w->sp = REGS_SP(ctx);
	w->fp = to_word(w, REGS_FP(ctx));
	if (!word_at(w, w->sp, &w->pc))
		w->pc = 0;
	w->sp += word;
}

#define LOOP(has_loop, nr, round, loop)                                                                      \
	do {                                                                                                 \
		if (has_loop)                                                                                \
			bpf_loop(nr, round, loop, 0);                                                        \
		else                                                                                         \
			for (u32 i = 0; i < (nr); i++)                                                       \
				if (round(i, loop))                                                          \
					break;                                                               \
	} while (0)

/* Bring w->last up to date: its outer part kept if nothing has changed there, the rest walked. */
static __always_inline void walk_stack(struct walk *w, const struct unwind_maps *maps, bool has_loop)
{
	struct walk_loop loop = { .w = w, .maps = maps, .depth = config.depth, .end = STEP_ON };

	LOOP(has_loop, WALK_STEPS, walk_round, &loop);
	if (w->is_matched) {
		loop.end = STEP_ON;
		LOOP(has_loop, WALK_FRAMES, check_round, &loop);
		if (loop.end == STEP_ON && !w->nr_fresh) {
			w->nr = w->candidate;
			return;
		}
		w->is_matched = loop.end == STEP_ON;
		if (!w->is_matched) {
			loop.end = STEP_ON;
			w->candidate = 0;
			LOOP(has_loop, WALK_STEPS, walk_round, &loop);
		}
	}
	if (!w->is_matched)
		w->end = loop.end < NR_STACK_ENDS ? loop.end : STACK_LIMIT;
	w->nr = w->is_matched ? w->candidate : 0;
	LOOP(has_loop, WALK_FRAMES, keep_round, &loop);
}

/* Give user space the stack. False if there was no room. */
static __noinline bool stack_send(const struct thread *t, struct walk *w, u64 id)
{
	struct stack_event *out = bpf_ringbuf_reserve(&ring, sizeof(*out), 0);
	u64 k;

	if (!out)
		return false;
	if (!t || !w) {
		bpf_ringbuf_discard(out, 0);
		return false;
	}
	__builtin_memset(out, 0, sizeof(*out) - sizeof(out->ips));
	out->h.kind = EVENT_STACK;
	out->h.pid = t->pid;
	out->h.tid = (u32)bpf_get_current_pid_tgid();
	out->id = id;
	out->epoch = w->epoch;
	out->end = w->end;
	out->nr_frames = w->nr < STACK_MAX_FRAMES ? w->nr : STACK_MAX_FRAMES;
	for (u32 i = 0; i < STACK_MAX_FRAMES; i++) {
		if (i >= w->nr)
			break;
		k = w->nr - 1 - i;
		asm volatile("%0 &= %1" : "+r"(k) : "i"(WALK_FRAMES - 1));
		out->ips[i] = w->last[k].pc;
	}
	bpf_ringbuf_submit(out, wake_flag());
	return true;
}

/* A stack that could not be kept. */
static __always_inline u64 stack_lost(const struct thread *t)
{
	struct process_state *process = process_of(t->pid);

	if (process)
		__sync_fetch_and_add(&process->lost_stacks, 1);
	return STACK_LOST;
}

/* The stack above the call at ctx: its id, sent before if user space has not had it. */
static __always_inline u64 stack_take(struct pt_regs *ctx, const struct thread *t,
				      const struct probe_info *info, bool has_loop)
{
	const struct unwind_maps *maps;
	struct walk *w;
	u64 id, top;
	u32 seq;
	u8 seen = 1;

	if (!config.depth)
		return STACK_NONE;
	w = walk_current();
	maps = maps_of(t->pid);
	if (!w || !maps)
		return stack_lost(t);
	seq = *(volatile const u32 *)&maps->seq;
	walk_begin(w, ctx, t->pid, word_bytes(info));
	walk_stack(w, maps, has_loop);
	/* The mappings changed under the walk: it may have gone wrong anywhere. */
	if (seq & 1 || seq != *(volatile const u32 *)&maps->seq)
		w->nr = 0;
	top = w->nr - 1;
	if (top >= WALK_FRAMES)
		return stack_lost(t);
	asm volatile("%0 &= %1" : "+r"(top) : "i"(WALK_FRAMES - 1));
	id = (w->last[top].id ^ ((u64)w->epoch << 32 | t->pid)) * 0xc4ceb9fe1a85ec53ULL;
	id ^= id >> 29;
	if (id < STACK_FIRST_ID)
		id += STACK_FIRST_ID;
	if (bpf_map_lookup_elem(&stacks_seen, &id))
		return id;
	if (!stack_send(t, w, id))
		return stack_lost(t);
	bpf_map_update_elem(&stacks_seen, &id, &seen, BPF_ANY);
	return id;
}
