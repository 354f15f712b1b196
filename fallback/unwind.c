/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Finds return addresses from registers and stack memory. */
#include "fallback/unwind.h"

#include <string.h>

#include "arch/unwind.h"
#include "fallback/cfi_table.h"

/* The largest frame that is found by frame pointer alone. */
static const u64 max_guessed_frame = 16 << 20;

struct unwind_walk {
	const struct unwinder *u;
	struct unwind_regs regs;
	bool has_fp, has_lr; /* the register's value is known in this frame */
	bool is_exact;	     /* pc is an instruction, not a return address */
	bool is_guessed;     /* found by frame pointer alone */
	bool has_guess;	     /* this frame, or one before it, was found by frame pointer alone */
};

/* The result of a step: the walk continues, or an enum stack_end. */
enum { STEP_ON = NR_STACK_ENDS };

static taddr_t to_word(const struct unwind_walk *w, u64 value)
{
	return w->u->arch->word_size == 4 ? (u32)value : value;
}

static bool unwind_read_word(const struct unwind_walk *w, taddr_t addr, taddr_t *value)
{
	size_t size = w->u->arch->word_size;
	u8 bytes[8];

	if (addr % size)
		return false;
	if (w->u->read(w->u->ctx, to_word(w, addr), bytes, size))
		return false;
	*value = 0;
	for (size_t i = 0; i < size; i++)
		*value = *value << 8 | bytes[w->u->is_big ? i : size - 1 - i];
	return true;
}

static taddr_t code_address(const struct unwind_walk *w, taddr_t addr)
{
	return w->u->address_mask ? addr & w->u->address_mask : addr;
}

/* The address of the rule: a call is before its return address. */
static taddr_t rule_pc(const struct unwind_walk *w)
{
	return w->is_exact ? w->regs.pc : w->regs.pc - 1;
}

/* A signal frame: the kernel saved all registers. The stack may be another one, so SP need not grow. */
static int step_signal(struct unwind_walk *w, u32 rule)
{
	const struct unwind_arch *arch = w->u->arch;
	taddr_t at = to_word(w, w->regs.sp + (u64)(s64)cfi_cfa_words(rule) * arch->word_size);
	struct unwind_regs caller = { 0 };

	if (arch->has_link && w->is_guessed)
		return STACK_NO_INFO;
	if (!unwind_read_word(w, at, &caller.sp) ||
	    !unwind_read_word(w, at + (u64)arch->signal_pc, &caller.pc) ||
	    !unwind_read_word(w, at + (u64)arch->signal_fp, &caller.fp) ||
	    (arch->has_link && !unwind_read_word(w, at + (u64)arch->signal_lr, &caller.lr)))
		return STACK_UNREADABLE;
	w->regs = caller;
	w->has_fp = true;
	w->has_lr = arch->has_link;
	w->is_exact = true;
	w->is_guessed = false;
	return STEP_ON;
}

/* Is this code at @pc? Used for code of C libraries that has no information. */
static bool unwind_is_code(const struct unwind_walk *w, taddr_t pc, const u8 *known, size_t size)
{
	u8 code[UNWIND_SIGNAL_CODE_MAX];

	return size && !w->u->read(w->u->ctx, pc, code, size) && !memcmp(code, known, size);
}

/* True if a call ends at @pc, so that @pc is hardly a random number. */
static bool follows_call(const struct unwind_walk *w, taddr_t pc)
{
	u64 code = 0, in_page = pc % 4096;
	u8 bytes[8] = { 0 };

	/* The page before may be missing. */
	if (w->u->read(w->u->ctx, pc - sizeof(bytes), bytes, sizeof(bytes)) &&
	    (in_page >= sizeof(bytes) ||
	     w->u->read(w->u->ctx, pc - in_page, bytes + sizeof(bytes) - in_page, in_page)))
		return false;
	for (size_t i = 0; i < sizeof(bytes); i++)
		code |= (u64)bytes[i] << 8 * i;
	return w->u->arch->is_call(code);
}

/* True if @pc is a return address that was read as one. */
static bool is_return_address(const struct unwind_walk *w, taddr_t pc)
{
	const struct unwind_arch *arch = w->u->arch;

	return follows_call(w, pc) || unwind_is_code(w, pc, arch->signal_code, arch->signal_code_size);
}

static bool begins_with_fp(u32 rule)
{
	u32 kind = cfi_kind(rule);

	return kind == CFI_FP || kind == CFI_DEREF_FP || kind == CFI_DEREF_FP_WORD;
}

