/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Walks a call stack by compiled call frame information. Most calls differ from the last call of their thread only in
 * the innermost frames. The walk takes the outer frames from the last stack if the words that they were read from have
 * not changed.
 *
 * This text is compiled into the BPF programs (bpf/unwind.bpf.h), and into the code that runs inside a target
 * (inline/stack.c). Only the functions of the adaptor, which the including file defines, read the target.
 */
#pragma once

#include "bpf/cfi_rule.h"
#include "bpf/event.h"
#include "bpf/maps.h"
#include "bpf/walk_state.h"

#ifdef __bpf__
#define WALK_STEP   static __always_inline
#define WALK_CALL   static __noinline /* keeps a program small enough for the verifier */
#define WALK_UNROLL _Pragma("unroll")
/* The verifier must see that @i is below @max, a power of two. The compiler would leave a plain mask out. */
#define WALK_LIMIT(i, max) asm volatile("%0 &= %1" : "+r"(i) : "i"((max)-1))
/* All ones if @d is negative. The compiler would make a branch, which would multiply the verifier's work. */
#define WALK_SIGN(d) asm volatile("%0 s>>= 63" : "+r"(d))
#define WALK_FENCE() ((void)0)
#else
#define WALK_STEP static inline __attribute__((always_inline))
#define WALK_CALL static __attribute__((noinline))
#define WALK_UNROLL
#define WALK_LIMIT(i, max) ((i) &= (max)-1)
#define WALK_SIGN(d)	   ((d) >>= 63)
/* The CPU must not read what comes next before what it has read so far. */
#define WALK_FENCE()	   __atomic_thread_fence(__ATOMIC_ACQUIRE)
#endif

/* For bpf/walk_step.h. */
#define WALK			    struct walk
#define WALK_MAPS		    const struct unwind_maps
#define WALK_NOTES		    struct walk_frame
#define WALK_NOTE(f, member, value) ((f)->member = (value))
#if HAS_LINK
#define WALK_NOTE_LINK WALK_NOTE
#else
#define WALK_NOTE_LINK(f, member, value) ((void)(f))
#endif

/* Distance of a slot below the caller's sp, in words. If it does not fit, the frame cannot be checked later. */
WALK_STEP u16 slot_distance(const struct walk *w, struct walk_frame *f, u64 cfa, u64 slot)
{
	u64 words = (cfa - slot) >> (w->word == 4 ? 2 : 3);

	if (words - 1 < 65535)
		return words;
	f->is_fixed = 1;
	return 0;
}

#include "bpf/walk_step.h"

/* The adaptor, beside word_at(), code_before(), code_at(), real_return(). The rule for @pc, which lies in @m. */
WALK_STEP u32 find_rule(const struct unwind_map *m, u64 pc);
/* Rules found before, left to this text unless WALK_KNOWS_RULES is defined. Where that of @pc is kept. */
WALK_STEP struct known_rule *known_rule_at(struct walk *w, u64 pc);
/* Is the rule of @pc there, by the mappings of @w? Then it is put into *@rule. */
WALK_STEP bool recall_rule(const struct known_rule *known, const struct walk *w, u64 pc, u32 *rule);
WALK_STEP void keep_rule(struct known_rule *known, const struct walk *w, u64 pc, u32 rule);
/*
 * Are all words by which is_unchanged() judges as they were, without a look at each frame? And if not all are: the
 * number of outermost frames of the last stack whose words are. Left out unless WALK_KNOWS_WORDS is defined.
 */
WALK_STEP bool is_known_unchanged(struct walk *w);
WALK_STEP u32 nr_known_unchanged(struct walk *w);
/*
 * The walk has come to a frame of the last stack: can its outer frames be taken, if the stack ends at @depth? And have
 * room for the fresh ones with those that are kept. Left to this text unless WALK_KEEPS_MORE is defined.
 */
WALK_STEP bool may_keep(const struct walk *w, u32 depth);
WALK_STEP void make_room(struct walk *w, u32 depth);
/* The mappings by which stacks of @pid are walked; NULL = none are known. */
WALK_STEP const struct unwind_maps *walk_maps(u32 pid);

/* All ones if @a < @b, else 0; both below 2^63. */
WALK_STEP u64 walk_below(u64 a, u64 b)
{
	s64 d = a - b;

	WALK_SIGN(d);
	return d;
}

