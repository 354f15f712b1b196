/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Walks a call stack by compiled call frame information, in a copy of the stack. Most calls differ from the last call
 * of their thread only in the innermost frames. The walk takes the outer frames from the last stack if the words that
 * they were read from have not changed. fallback/unwind.c takes the same steps.
 */
#pragma once

#include "bpf/cfi_rule.h"
#include "bpf/thread.bpf.h"

enum {
	WALK_FRAMES = 128 /* a power of two */,
	COPY_WORDS = 256,
	WALK_STEPS = 3 * WALK_FRAMES,
	KNOWN_RULES = 256
};

/* One frame: the registers in a function that made a call, and where its caller's were read. */
struct walk_frame {
	u64 sp; /* after the call has returned */
	u64 pc; /* return address; in a function that a signal interrupted, address of the instruction + 1 */
	u64 fp;
	u64 id;	      /* hash over this frame and those outside it */
	u16 fp_slot;  /* caller's fp was read at caller's sp - fp_slot words; 0 = not read */
	u16 cfa_slot; /* the CFA was read at caller's sp - cfa_slot words; 0 = computed */
#if HAS_LINK
	u16 ra_slot; /* return address was read at caller's sp - ra_slot words; 0 = not read */
#endif
	u8 cfa_extra;	 /* words added to the CFA that was read */
	u8 is_guessed;	 /* this frame or one outside it was left by frame pointer alone */
	u8 uses_fp : 4;	 /* its rule begins with fp */
	u8 needs_fp : 4; /* this frame or one outside it depends on fp as it is here */
	u8 is_fixed;	 /* no words of the stack can show that the frame is unchanged: walk it again */
};

/* A rule found before: return addresses repeat. */
struct known_rule {
	u64 pc;
	u32 rule;
	u32 seq; /* of the mappings for which the rule holds */
};

/* The walks of one thread: the last stack, outermost frame first, and the present one, innermost first. */
struct walk {
	u64 pc, sp, fp; /* of the frame that the walk has reached */
	u64 lr;		/* of this frame; valid if has_lr */
	u64 copy_start;
	u64 generation; /* of all mappings, when the last stack was walked */
	u64 last_id;	/* of the whole last stack; 0 = user space does not have it */
	u32 copy_bytes;
	u32 nr; /* frames of last */
	u32 nr_fresh;
	u32 candidate; /* 1 + index of the frame in last that may be the present one; 0 = none */
	u32 word;      /* bytes */
	u32 epoch;     /* of the process's mappings */
	u32 removals;  /* of the process's mappings */
	u32 seq;       /* of the mappings by which the last stack was walked */
	s32 state;     /* of the present walk: STEP_ON, or the enum stack_end that it has reached */
	u8 end;	       /* enum stack_end of last */
	u8 is_guessed; /* the frame was found by frame pointer alone */
	u8 is_matched;
	u8 is_stale; /* the mappings by which the last stack was walked may have been outdated */
	u8 has_fp;   /* fp is known */
	u8 has_lr;   /* lr is known, because a signal interrupted the frame */
	struct walk_frame last[WALK_FRAMES];
	struct walk_frame fresh[WALK_FRAMES];
	u64 copy[COPY_WORDS];
	struct known_rule known[KNOWN_RULES];
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1024);
	__type(key, u32);
	__type(value, struct walk);
} walks SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, MAX_SHARDS);
	__type(key, u32);
	__array(
		values, struct {
			__uint(type, BPF_MAP_TYPE_ARRAY);
			__uint(max_entries, 1);
			__uint(map_flags, BPF_F_MMAPABLE);
			__uint(key_size, sizeof(u32));
			__uint(value_size, sizeof(struct shard));
		});
} shards SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH_OF_MAPS);
	__uint(max_entries, MAX_PROCESSES);
	__type(key, u32);
	__array(
		values, struct {
			__uint(type, BPF_MAP_TYPE_ARRAY);
			__uint(max_entries, 1);
			__uint(map_flags, BPF_F_MMAPABLE);
			__uint(key_size, sizeof(u32));
			__uint(value_size, sizeof(struct unwind_maps));
		});
} process_maps SEC(".maps");

