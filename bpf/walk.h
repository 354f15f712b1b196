/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Walks a call stack by compiled call frame information. Most calls differ from the last call of their thread only in
 * the innermost frames. The walk takes the outer frames from the last stack if the words that they were read from have
 * not changed. fallback/unwind.c takes the same steps.
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

/* The state of a walk that goes on. STEP_UNKNOWN: by step_unknown(), where WALK_UNKNOWN_APART is defined. */
enum { STEP_ON = NR_STACK_ENDS, STEP_UNKNOWN };

/* The adaptor. The word of the target at @addr, false if it cannot be read. */
WALK_STEP bool word_at(struct walk *w, u64 addr, u64 *word);
/* The 8 bytes of code before @pc, as a number, those of a page that is not mapped 0; false if none can be read. */
WALK_STEP bool code_before(u64 pc, u64 *code);
/* The first bytes of the code at @pc; 0 = they cannot be read. */
WALK_STEP u64 code_at(u64 pc);
/* The rule for @pc, which lies in @m. */
WALK_STEP u32 find_rule(const struct unwind_map *m, u64 pc);
/* Rules found before, left to this text unless WALK_KNOWS_RULES is defined. Where that of @pc is kept. */
WALK_STEP struct known_rule *known_rule_at(struct walk *w, u64 pc);
/* Is the rule of @pc there, by the mappings of @w? Then it is put into *@rule. */
WALK_STEP bool recall_rule(const struct known_rule *known, const struct walk *w, u64 pc, u32 *rule);
WALK_STEP void keep_rule(struct known_rule *known, const struct walk *w, u64 pc, u32 rule);
/*
 * Where the frame whose caller's stack pointer is @cfa returns to, if *@pc, which it has saved, is another address that
 * has taken the place of that one. False: nowhere. Left out unless WALK_KNOWS_RETURNS is defined; used only where a
 * call leaves its return address in a register.
 */
WALK_STEP bool real_return(struct walk *w, u64 cfa, u64 *pc);
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

WALK_STEP u64 to_word(const struct walk *w, u64 value)
{
	return w->word == 4 ? (u32)value : value;
}

/* The frame of a signal handler: the interrupted registers are in a ucontext, and may be of another stack. */
WALK_STEP int step_signal(struct walk *w, struct walk_frame *f, u32 rule)
{
	u64 at = w->sp + (s64)cfi_cfa_words(rule) * w->word;
	u64 sp, pc, fp;

	if (HAS_LINK && w->is_guessed)
		return STACK_NO_INFO;
	if (HAS_LINK && !word_at(w, at + SIGNAL_LR_OFFSET(w->word), &w->lr))
		return STACK_UNREADABLE;
	if (!word_at(w, at + SIGNAL_FP_OFFSET(w->word), &fp) || !word_at(w, at, &sp) ||
	    !word_at(w, at + SIGNAL_PC_OFFSET(w->word), &pc))
		return STACK_UNREADABLE;
	f->is_fixed = 1;
	w->sp = sp;
	w->fp = fp;
	w->pc = pc + 1;
	w->has_fp = 1;
	w->has_lr = HAS_LINK;
	w->is_guessed = 0;
	/* A jump to address 0 does not end the walk here: the next step ends, because no mapping contains 0. */
	return STEP_ON;
}

/*
 * Is @pc the first byte of a function? The byte before @pc has no unwind information. No call returns to the first
 * byte: makecontext() has stored @pc as the return address of a coroutine's first function.
 */
WALK_STEP bool is_function_start(const struct unwind_maps *maps, u64 pc)
{
	const struct unwind_map *m = find_map(maps, pc);

	return holds_pc(m, pc) && m->shard != NO_SHARD && cfi_kind(find_rule(m, pc)) != CFI_NONE;
}

/* Does a call instruction end at @pc? Then @pc is a return address, and not a word that looks like one. */
WALK_CALL bool follows_call(u64 pc)
{
	u64 code;

	return code_before(pc, &code) && IS_CALL(code);
}

