/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Call stacks: taken at the entry of the outermost call, sent once, and then named by their hash. */
#pragma once

#include "bpf/remember.bpf.h"
#include "bpf/send.bpf.h"

/* Ids of stacks that were sent to user space. A stack that drops out of this map is sent again. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, MAX_STACKS_SEEN);
	__type(key, u64);
	__type(value, u8);
} stacks_seen SEC(".maps");

/* The current thread's walk; NULL when there are too many threads. */
static __always_inline struct walk *walk_current(void)
{
	u32 tid = (u32)current_ids();
	struct walk *w = bpf_map_lookup_elem(&walks, &tid);

	if (w)
		return w;
	bpf_map_update_elem(&walks, &tid, &empty_walk, BPF_NOEXIST);
	return bpf_map_lookup_elem(&walks, &tid);
}

static __always_inline const struct unwind_maps *published_maps(u32 pid)
{
	const u32 *slot = bpf_map_lookup_elem(&slots, &pid);
	u32 slab, place;
	void *inner;

	if (!slot)
		return NULL;
	slab = *slot / SLAB_PROCESSES;
	place = *slot % SLAB_PROCESSES;
	inner = bpf_map_lookup_elem(&slabs, &slab);
	return inner ? bpf_map_lookup_elem(inner, &place) : NULL;
}

/* Before the mappings are read: those of the parent. None if the process has executed another program since. */
static __always_inline const struct unwind_maps *walk_maps(u32 pid)
{
	const struct process_state *process = process_of(pid);
	const struct unwind_maps *maps;

	if (!process)
		return NULL;
	maps = published_maps(pid);
	if (maps && maps->execs == process->execs)
		return maps;
	return published_maps(maps || process->execs ? NO_MAPS_PID : process->maps_pid);
}

/*
 * The walk begins at the return address of the call, which is still where the call instruction left it. With
 * @is_inside it begins at the instruction itself, like that of a function that a signal interrupted.
 */
static __always_inline void walk_begin(struct walk *w, const struct pt_regs *ctx, u32 pid, u32 word,
				       bool is_inside)
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
		w->removals = process ? process->removals : 0;
		w->nr = 0;
		w->last_id = 0;
	}
	w->candidate = w->nr;
	w->sp = REGS_SP(ctx);
	w->fp = to_word(w, REGS_FP(ctx));
	if (is_inside) {
		w->pc = REGS_IP(ctx) + 1;
		w->lr = REGS_LINK(ctx);
		w->has_lr = HAS_LINK;
		return;
	}
	if (HAS_LINK) {
		w->pc = CODE_ADDRESS(REGS_LINK(ctx));
		w->has_lr = 0;
		return;
	}
	if (!word_at(w, w->sp, &w->pc))
		w->pc = 0;
	w->sp += word;
}

/*
 * Before Linux 5.17 there is no bpf_loop(), and plain loops over whole rounds are too much for the verifier. The
 * verifier checks a global function only once, by itself. Global functions may get only numbers, so this one looks up
 * the rest again. Returns whether this was the last round.
 */
__noinline int plain_round(u32 which, u32 round, u32 pid)
{
	u32 tid = (u32)current_ids();
	struct walk_loop loop = { .depth = state.depth };

	loop.w = bpf_map_lookup_elem(&walks, &tid);
	loop.maps = walk_maps(pid);
	if (!loop.w || !loop.maps)
		return 1;
	if (which == LOOP_WALK)
		return walk_round(round, &loop);
	return which == LOOP_CHECK ? check_round(round, &loop) : keep_round(round, &loop);
}

/* Run at most @most rounds, until one returns that it was the last. */
static __always_inline void run_loop(struct walk_loop *loop, bool has_loop, enum loop which, u32 most)
{
	static long (*const rounds[])(u32, void *) = {
		[LOOP_WALK] = walk_round,
		[LOOP_CHECK] = check_round,
		[LOOP_KEEP] = keep_round,
	};

	if (has_loop) {
		bpf_loop(most, rounds[which], loop, 0);
		return;
	}
	for (u32 i = 0; i < most; i++)
		if (plain_round(which, i, loop->pid))
			return;
}

/* Send the last stack, of at most @max frames, a number that the verifier knows. False if there is no room. */
static __always_inline bool stack_send_up_to(const struct inflight *t, struct walk *w, u64 id, u32 max)
{
	struct stack_event *out = bpf_ringbuf_reserve(&ring, offsetof(struct stack_event, ips) + 8 * max, 0);
	u64 k;

	if (!out)
		return false;
	__builtin_memset(out, 0, offsetof(struct stack_event, ips));
	out->h.kind = EVENT_STACK;
	out->h.pid = t->pid;
	out->h.tid = (u32)current_ids();
	out->id = id;
	out->epoch = w->epoch;
	out->end = stack_end(w);
	out->nr_frames = w->nr < max ? w->nr : max;
	for (u32 i = 0; i < max; i++) {
		if (i >= w->nr)
			break;
		k = w->nr - 1 - i;
		asm volatile("%0 &= %1" : "+r"(k) : "i"(WALK_FRAMES - 1));
		out->ips[i] = w->last[k].pc;
	}
	bpf_ringbuf_submit(out, wake_flag());
	return true;
}

/* Send the last stack. The ring has room for more stacks if each takes hardly more than it needs. */
static __noinline bool stack_send(const struct inflight *t, struct walk *w, u64 id)
{
	enum { FEW_FRAMES = 16, SOME_FRAMES = 40 };

	if (!t || !w)
		return false;
	if (w->nr <= FEW_FRAMES)
		return stack_send_up_to(t, w, id, FEW_FRAMES);
	if (w->nr <= SOME_FRAMES)
		return stack_send_up_to(t, w, id, SOME_FRAMES);
	return stack_send_up_to(t, w, id, STACK_MAX_FRAMES);
}

/* Count a stack that could not be taken or sent. */
static __always_inline u64 stack_lost(const struct inflight *t)
{
	struct process_state *process = process_of(t->pid);

	if (process)
		count_loss(&process->lost_stacks);
	return STACK_LOST;
}

/*
 * The id of the stack above the call at ctx, or with @is_inside of the stack at ctx. The stack itself is sent first if
 * user space does not have it.
 */
static __always_inline u64 stack_take(const struct pt_regs *ctx, const struct inflight *t, u32 word,
				      bool has_loop, bool is_inside)
{
	bool remembers = has_loop && !is_inside && !HAS_LINK;
	struct walk_loop loop = { .depth = state.depth, .pid = t->pid };
	struct walk *w;
	u64 id;
	u8 seen = 1;

	if (!config.depth || !loop.depth)
		return STACK_NONE;
	w = walk_current();
	if (!w)
		return stack_lost(t);
	loop.w = w;
	walk_begin(w, ctx, t->pid, word, is_inside);
	/* Most calls have exactly the last stack. */
	if (w->last_id && w->nr && is_last_frame(w, loop.depth) && is_unchanged(&loop, has_loop))
		return w->last_id;
	id = remembers ? recall(w) : 0;
	if (id)
		return id;
	w->last_id = 0;
	if (!walk_again(w, &loop, t->pid, has_loop))
		return stack_lost(t);
	id = stack_id_end(innermost(w)->id, t->pid, w->epoch, stack_end(w));
	if (!bpf_map_lookup_elem(&stacks_seen, &id)) {
		if (!stack_send(t, w, id))
			return stack_lost(t);
		bpf_map_update_elem(&stacks_seen, &id, &seen, BPF_ANY);
	}
	w->last_id = id;
	if (remembers)
		remember(w, id);
	return id;
}