static const struct walk empty_walk;

enum { STEP_ON = NR_STACK_ENDS };

/* Copy the stack from @addr on: COPY_WORDS words, or the rest of the page. */
static __noinline bool copy_load(struct walk *w, u64 addr)
{
	u64 left;

	if (!w)
		return false;
	w->copy_start = addr & ~7ULL;
	w->copy_bytes = sizeof(w->copy);
	if (!bpf_probe_read_user(w->copy, sizeof(w->copy), (void *)w->copy_start))
		return true;
	left = 4096 - (w->copy_start & 4095);
	w->copy_bytes = 0;
	if (left >= sizeof(w->copy) ||
	    bpf_probe_read_user(w->copy, left & (sizeof(w->copy) - 1), (void *)w->copy_start))
		return false;
	w->copy_bytes = left;
	return true;
}

/* The word of the target at @addr. */
static __always_inline bool word_at(struct walk *w, u64 addr, u64 *word)
{
	u64 at = addr - w->copy_start;
	u64 i;

	if (addr & (w->word - 1))
		return false;
	if (at >= w->copy_bytes) {
		if (!copy_load(w, addr))
			return false;
		at = addr - w->copy_start;
	}
	i = at >> 3;
	asm volatile("%0 &= %1" : "+r"(i) : "i"(COPY_WORDS - 1));
	*word = w->copy[i];
	if (w->word == 4)
		*word = (u32)(*word >> (at & 4) * 8);
	return true;
}

/* All ones if @a < @b, else 0; both below 2^63. Arithmetic: branches would multiply the verifier's work. */
static __always_inline u64 below(u64 a, u64 b)
{
	s64 d = a - b;

	asm volatile("%0 s>>= 63" : "+r"(d));
	return d;
}

/* The last piece of @maps that does not begin above @pc. The caller checks by holds_pc() that @pc is inside. */
static __always_inline const struct unwind_map *find_map(const struct unwind_maps *maps, u64 pc)
{
	u64 i = 0;

#pragma unroll
	for (u64 half = MAX_UNWIND_MAPS / 2; half; half /= 2) {
		u64 next = i + half;

		asm volatile("%0 &= %1" : "+r"(next) : "i"(MAX_UNWIND_MAPS - 1));
		i += half & ~below(pc, maps->maps[next].start);
	}
	asm volatile("%0 &= %1" : "+r"(i) : "i"(MAX_UNWIND_MAPS - 1));
	return &maps->maps[i];
}

static __always_inline bool holds_pc(const struct unwind_map *m, u64 pc)
{
	return pc - m->start < m->end - m->start;
}

/* The rule for @pc, which lies in @m. */
static __always_inline u32 find_rule(const struct unwind_map *m, u64 pc)
{
	u64 first = m->first, nr = m->nr, offset = pc - m->base;
	const struct shard *shard;
	u32 key = m->shard, zero = 0;
	void *inner;

	inner = bpf_map_lookup_elem(&shards, &key);
	if (!inner)
		return CFI_NONE;
	shard = bpf_map_lookup_elem(inner, &zero);
	if (!shard || !nr)
		return CFI_NONE;
#pragma unroll
	for (int i = 0; i < 19; i++) {
		u64 half = nr >> 1;
		u64 next = first + half;

		asm volatile("%0 &= %1" : "+r"(next) : "i"(SHARD_ROWS - 1));
		/* With one row left half is 0, and nothing changes any more. */
		first += half & ~below(offset, shard->rows[next].pc);
		nr -= half;
	}
	asm volatile("%0 &= %1" : "+r"(first) : "i"(SHARD_ROWS - 1));
	return shard->rows[first].rule;
}

static __always_inline u64 to_word(const struct walk *w, u64 value)
{
	return w->word == 4 ? (u32)value : value;
}

