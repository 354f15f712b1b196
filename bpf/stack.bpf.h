/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Call stacks: taken at the entry of the outermost call, sent once, and then named by their hash. */
#pragma once

#include "bpf/remember.bpf.h"
#include "bpf/send.bpf.h"
#include "bpf/unwind.bpf.h"

/*
 * Ids of stacks that were sent to user space, two for each value of their low bits. A stack that a third one has put
 * out is sent again. The kernel makes an array in a tenth of the time that it needs for a table of the same size.
 */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, SEEN_SETS);
	__type(key, u32);
	__type(value, struct seen_set);
} stacks_seen SEC(".maps");

static __always_inline struct seen_set *seen_set_of(u64 id)
{
	u32 at = (u32)id & (config.seen_sets - 1);

	return bpf_map_lookup_elem(&stacks_seen, &at);
}

static __always_inline bool is_seen(u64 id)
{
	const struct seen_set *set = seen_set_of(id);

	return set && (set->ids[0] == id || set->ids[1] == id);
}

static __always_inline void note_seen(u64 id)
{
	struct seen_set *set = seen_set_of(id);

	if (!set)
		return;
	set->ids[1] = set->ids[0];
	set->ids[0] = id;
}

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

static __always_inline const struct unwind_maps *maps_in(u32 slot)
{
	u32 slab = slot / SLAB_PROCESSES, place = slot % SLAB_PROCESSES;
	void *inner = bpf_map_lookup_elem(&slabs, &slab);

	return inner ? bpf_map_lookup_elem(inner, &place) : NULL;
}