/* The last piece of @maps that does not begin above @pc. The caller checks by holds_pc() that @pc is inside. */
WALK_STEP const struct unwind_map *find_map(const struct unwind_maps *maps, u64 pc)
{
	u64 i = 0;

	WALK_UNROLL
	for (u64 half = MAX_UNWIND_MAPS / 2; half; half /= 2) {
		u64 next = i + half;

		WALK_LIMIT(next, MAX_UNWIND_MAPS);
		i += half & ~walk_below(pc, maps->maps[next].start);
	}
	WALK_LIMIT(i, MAX_UNWIND_MAPS);
	return &maps->maps[i];
}

WALK_STEP bool holds_pc(const struct unwind_map *m, u64 pc)
{
	return pc - m->start < m->end - m->start;
}

WALK_STEP bool holds_code(const struct unwind_maps *maps, u64 pc)
{
	return holds_pc(find_map(maps, pc), pc);
}

WALK_STEP bool has_rule_at(const struct unwind_maps *maps, u64 pc)
{
	const struct unwind_map *m = find_map(maps, pc);

	return holds_pc(m, pc) && m->shard != NO_SHARD && cfi_kind(find_rule(m, pc)) != CFI_NONE;
}

WALK_STEP bool may_guess(struct walk *w, struct walk_frame *f)
{
	(void)w;
	f->uses_fp = 1;
	f->is_guessed = 1;
	return true;
}

#ifndef WALK_KNOWS_RULES
WALK_STEP struct known_rule *known_rule_at(struct walk *w, u64 pc)
{
	u64 slot = pc ^ pc >> 8;

	WALK_LIMIT(slot, KNOWN_RULES);
	return &w->known[slot];
}

WALK_STEP bool recall_rule(const struct known_rule *known, const struct walk *w, u64 pc, u32 *rule)
{
	if (known->pc != pc || known->seq != w->seq)
		return false;
	*rule = known->rule;
	return true;
}

WALK_STEP void keep_rule(struct known_rule *known, const struct walk *w, u64 pc, u32 rule)
{
	known->pc = pc;
	known->rule = rule;
	known->seq = w->seq;
}
#endif

/* Find the rule at the return address @pc. STEP_ON and *@rule, or the enum stack_end that says why not. */
WALK_STEP int rule_at(struct walk *w, const struct unwind_maps *maps, u64 pc, u32 *rule)
{
	const struct unwind_map *m;
	struct known_rule *known = known_rule_at(w, pc);

	if (recall_rule(known, w, pc, rule))
		return STEP_ON;
	m = find_map(maps, pc - 1);
	if (!holds_pc(m, pc - 1))
		return STACK_UNMAPPED;
	if (m->shard == LIMIT_SHARD)
		return STACK_LIMIT;
	*rule = m->shard == NO_SHARD ? CFI_NONE : find_rule(m, pc - 1);
	keep_rule(known, w, pc, *rule);
	return STEP_ON;
}

/* Store the frame that the walk has reached, and step to its caller. Returns STEP_ON or an enum stack_end. */
WALK_STEP int walk_step(struct walk *w, const struct unwind_maps *maps)
{
	struct walk_frame *f;
	u64 n = w->nr_fresh;
	u32 rule = 0;
	int end;

	WALK_LIMIT(n, WALK_FRAMES);
	f = &w->fresh[n];
	w->nr_fresh++;
	f->sp = w->sp;
	f->pc = w->pc;
	f->fp = w->fp;
	f->fp_slot = 0;
	f->cfa_slot = 0;
	f->cfa_extra = 0;
	f->is_guessed = 0;
	f->uses_fp = 0;
	f->is_fixed = 0;
#if HAS_LINK
	f->ra_slot = 0;
#endif
	end = rule_at(w, maps, w->pc, &rule);
	if (end != STEP_ON)
		return end;
	return step_by_rule(w, f, maps, rule);
}

#ifndef WALK_KEEPS_MORE
/* A stack that was cut at the depth is cut at another place when it grows or shrinks. */
WALK_STEP bool may_keep(const struct walk *w, u32 depth)
{
	return w->end == STACK_DEPTH ? w->nr_fresh + w->candidate == depth
				     : w->nr_fresh + w->candidate <= depth;
}