/* The register of a rule, and its CFA. */
static int find_cfa(const struct unwind_walk *w, u32 rule, taddr_t *base, taddr_t *cfa)
{
	u32 kind = cfi_kind(rule), word = w->u->arch->word_size;
	bool is_fp = begins_with_fp(rule);

	if (is_fp && !w->has_fp)
		return STACK_UNSUPPORTED;
	/* If frame records lie below the rest of the frames, a record limits where the caller's frame begins. */
	if (w->u->arch->has_link && !is_fp && w->is_guessed)
		return STACK_NO_INFO;
	*base = is_fp ? w->regs.fp : w->regs.sp;
	*cfa = to_word(w, *base + (u64)(s64)cfi_cfa_words(rule) * word);
	if (kind == CFI_PLT && (rule_pc(w) & 15) >= cfi_save_words(rule))
		*cfa = to_word(w, *cfa + word);
	if (kind >= CFI_DEREF_SP && !unwind_read_word(w, *cfa, cfa))
		return STACK_UNREADABLE;
	if (kind == CFI_DEREF_SP_WORD || kind == CFI_DEREF_FP_WORD)
		*cfa = to_word(w, *cfa + word);
	return STEP_ON;
}

/* The slots of each way to save registers, and their contents. */
static const struct save_form {
	bool has_fp, has_ra, is_at_base, is_fp_lost;
} save_forms[NR_CFI_SAVES] = {
	[CFI_SAME] = { 0 },
	[CFI_FP_AT_CFA] = { .has_fp = true },
	[CFI_FP_AT_BASE] = { .has_fp = true, .is_at_base = true },
	[CFI_FP_LOST] = { .is_fp_lost = true },
	[CFI_RA_AT_CFA] = { .has_ra = true },
	[CFI_RA_AT_CFA_FP_LOST] = { .has_ra = true, .is_fp_lost = true },
	[CFI_PAIR_AT_CFA] = { .has_fp = true, .has_ra = true },
	[CFI_PAIR_AT_BASE] = { .has_fp = true, .has_ra = true, .is_at_base = true },
};

static int step_frame(struct unwind_walk *w, u32 rule)
{
	const struct unwind_arch *arch = w->u->arch;
	/* The rule of a PLT has the offset in the entry in the field that others use for the slot. */
	const struct save_form *form = &save_forms[cfi_kind(rule) == CFI_PLT ? CFI_SAME : cfi_save(rule)];
	u64 distance = (u64)cfi_save_words(rule) * arch->word_size;
	taddr_t base, cfa, slot;
	struct unwind_regs caller = w->regs;
	int end = find_cfa(w, rule, &base, &cfa);

	if (end != STEP_ON)
		return end;
	slot = to_word(w, form->is_at_base || cfi_kind(rule) == CFI_SP_RA_AT_SP ? base + distance
										: cfa - distance);
	if (form->has_fp && !unwind_read_word(w, slot, &caller.fp))
		return STACK_UNREADABLE;
	if (form->has_ra || !arch->has_link) {
		if (!arch->has_link)
			slot = cfa - arch->word_size;
		else if (form->has_fp)
			slot += arch->word_size;
		if (!unwind_read_word(w, slot, &caller.pc))
			return STACK_UNREADABLE;
	} else if (w->has_lr) {
		caller.pc = w->regs.lr;
	} else {
		return STACK_NOT_GROWING; /* a function that has called another one has saved it */
	}
	caller.sp = to_word(w, cfa);
	/* Only the innermost function can be without a frame of its own. */
	if (caller.sp < w->regs.sp || (caller.sp == w->regs.sp && !w->has_lr))
		return STACK_NOT_GROWING;
	/* In a realigned frame the frame pointer does not show where the caller's frame begins. */
	if (w->is_guessed && !begins_with_fp(rule) && !is_return_address(w, caller.pc))
		return STACK_NO_INFO;
	w->regs = caller;
	w->has_fp = form->has_fp || (w->has_fp && !form->is_fp_lost);
	w->has_lr = false;
	w->is_exact = false;
	w->is_guessed = false;
	return STEP_ON;
}

/*
 * Is pc the first instruction of a function? The byte before it has no information, and no call returns there.
 * makecontext() writes such an address for the first function of a coroutine.
 */
static bool is_function_start(const struct unwind_walk *w)
{
	struct unwind_place place = { .table = NULL };

	return !w->is_exact && w->u->find(w->u->ctx, w->regs.pc, &place) && place.table &&
	       cfi_kind(cfi_find(place.table, w->regs.pc - place.bias)) != CFI_NONE;
}