static __always_inline const struct unwind_maps *published_maps(u32 pid)
{
	const u32 *slot = bpf_map_lookup_elem(&slots, &pid);

	return slot ? maps_in(*slot) : NULL;
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

enum stack_from {
	STACK_ABOVE,  /* at the return address of a call, which is still where the call instruction left it */
	STACK_AT,     /* at the instruction itself, like that of a function that a signal interrupted */
	STACK_BEHIND, /* at the instruction before it, which makes a system call */
};

static __always_inline void walk_begin(struct walk *w, const struct pt_regs *ctx, u32 pid, u32 word,
				       enum stack_from from)
{
	struct process_state *process;

	w->word = word;
	w->copy_bytes = 0;
	w->nr_fresh = 0;
	w->is_guessed = 0;
	w->is_matched = 0;
	w->is_interrupted = from == STACK_AT;
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
	if (from != STACK_ABOVE) {
		w->pc = REGS_IP(ctx) + (from == STACK_AT);
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
 * the rest again: the mappings that the walk began with, in @slot, also where the process has others by now. Returns
 * whether this was the last round.
 */
__noinline int plain_round(u32 which, u32 round, u32 slot)
{
	u32 tid = (u32)current_ids();
	struct walk_loop loop = { .depth = state.depth };

	loop.w = bpf_map_lookup_elem(&walks, &tid);
	if (!loop.w)
		return 1;
	if (which == LOOP_WALK) {
		loop.maps = maps_in(slot);
		return loop.maps ? walk_round(round, &loop) : 1;
	}
	return which == LOOP_CHECK ? check_round(round, &loop) : keep_round(round, &loop);
}

/*
 * With bpf_loop(). Global functions again, because the verifier would check a static one, and the rounds in it, for
 * each state that each of its callers can have. The results are in @w.
 */
__noinline int walk_rounds(struct walk *w, const struct unwind_maps *maps, u32 depth)
{
	struct walk_loop loop = { .w = w, .maps = maps, .depth = depth };

	return w && maps ? bpf_loop(WALK_STEPS, walk_round, &loop, 0) : 0;
}

__noinline int check_rounds(struct walk *w)
{
	struct walk_loop loop = { .w = w };

	return w ? bpf_loop(WALK_FRAMES, check_round, &loop, 0) : 0;
}

__noinline int keep_rounds(struct walk *w)
{
	struct walk_loop loop = { .w = w };

	return w ? bpf_loop(WALK_FRAMES, keep_round, &loop, 0) : 0;
}

/* Run at most @most rounds, until one returns that it was the last. */
static __always_inline void run_loop(struct walk_loop *loop, bool has_loop, enum loop which, u32 most)
{
	if (!has_loop) {
		for (u32 i = 0; i < most; i++)
			if (plain_round(which, i, which == LOOP_WALK ? loop->maps->slot : 0))
				return;
	} else if (which == LOOP_WALK) {
		walk_rounds(loop->w, loop->maps, loop->depth);
	} else if (which == LOOP_CHECK) {
		check_rounds(loop->w);
	} else {
		keep_rounds(loop->w);
	}
}

/* Send the last stack, of at most @max frames, a number that the verifier knows. False if there is no room. */
static __always_inline bool stack_send_up_to(u32 pid, struct walk *w, u64 id, u32 max)
{
	struct stack_event *out = bpf_ringbuf_reserve(&ring, offsetof(struct stack_event, ips) + 8 * max, 0);
	u64 k;

	if (!out)
		return false;
	__builtin_memset(out, 0, offsetof(struct stack_event, ips));
	out->h.kind = EVENT_STACK;
	out->h.pid = pid;
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
static __noinline bool stack_send(u32 pid, struct walk *w, u64 id)
{
	enum { FEW_FRAMES = 16, SOME_FRAMES = 40 };

	if (!w)
		return false;
	if (w->nr <= FEW_FRAMES)
		return stack_send_up_to(pid, w, id, FEW_FRAMES);
	if (w->nr <= SOME_FRAMES)
		return stack_send_up_to(pid, w, id, SOME_FRAMES);
	return stack_send_up_to(pid, w, id, STACK_MAX_FRAMES);
}

/* Count a stack that could not be taken or sent. */
static __always_inline u64 stack_lost(u32 pid)
{
	struct process_state *process = process_of(pid);

	if (process)
		count_loss(&process->lost_stacks);
	return STACK_LOST;
}

/* The id of the stack of the walk @w, which has begun. */
static __always_inline u64 stack_walk(struct walk *w, u32 pid, u32 depth, bool has_loop, bool remembers)
{
	struct walk_loop loop = { .w = w, .depth = depth };
	u64 id;

	/* Most calls have exactly the last stack. */
	if (w->last_id && w->nr && is_last_frame(w, loop.depth) && is_unchanged(&loop, has_loop))
		return w->last_id;
	id = remembers ? recall(w) : 0;
	if (id)
		return id;
	w->last_id = 0;
	if (!walk_again(w, &loop, pid, has_loop))
		return stack_lost(pid);
	id = stack_id_end(walk_innermost(w)->id, pid, w->epoch, stack_end(w));
	if (!is_seen(id)) {
		if (!stack_send(pid, w, id))
			return stack_lost(pid);
		note_seen(id);
	}
	w->last_id = id;
	if (remembers)
		remember(w, id);
	return id;
}

/* A global function, which the verifier checks once, by itself: see bpf/remember.bpf.h. */
__noinline u64 stack_by_loop(struct walk *w, u32 pid, u32 depth, bool remembers)
{
	return w ? stack_walk(w, pid, depth, true, remembers) : STACK_NONE;
}

/* The id of the stack at @ctx. The stack itself is sent first if user space does not have it. */
static __always_inline u64 stack_take(const struct pt_regs *ctx, const struct inflight *t, u32 word,
				      bool has_loop, enum stack_from from)
{
	u32 depth = state.depth, pid = t->pid;
	struct walk *w;

	if (!config.depth || !depth)
		return STACK_NONE;
	w = walk_current();
	if (!w)
		return stack_lost(pid);
	walk_begin(w, ctx, pid, word, from);
	return has_loop ? stack_by_loop(w, pid, depth, from == STACK_ABOVE && !HAS_LINK)
			: stack_walk(w, pid, depth, false, false);
}