WALK_STEP void make_room(struct walk *w, u32 depth)
{
	(void)w;
	(void)depth;
}
#endif

/* Is the frame that the walk has reached also in the last stack? Then the frames outside may be equal, too. */
WALK_STEP bool is_last_frame(struct walk *w, u32 depth)
{
	const struct walk_frame *f;
	u64 i = w->candidate - 1;

	WALK_LIMIT(i, WALK_FRAMES);
	f = &w->last[i];
	if (f->sp != w->sp || f->pc != w->pc || (f->needs_fp && (!w->has_fp || f->fp != w->fp)))
		return false;
	return may_keep(w, depth);
}

/* A step has come to @state. Was it the last one? */
WALK_STEP long end_round(struct walk_loop *loop, int state)
{
	struct walk *w = loop->w;

	w->state = state == STEP_ON && w->nr_fresh >= loop->depth ? STACK_DEPTH : state;
	return w->state != STEP_ON;
}

#ifdef WALK_UNKNOWN_APART
/* A round from a frame in code without unwind information. */
WALK_CALL long unknown_round(struct walk_loop *loop)
{
	struct walk_frame *f = &loop->w->fresh[(loop->w->nr_fresh - 1) % WALK_FRAMES];

	return end_round(loop, step_unknown(loop->w, f, loop->maps));
}
#endif

/* One round: skip a frame of the last stack that lies below sp, or find that the frames match, or take a step. */
static long walk_round(u32 round, void *data)
{
	struct walk_loop *loop = data;
	struct walk *w = loop->w;
	u64 i = w->candidate - 1;
	int state;

	(void)round;
	if (w->candidate) {
		WALK_LIMIT(i, WALK_FRAMES);
		if (w->last[i].sp < w->sp) {
			w->candidate--;
			return 0;
		}
		if (is_last_frame(w, loop->depth)) {
			w->is_matched = 1;
			return 1;
		}
	}
	state = walk_step(w, loop->maps);
#ifdef WALK_UNKNOWN_APART
	if (state == STEP_UNKNOWN)
		return unknown_round(loop);
#endif
	return end_round(loop, state);
}

/* The address where the return address of @f was read, which led to @caller. */
WALK_STEP u64 return_slot(const struct walk *w, const struct walk_frame *f, const struct walk_frame *caller)
{
#if HAS_LINK
	return caller->sp - (u64)f->ra_slot * w->word;
#else
	(void)f;
	return caller->sp - w->word;
#endif
}

/* Are the words unchanged by which the last walk stepped from its frame candidate - round? */
static long check_round(u32 round, void *data)
{
	struct walk_loop *loop = data;
	struct walk *w = loop->w;
	const struct walk_frame *f, *caller;
	u64 i = w->candidate - 1 - round, k;
	u64 word;

	if (!i && w->last[0].is_fixed)
		w->state = 0;
	if (!i || i >= WALK_FRAMES)
		return 1;
	k = i - 1;
	WALK_LIMIT(i, WALK_FRAMES);
	WALK_LIMIT(k, WALK_FRAMES);
	f = &w->last[i];
	caller = &w->last[k];
	w->state = 0;
	if (f->is_fixed)
		return 1;
	if (f->cfa_slot && (!word_at(w, caller->sp - (u64)f->cfa_slot * w->word, &word) ||
			    word + (u64)f->cfa_extra * w->word != caller->sp))
		return 1;
	if (f->fp_slot && caller->needs_fp &&
	    (!word_at(w, caller->sp - (u64)f->fp_slot * w->word, &word) || word != caller->fp))
		return 1;
	if (!word_at(w, return_slot(w, f, caller), &word) || CODE_ADDRESS(word) != caller->pc)
		return 1;
	w->state = STEP_ON;
	return 0;
}