/* From a frame without unwind information: follow the chain of frame pointers, if fp looks like one. */
WALK_STEP int step_guess(struct walk *w, struct walk_frame *f, const struct unwind_maps *maps)
{
	u64 fp = w->fp, caller_fp, saved_pc, pc;

	f->uses_fp = 1;
	f->is_guessed = 1;
	if (!fp && w->is_guessed)
		return STACK_COMPLETE;
	if (!w->has_fp || fp & (w->word - 1) || fp < w->sp || fp - w->sp > 16 << 20)
		return STACK_NO_INFO;
	if (!word_at(w, fp, &caller_fp) || !word_at(w, fp + w->word, &saved_pc))
		return STACK_NO_INFO;
	pc = CODE_ADDRESS(saved_pc);
	if (!caller_fp && !pc)
		return STACK_COMPLETE;
	if (!pc || !holds_pc(find_map(maps, pc - 1), pc - 1))
		return STACK_NO_INFO;
	/* The caller may use the register for something else. Then only the return address can confirm the frame. */
	if (caller_fp && caller_fp <= fp && !follows_call(pc))
		return STACK_NO_INFO;
	f->fp_slot = 2;
#if HAS_LINK
	f->ra_slot = 1;
	w->has_lr = 0;
#endif
	w->sp = fp + 2 * w->word;
	w->fp = caller_fp;
	w->pc = pc;
	w->is_guessed = 1;
	return STEP_ON;
}

WALK_STEP bool is_signal_code(const struct walk *w, u64 code)
{
	return code && (code & SIGNAL_CODE_MASK(w->word)) == SIGNAL_CODE(w->word);
}

/* Can @pc be a return address: of a call, or of a signal handler? */
WALK_CALL bool is_return_address(struct walk *w, u64 pc)
{
	return w && (follows_call(pc) || is_signal_code(w, code_at(pc)));
}

/* From a frame in code without unwind information. */
WALK_CALL int step_unknown(struct walk *w, struct walk_frame *f, const struct unwind_maps *maps)
{
	u64 code;

	if (!w || !f || !maps)
		return STACK_LIMIT;
	/* Code to which handlers and coroutines return is recognized by its bytes, where nothing else marks it. */
	code = code_at(w->pc);
	if (is_signal_code(w, code))
		return step_signal(w, f, cfi_rule(CFI_SIGNAL, SIGNAL_SP_OFFSET(w->word) / w->word, 0, 0));
	if (code && code == COROUTINE_CODE(w->word))
		return STACK_COMPLETE;
	if (is_function_start(maps, w->pc) || maps->start_sp - w->sp <= CFI_START_BYTES)
		return STACK_COMPLETE;
	return step_guess(w, f, maps);
}

/* Distance of a slot below the caller's sp, in words. If it does not fit, the frame cannot be checked later. */
WALK_STEP u16 slot_distance(const struct walk *w, struct walk_frame *f, u64 cfa, u64 slot)
{
	u64 words = (cfa - slot) >> (w->word == 4 ? 2 : 3);

	if (words - 1 < 65535)
		return words;
	f->is_fixed = 1;
	return 0;
}

/* Read the return address of the frame @f into *@pc. The fp of the caller is saved at @fp_at. */
WALK_STEP int read_return(struct walk *w, struct walk_frame *f, u64 cfa, u64 fp_at, u32 rule, u64 *pc)
{
#if HAS_LINK
	u32 save = cfi_save(rule);
	u64 distance = (u64)cfi_save_words(rule) * w->word, at = cfa - distance;

	if (save >= CFI_PAIR_AT_CFA)
		at = fp_at + w->word;
	else if (cfi_kind(rule) == CFI_SP_RA_AT_SP)
		at = w->sp + distance;
	/* An interrupted function need not have saved the link register. One that called another has. */
	if (cfa < w->sp || (cfa == w->sp && !w->has_lr))
		return STACK_NOT_GROWING;
	if (save < CFI_RA_AT_CFA) {
		if (!w->has_lr)
			return STACK_NOT_GROWING;
		f->is_fixed = 1;
		*pc = CODE_ADDRESS(w->lr);
		return STEP_ON;
	}
	if (!word_at(w, at, pc))
		return STACK_UNREADABLE;
	f->ra_slot = slot_distance(w, f, cfa, at);
	*pc = CODE_ADDRESS(*pc);
#ifdef WALK_KNOWS_RETURNS
	if (*pc && !real_return(w, cfa, pc))
		return STACK_UNREADABLE;
#endif
#else
	(void)f;
	(void)fp_at;
	(void)rule;
	if (!word_at(w, cfa - w->word, pc))
		return STACK_UNREADABLE;
	if (cfa <= w->sp)
		return STACK_NOT_GROWING;
#endif
	return STEP_ON;
}