/* Without information: follow the chain of frame pointers, if it looks like one. */
static int step_guess(struct unwind_walk *w)
{
	u64 word = w->u->arch->word_size, fp = w->regs.fp;
	struct unwind_regs caller = { .sp = to_word(w, fp + 2 * word) };
	struct unwind_place place;

	w->has_guess = true;
	if (!w->u->arch->is_call)
		return STACK_NO_INFO;
	if (fp == 0 && w->is_guessed) /* the ABI marks the first frame so */
		return STACK_COMPLETE;
	if (!w->has_fp || fp % word || fp < w->regs.sp || fp - w->regs.sp > max_guessed_frame)
		return STACK_NO_INFO;
	if (!unwind_read_word(w, fp, &caller.fp) || !unwind_read_word(w, fp + word, &caller.pc))
		return STACK_NO_INFO;
	caller.pc = code_address(w, caller.pc);
	if (caller.fp == 0 && caller.pc == 0)
		return STACK_COMPLETE;
	if (!caller.pc || !w->u->find(w->u->ctx, caller.pc - 1, &place))
		return STACK_NO_INFO;
	/* The caller may keep any value in the register. */
	if (caller.fp && caller.fp <= fp && !follows_call(w, caller.pc))
		return STACK_NO_INFO;
	w->regs = caller;
	w->has_lr = false;
	w->is_exact = false;
	w->is_guessed = true;
	return STEP_ON;
}

/* Step from a frame in code without information. */
static int step_unknown(struct unwind_walk *w)
{
	const struct unwind_arch *arch = w->u->arch;

	if (unwind_is_code(w, w->regs.pc, arch->signal_code, arch->signal_code_size))
		return step_signal(w, cfi_rule(CFI_SIGNAL, arch->signal_sp / arch->word_size, 0, 0));
	if (unwind_is_code(w, w->regs.pc, arch->coroutine_code, arch->coroutine_code_size) ||
	    is_function_start(w) || w->u->start_sp - w->regs.sp <= CFI_START_BYTES)
		return STACK_COMPLETE;
	return step_guess(w);
}

/* The call was the last instruction. */
static int step_entry(struct unwind_walk *w)
{
	const struct unwind_arch *arch = w->u->arch;

	if (arch->has_link)
		w->regs.pc = w->regs.lr;
	else if (!unwind_read_word(w, w->regs.sp, &w->regs.pc))
		return STACK_UNREADABLE;
	else
		w->regs.sp = to_word(w, w->regs.sp + arch->word_size);
	w->has_lr = false;
	w->is_exact = false;
	return STEP_ON;
}

/* Step by the chain of frames that the ABI requires; 0 is its end. */
static int step_chain(struct unwind_walk *w)
{
	u64 word = w->u->arch->word_size;
	struct unwind_regs caller = { 0 };

	if (!unwind_read_word(w, w->regs.sp, &caller.sp))
		return STACK_UNREADABLE;
	if (!caller.sp)
		return STACK_COMPLETE;
	if (caller.sp <= w->regs.sp)
		return STACK_NOT_GROWING;
	if (!unwind_read_word(w, caller.sp + word, &caller.pc))
		return STACK_UNREADABLE;
	w->regs = caller;
	w->is_exact = false;
	return STEP_ON;
}

static int unwind_step(struct unwind_walk *w)
{
	struct unwind_place place = { .table = NULL };
	taddr_t pc = rule_pc(w);
	u32 rule = CFI_NONE;

	if (!w->u->find(w->u->ctx, pc, &place))
		return STACK_UNMAPPED;
	if (w->u->arch->has_back_chain)
		return step_chain(w);
	if (place.table)
		rule = cfi_find(place.table, pc - place.bias);
	switch (cfi_kind(rule)) {
	case CFI_NONE:
		return step_unknown(w);
	case CFI_OUTERMOST:
		return STACK_COMPLETE;
	case CFI_UNSUPPORTED:
		return STACK_UNSUPPORTED;
	case CFI_SIGNAL:
		return step_signal(w, rule);
	default:
		return step_frame(w, rule);
	}
}

size_t unwind_walk(const struct unwinder *u, const struct unwind_regs *regs, taddr_t *ips, size_t max,
		   enum stack_end *end)
{
	struct unwind_walk w = {
		.u = u, .regs = *regs, .has_fp = true, .has_lr = u->arch->has_link, .is_exact = true
	};
	size_t nr = 0;

	for (;;) {
		int result = nr == 0 && regs->is_at_entry ? step_entry(&w) : unwind_step(&w);

		w.regs.pc = code_address(&w, w.regs.pc);
		/* Threads and coroutines begin with return address 0. A jump to address 0 is not the end. */
		if (result == STEP_ON && w.regs.pc == 0 && !w.is_exact)
			result = STACK_COMPLETE;
		if (result == STEP_ON && nr == max)
			result = STACK_DEPTH;
		if (result != STEP_ON) {
			*end = result == STACK_COMPLETE && w.has_guess ? STACK_GUESSED
								       : (enum stack_end)result;
			return nr;
		}
		ips[nr++] = w.regs.pc + w.is_exact;
	}
}