/* Append fresh frame @round, counted from the outermost, to the frames that were kept of the last stack. */
static long keep_round(u32 round, void *data)
{
	struct walk_loop *loop = data;
	struct walk *w = loop->w;
	u64 from = w->nr_fresh - 1 - round, to = w->nr, outer = w->nr - 1;
	struct walk_frame *f, *caller;

	if (round >= w->nr_fresh)
		return 1;
	WALK_LIMIT(from, WALK_FRAMES);
	WALK_LIMIT(to, WALK_FRAMES);
	WALK_LIMIT(outer, WALK_FRAMES);
	f = &w->last[to];
	caller = &w->last[outer];
	*f = w->fresh[from];
	f->needs_fp = f->uses_fp || (!f->fp_slot && w->nr && caller->needs_fp);
	f->is_guessed |= w->nr && caller->is_guessed;
	f->id = stack_id_frame(w->nr ? caller->id : STACK_ID_BEGIN, f->pc);
	w->nr++;
	return 0;
}

/* The rounds of a walk. */
enum loop { LOOP_WALK, LOOP_CHECK, LOOP_KEEP };

/* Run at most @most rounds, until one returns that it was the last. Of the adaptor. */
WALK_STEP void run_loop(struct walk_loop *loop, bool has_loop, enum loop which, u32 most);

#ifndef WALK_KNOWS_WORDS
WALK_STEP bool is_known_unchanged(struct walk *w)
{
	(void)w;
	return false;
}

WALK_STEP u32 nr_known_unchanged(struct walk *w)
{
	(void)w;
	return 0;
}
#endif

/* Is the last stack unchanged, from the frame that the walk has reached to the outermost one? */
WALK_STEP bool is_unchanged(struct walk_loop *loop, bool has_loop)
{
	if (is_known_unchanged(loop->w))
		return true;
	loop->w->state = STEP_ON;
	run_loop(loop, has_loop, LOOP_CHECK, WALK_FRAMES);
	return loop->w->state == STEP_ON;
}

/* Bring w->last up to date: keep its outer frames if they have not changed, and walk the others. */
WALK_STEP void walk_stack(struct walk *w, struct walk_loop *loop, bool has_loop)
{
	loop->w->state = STEP_ON;
	run_loop(loop, has_loop, LOOP_WALK, WALK_STEPS);
	if (w->is_matched && !is_unchanged(loop, has_loop)) {
		w->is_matched = 0;
		/* A function in the middle of the stack has come to another call: those outside it may be as before. */
		w->candidate = nr_known_unchanged(w);
		loop->w->state = STEP_ON;
		run_loop(loop, has_loop, LOOP_WALK, WALK_STEPS);
	}
	if (!w->is_matched)
		w->end = loop->w->state < NR_STACK_ENDS ? loop->w->state : STACK_LIMIT;
	if (w->is_matched)
		make_room(w, loop->depth);
	w->nr = w->is_matched ? w->candidate : 0;
	run_loop(loop, has_loop, LOOP_KEEP, WALK_FRAMES);
}

/* The innermost frame of the last stack. The id of this frame is a hash of the whole stack. */
WALK_STEP const struct walk_frame *walk_innermost(const struct walk *w)
{
	u64 top = w->nr - 1;

	WALK_LIMIT(top, WALK_FRAMES);
	return &w->last[top];
}

/* How the walk of the last stack ended. A walk that reached the end by guesses may have left out functions. */
WALK_STEP u8 stack_end(const struct walk *w)
{
	if (w->is_stale)
		return STACK_STALE;
	return w->end == STACK_COMPLETE && walk_innermost(w)->is_guessed ? STACK_GUESSED : w->end;
}

/* Walk the stack by one state of the mappings. False if there is no stack. */
WALK_STEP bool walk_again(struct walk *w, struct walk_loop *loop, u32 pid, bool has_loop)
{
	u32 seq;

	loop->maps = walk_maps(pid);
	if (!loop->maps)
		return false;
	seq = *(volatile const u32 *)&loop->maps->seq;
	WALK_FENCE();
	w->is_stale = (s32)(w->removals - loop->maps->removals) > 0 && loop->maps->nr;
	/* The mappings are not those of the last walk: its frames and the known rules may be wrong now. */
	if (w->seq != seq) {
		w->seq = seq;
		w->nr = 0;
		w->candidate = 0;
	}
	walk_stack(w, loop, has_loop);
	/* If their memory is used for others now, any step may be wrong. */
	WALK_FENCE();
	if (seq & 1 || seq != *(volatile const u32 *)&loop->maps->seq)
		w->nr = 0;
	return w->nr - 1 < WALK_FRAMES;
}
