/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The steps of a walk: from a frame to its caller's, by compiled call frame information. All walks take these steps:
 * those of the BPF programs and of the code inside a target (bpf/walk.h), and those of a stopped target
 * (fallback/unwind.c).
 *
 * The including file has bpf/cfi_rule.h and bpf/event.h, and defines before:
 * - WALK_STEP, WALK_CALL: how functions are declared that are part of their callers, and that are not.
 * - WALK: the type of a walk. Members: pc, sp, fp, lr, word, has_fp, has_lr, is_interrupted, is_guessed as in struct
 *   walk.
 * - WALK_MAPS: the type of what it looks up code by. Member: start_sp.
 * - WALK_NOTES: the type of what later walks know of a frame. WALK_NOTE() and, where a call leaves its return address
 *   in a register, WALK_NOTE_LINK() store a value in a member of it, or do nothing.
 * - The CPU, by macros as those of vmlinux/CPU/walk_cpu.h: HAS_LINK, CODE_ADDRESS(), SIGNAL_...(), COROUTINE_CODE(),
 *   IS_CALL(). If the CPU is chosen at run time, they look it up in the walk, which all functions call w.
 */
#pragma once

/* The state of a walk that goes on. STEP_UNKNOWN: by step_unknown(), where WALK_UNKNOWN_APART is defined. */
enum { STEP_ON = NR_STACK_ENDS, STEP_UNKNOWN };

/* The largest frame that is found by frame pointer alone. */
enum { MAX_GUESSED_FRAME = 16 << 20 };

/* Of the including file: the word of the target at @addr, false if it cannot be read. */
WALK_STEP bool word_at(WALK *w, u64 addr, u64 *word);
/*
 * The 8 bytes of code before @pc, as a little-endian number, those of a page that is not mapped 0; false if none can be
 * read.
 */
WALK_STEP bool code_before(WALK *w, u64 pc, u64 *code);
/* The first 8 bytes of the code at @pc; 0 = they cannot be read. */
WALK_STEP u64 code_at(WALK *w, u64 pc);
/* Is @pc in code that is mapped? */
WALK_STEP bool holds_code(WALK_MAPS *maps, u64 pc);
/* Is @pc in code with unwind information? */
WALK_STEP bool has_rule_at(WALK_MAPS *maps, u64 pc);
/* May the frame be left by a guess? Then that is noted. */
WALK_STEP bool may_guess(WALK *w, WALK_NOTES *f);
#ifdef WALK_KNOWS_RETURNS
/*
 * Where the frame whose caller's stack pointer is @cfa returns to, if *@pc, which it has saved, is another address that
 * has taken the place of that one. False: nowhere. Used only where a call leaves its return address in a register.
 */
WALK_STEP bool real_return(WALK *w, u64 cfa, u64 *pc);
#endif

WALK_STEP u64 to_word(const WALK *w, u64 value)
{
	return w->word == 4 ? (u32)value : value;
}

/* The frame of a signal handler: the interrupted registers are in a ucontext, and may be of another stack. */
WALK_STEP int step_signal(WALK *w, WALK_NOTES *f, u32 rule)
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
	WALK_NOTE(f, is_fixed, 1);
	w->sp = sp;
	w->fp = fp;
	w->pc = CODE_ADDRESS(pc) + 1;
	w->has_fp = 1;
	w->has_lr = HAS_LINK;
	w->is_interrupted = 1;
	w->is_guessed = 0;
	/* A jump to address 0 does not end the walk here: the next step ends, because no mapping contains 0. */
	return STEP_ON;
}

/* Does a call instruction end at @pc? Then @pc is a return address, and not a word that looks like one. */
WALK_CALL bool follows_call(WALK *w, u64 pc)
{
	u64 code;

	return code_before(w, pc, &code) && IS_CALL(code);
}

/* From a frame without unwind information: follow the chain of frame pointers, if fp looks like one. */
WALK_STEP int step_guess(WALK *w, WALK_NOTES *f, WALK_MAPS *maps)
{
	u64 fp = w->fp, caller_fp, saved_pc, pc;

	if (!may_guess(w, f))
		return STACK_NO_INFO;
	if (!fp && w->is_guessed)
		return STACK_COMPLETE;
	if (!w->has_fp || fp & (w->word - 1) || fp < w->sp || fp - w->sp > MAX_GUESSED_FRAME)
		return STACK_NO_INFO;
	if (!word_at(w, fp, &caller_fp) || !word_at(w, fp + w->word, &saved_pc))
		return STACK_NO_INFO;
	pc = CODE_ADDRESS(saved_pc);
	if (!caller_fp && !pc)
		return STACK_COMPLETE;
	if (!pc || !holds_code(maps, pc - 1))
		return STACK_NO_INFO;
	/* The caller may use the register for something else. Then only the return address can confirm the frame. */
	if (caller_fp && caller_fp <= fp && !follows_call(w, pc))
		return STACK_NO_INFO;
	WALK_NOTE(f, fp_slot, 2);
	WALK_NOTE_LINK(f, ra_slot, 1);
	if (HAS_LINK)
		w->has_lr = 0;
	w->sp = fp + 2 * w->word;
	w->fp = caller_fp;
	w->pc = pc;
	w->is_interrupted = 0;
	w->is_guessed = 1;
	return STEP_ON;
}