/* From the frame @f, whose registers are in @w, to its caller's frame, by @rule. */
WALK_STEP int step_frame(struct walk *w, struct walk_frame *f, u32 rule)
{
	u32 kind = cfi_kind(rule), save = cfi_save(rule);
	bool is_fp = kind == CFI_FP || kind == CFI_DEREF_FP || kind == CFI_DEREF_FP_WORD;
	u64 base = is_fp ? w->fp : w->sp;
	u64 cfa = base + (s64)cfi_cfa_words(rule) * w->word;
	u64 caller_fp = w->fp, at = 0, pc;
	int end;

	f->uses_fp = is_fp;
	if (is_fp && !w->has_fp)
		return STACK_UNSUPPORTED;
	/*
	 * With a link register, frame records lie below the rest of a frame: after a step by frame pointer the exact
	 * sp of this frame is not known.
	 */
	if (HAS_LINK && !is_fp && w->is_guessed)
		return STACK_NO_INFO;
	if (kind == CFI_PLT) {
		if (((w->pc - 1) & 15) >= cfi_save_words(rule))
			cfa += w->word;
		save = CFI_SAME;
	}
	if (kind >= CFI_DEREF_SP) {
		at = cfa;
		if (!word_at(w, at, &cfa))
			return STACK_UNREADABLE;
		if (kind == CFI_DEREF_SP_WORD || kind == CFI_DEREF_FP_WORD) {
			cfa += w->word;
			f->cfa_extra = 1;
		}
		f->cfa_slot = slot_distance(w, f, cfa, at);
	}
	cfa = to_word(w, cfa);
	if (save == CFI_FP_AT_CFA || save == CFI_FP_AT_BASE || (HAS_LINK && save >= CFI_PAIR_AT_CFA)) {
		bool is_at_base = save == CFI_FP_AT_BASE || (HAS_LINK && save == CFI_PAIR_AT_BASE);

		at = is_at_base ? base + (u64)cfi_save_words(rule) * w->word
				: cfa - (u64)cfi_save_words(rule) * w->word;
		if (!word_at(w, at, &caller_fp))
			return STACK_UNREADABLE;
		f->fp_slot = slot_distance(w, f, cfa, at);
	}
	end = read_return(w, f, cfa, at, rule, &pc);
	if (end != STEP_ON)
		return end;
	/* After a step by frame pointer sp may be wrong, if the frame was realigned. Check what was read there. */
	if (w->is_guessed && !is_fp && !is_return_address(w, pc))
		return STACK_NO_INFO;
	w->sp = cfa;
	w->pc = pc;
	w->fp = caller_fp;
	w->has_lr = 0;
	if (save == CFI_FP_LOST || (HAS_LINK && save == CFI_RA_AT_CFA_FP_LOST)) {
		w->has_fp = 0;
		f->fp_slot = 0;
	} else if (f->fp_slot) {
		w->has_fp = 1;
	}
	w->is_guessed = 0;
	/* No frame of the last stack lies beyond the outermost one, so a later walk cannot check its return address. */
	f->is_fixed |= !pc;
	return pc ? STEP_ON : STACK_COMPLETE;
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
	switch (cfi_kind(rule)) {
	case CFI_NONE:
#ifdef WALK_UNKNOWN_APART
		return STEP_UNKNOWN;
#else
		return step_unknown(w, f, maps);
#endif
	case CFI_OUTERMOST:
		return STACK_COMPLETE;
	case CFI_UNSUPPORTED:
		return STACK_UNSUPPORTED;
	case CFI_SIGNAL:
		return step_signal(w, f, rule);
	default:
		return step_frame(w, f, rule);
	}
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