/* The frame of a signal handler: the interrupted registers are in a ucontext, and may be of another stack. */
static __always_inline int step_signal(struct walk *w, struct walk_frame *f, u32 rule)
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
static __always_inline bool is_function_start(const struct unwind_maps *maps, u64 pc)
{
	const struct unwind_map *m = find_map(maps, pc);

	return holds_pc(m, pc) && m->shard != NO_SHARD && cfi_kind(find_rule(m, pc)) != CFI_NONE;
}

/* Does a call instruction end at @pc? Then @pc is a return address, and not a word that looks like one. */
static __noinline bool follows_call(u64 pc)
{
	u64 code, in_page = pc & 4095;

	if (!bpf_probe_read_user(&code, sizeof(code), (void *)(pc - sizeof(code))))
		return IS_CALL(code);
	/* The page before may not be mapped. */
	if (in_page >= sizeof(code) || bpf_probe_read_user(&code, sizeof(code), (void *)(pc - in_page)))
		return false;
	code = in_page ? code << 8 * (sizeof(code) - in_page) : 0;
	return IS_CALL(code);
}

/* From a frame without unwind information: follow the chain of frame pointers, if fp looks like one. */
static __always_inline int step_guess(struct walk *w, struct walk_frame *f, const struct unwind_maps *maps)
{
	u64 fp = w->fp, caller_fp, pc;

	f->uses_fp = 1;
	f->is_guessed = 1;
	if (!fp && w->is_guessed)
		return STACK_COMPLETE;
	if (!w->has_fp || fp & (w->word - 1) || fp < w->sp || fp - w->sp > 16 << 20)
		return STACK_NO_INFO;
	if (!word_at(w, fp, &caller_fp) || !word_at(w, fp + w->word, &pc))
		return STACK_NO_INFO;
	pc = CODE_ADDRESS(pc);
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

/* The first bytes of the code at @pc; 0 = it cannot be read. */
static __always_inline u64 code_at(u64 pc)
{
	u64 code;

	return bpf_probe_read_user(&code, sizeof(code), (void *)pc) ? 0 : code;
}

static __always_inline bool is_signal_code(const struct walk *w, u64 code)
{
	return code && (code & SIGNAL_CODE_MASK(w->word)) == SIGNAL_CODE(w->word);
}

/* Can @pc be a return address: of a call, or of a signal handler? */
static __noinline bool is_return_address(struct walk *w, u64 pc)
{
	return w && (follows_call(pc) || is_signal_code(w, code_at(pc)));
}

/* From a frame in code without unwind information. */
static __noinline int step_unknown(struct walk *w, struct walk_frame *f, const struct unwind_maps *maps)
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
static __always_inline u16 slot_distance(const struct walk *w, struct walk_frame *f, u64 cfa, u64 slot)
{
	u64 words = (cfa - slot) >> (w->word == 4 ? 2 : 3);

	if (words - 1 < 65535)
		return words;
	f->is_fixed = 1;
	return 0;
}

/* Read the return address of the frame @f into *@pc. The fp of the caller is saved at @fp_at. */
static __always_inline int read_return(struct walk *w, struct walk_frame *f, u64 cfa, u64 fp_at, u32 rule,
				       u64 *pc)
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
#else
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
static __always_inline int step_frame(struct walk *w, struct walk_frame *f, u32 rule)
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

/* Find the rule at the return address @pc. STEP_ON and *@rule, or the enum stack_end that says why not. */
static __always_inline int rule_at(struct walk *w, const struct unwind_maps *maps, u64 pc, u32 *rule)
{
	const struct unwind_map *m;
	struct known_rule *known;
	u64 slot = pc ^ pc >> 8;

	asm volatile("%0 &= %1" : "+r"(slot) : "i"(KNOWN_RULES - 1));
	known = &w->known[slot];
	if (known->pc == pc && known->seq == w->seq) {
		*rule = known->rule;
		return STEP_ON;
	}
	m = find_map(maps, pc - 1);
	if (!holds_pc(m, pc - 1))
		return STACK_UNMAPPED;
	if (m->shard == LIMIT_SHARD)
		return STACK_LIMIT;
	*rule = m->shard == NO_SHARD ? CFI_NONE : find_rule(m, pc - 1);
	known->pc = pc;
	known->rule = *rule;
	known->seq = w->seq;
	return STEP_ON;
}

/* Store the frame that the walk has reached, and step to its caller. Returns STEP_ON or an enum stack_end. */
static __always_inline int step(struct walk *w, const struct unwind_maps *maps)
{
	struct walk_frame *f;
	u64 n = w->nr_fresh;
	u32 rule = 0;
	int end;

	asm volatile("%0 &= %1" : "+r"(n) : "i"(WALK_FRAMES - 1));
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
		return step_unknown(w, f, maps);
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

/* The data of a loop over frames, on the stack of the program. */
struct walk_loop {
	struct walk *w;
	const struct unwind_maps *maps;
	u32 depth;
	u32 pid; /* of the process that has these mappings */
};

/* Is the frame that the walk has reached also in the last stack? Then the frames outside may be equal, too. */
static __always_inline bool is_last_frame(struct walk *w, u32 depth)
{
	const struct walk_frame *f;
	u64 i = w->candidate - 1;

	asm volatile("%0 &= %1" : "+r"(i) : "i"(WALK_FRAMES - 1));
	f = &w->last[i];
	if (f->sp != w->sp || f->pc != w->pc || (f->needs_fp && (!w->has_fp || f->fp != w->fp)))
		return false;
	/* A stack that was cut at the depth is cut at another place when it grows or shrinks. */
	return w->end == STACK_DEPTH ? w->nr_fresh + w->candidate == depth
				     : w->nr_fresh + w->candidate <= depth;
}

/* One round: skip a frame of the last stack that lies below sp, or find that the frames match, or take a step. */
static long walk_round(u32 round, void *data)
{
	struct walk_loop *loop = data;
	struct walk *w = loop->w;
	u64 i = w->candidate - 1;

	(void)round;
	if (w->candidate) {
		asm volatile("%0 &= %1" : "+r"(i) : "i"(WALK_FRAMES - 1));
		if (w->last[i].sp < w->sp) {
			w->candidate--;
			return 0;
		}
		if (is_last_frame(w, loop->depth)) {
			w->is_matched = 1;
			return 1;
		}
	}
	w->state = step(w, loop->maps);
	if (w->state == STEP_ON && w->nr_fresh >= loop->depth)
		w->state = STACK_DEPTH;
	return w->state != STEP_ON;
}

/* The address where the return address of @f was read, which led to @caller. */
static __always_inline u64 return_slot(const struct walk *w, const struct walk_frame *f,
				       const struct walk_frame *caller)
{
#if HAS_LINK
	return caller->sp - (u64)f->ra_slot * w->word;
#else
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
	asm volatile("%0 &= %1" : "+r"(i) : "i"(WALK_FRAMES - 1));
	asm volatile("%0 &= %1" : "+r"(k) : "i"(WALK_FRAMES - 1));
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
	asm volatile("%0 &= %1" : "+r"(from) : "i"(WALK_FRAMES - 1));
	asm volatile("%0 &= %1" : "+r"(to) : "i"(WALK_FRAMES - 1));
	asm volatile("%0 &= %1" : "+r"(outer) : "i"(WALK_FRAMES - 1));
	f = &w->last[to];
	caller = &w->last[outer];
	*f = w->fresh[from];
	f->needs_fp = f->uses_fp || (!f->fp_slot && w->nr && caller->needs_fp);
	f->is_guessed |= w->nr && caller->is_guessed;
	f->id = stack_id_frame(w->nr ? caller->id : STACK_ID_BEGIN, f->pc);
	w->nr++;
	return 0;
}