WALK_STEP bool is_signal_code(const WALK *w, u64 code)
{
	return code && (code & SIGNAL_CODE_MASK(w->word)) == SIGNAL_CODE(w->word);
}

/* Can @pc be a return address: of a call, or of a signal handler? */
WALK_CALL bool is_return_address(WALK *w, u64 pc)
{
	return w && (follows_call(w, pc) || is_signal_code(w, code_at(w, pc)));
}

/* From a frame in code without unwind information. */
WALK_CALL int step_unknown(WALK *w, WALK_NOTES *f, WALK_MAPS *maps)
{
	u64 code;

	if (!w || !f || !maps)
		return STACK_LIMIT;
	/* Code to which handlers and coroutines return is recognized by its bytes, where nothing else marks it. */
	code = code_at(w, w->pc - w->is_interrupted);
	if (is_signal_code(w, code))
		return step_signal(w, f, cfi_rule(CFI_SIGNAL, SIGNAL_SP_OFFSET(w->word) / w->word, 0, 0));
	if (code && code == COROUTINE_CODE(w->word))
		return STACK_COMPLETE;
	/*
	 * No call returns to the first byte of a function, before which is no information: makecontext() has stored
	 * its address as the one to which a coroutine's first function returns.
	 */
	if ((!w->is_interrupted && has_rule_at(maps, w->pc)) || maps->start_sp - w->sp <= CFI_START_BYTES)
		return STACK_COMPLETE;
	return step_guess(w, f, maps);
}

/* Read the return address of the frame @f into *@pc. The fp of the caller is saved at @fp_at. */
WALK_STEP int read_return(WALK *w, WALK_NOTES *f, u64 cfa, u64 fp_at, u32 rule, u64 *pc)
{
	u32 save = cfi_save(rule);
	u64 distance = (u64)cfi_save_words(rule) * w->word, at = cfa - distance, saved;

	if (!HAS_LINK) {
		if (!word_at(w, cfa - w->word, pc))
			return STACK_UNREADABLE;
		return cfa <= w->sp ? STACK_NOT_GROWING : STEP_ON;
	}
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
		WALK_NOTE(f, is_fixed, 1);
		*pc = CODE_ADDRESS(w->lr);
		return STEP_ON;
	}
	if (!word_at(w, at, &saved))
		return STACK_UNREADABLE;
	WALK_NOTE_LINK(f, ra_slot, slot_distance(w, f, cfa, at));
	*pc = CODE_ADDRESS(saved);
#ifdef WALK_KNOWS_RETURNS
	if (*pc && !real_return(w, cfa, pc))
		return STACK_UNREADABLE;
#endif
	return STEP_ON;
}

/* From the frame @f, whose registers are in @w, to its caller's frame, by @rule. */
WALK_STEP int step_frame(WALK *w, WALK_NOTES *f, u32 rule)
{
	u32 kind = cfi_kind(rule), save = cfi_save(rule);
	bool is_fp = kind == CFI_FP || kind == CFI_DEREF_FP || kind == CFI_DEREF_FP_WORD;
	u64 base = is_fp ? w->fp : w->sp;
	u64 cfa = base + (s64)cfi_cfa_words(rule) * w->word;
	u64 caller_fp = w->fp, at = 0, pc;
	bool is_fp_saved;
	int end;

	WALK_NOTE(f, uses_fp, is_fp);
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
			WALK_NOTE(f, cfa_extra, 1);
		}
		WALK_NOTE(f, cfa_slot, slot_distance(w, f, cfa, at));
	}
	cfa = to_word(w, cfa);
	is_fp_saved =
		save == CFI_FP_AT_CFA || save == CFI_FP_AT_BASE || (HAS_LINK && save >= CFI_PAIR_AT_CFA);
	if (is_fp_saved) {
		bool is_at_base = save == CFI_FP_AT_BASE || (HAS_LINK && save == CFI_PAIR_AT_BASE);

		at = is_at_base ? base + (u64)cfi_save_words(rule) * w->word
				: cfa - (u64)cfi_save_words(rule) * w->word;
		if (!word_at(w, at, &caller_fp))
			return STACK_UNREADABLE;
		WALK_NOTE(f, fp_slot, slot_distance(w, f, cfa, at));
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
	w->is_interrupted = 0;
	if (save == CFI_FP_LOST || (HAS_LINK && save == CFI_RA_AT_CFA_FP_LOST))
		w->has_fp = 0;
	else if (is_fp_saved)
		w->has_fp = 1;
	w->is_guessed = 0;
	/* No frame of the last stack lies beyond the outermost one, so a later walk cannot check its return address. */
	WALK_NOTE(f, is_fixed, f->is_fixed | !pc);
	return pc ? STEP_ON : STACK_COMPLETE;
}

/* From the frame that the walk has reached to its caller's, by @rule. Returns STEP_ON or an enum stack_end. */
WALK_STEP int step_by_rule(WALK *w, WALK_NOTES *f, WALK_MAPS *maps, u32 rule)
{
	switch (cfi_kind(rule)) {
	case CFI_NONE:
#ifdef WALK_UNKNOWN_APART
		(void)maps;
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
