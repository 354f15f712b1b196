/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Finds return addresses from registers and stack memory: walks a stopped target of any CPU by bpf/walk_step.h. */
#include "fallback/unwind.h"

#include "arch/unwind.h"
#include "fallback/cfi_table.h"

struct unwind_walk {
	const struct unwinder *u;
	const struct unwind_arch *arch;
	taddr_t pc; /* return address; in a function that a signal interrupted, address of the instruction + 1 */
	taddr_t sp, fp, lr;
	u32 word;
	bool has_fp, has_lr; /* the register's value is known in this frame */
	bool is_interrupted; /* pc is no return address */
	bool is_guessed;     /* found by frame pointer alone */
	bool has_guess;	     /* this frame, or one before it, was found by frame pointer alone */
};

/* For bpf/walk_step.h: the CPU is that of the walk, and no walk leaves anything to a later one. */
#define WALK				 struct unwind_walk
#define WALK_MAPS			 const struct unwinder
#define WALK_NOTES			 struct unwind_walk
#define WALK_NOTE(f, member, value)	 ((void)(f))
#define WALK_NOTE_LINK(f, member, value) ((void)(f))
#define WALK_STEP			 static
#define WALK_CALL			 static
#define HAS_LINK			 unwind_has_link(w->arch)
#define CODE_ADDRESS(addr)		 (w->u->address_mask ? (addr)&w->u->address_mask : (addr))
#define SIGNAL_PC_OFFSET(word)		 ((u64)w->arch->signal_pc)
#define SIGNAL_FP_OFFSET(word)		 ((u64)w->arch->signal_fp)
#define SIGNAL_LR_OFFSET(word)		 ((u64)w->arch->signal_lr)
#define SIGNAL_SP_OFFSET(word)		 (w->arch->signal_sp)
#define SIGNAL_CODE(word)		 (w->arch->signal_code)
#define SIGNAL_CODE_MASK(word)		 (~0ULL >> w->arch->signal_code_unused)
#define COROUTINE_CODE(word)		 (w->arch->coroutine_code)
#define IS_CALL(code)			 (w->arch->is_call(code))
#include "bpf/walk_step.h"

/* Read @size bytes at @addr as a number. */
static bool read_number(const struct unwind_walk *w, taddr_t addr, size_t size, bool is_big, u64 *value)
{
	u8 bytes[8];

	if (w->u->read(w->u->ctx, to_word(w, addr), bytes, size))
		return false;
	*value = 0;
	for (size_t i = 0; i < size; i++)
		*value = *value << 8 | bytes[is_big ? i : size - 1 - i];
	return true;
}

static bool word_at(struct unwind_walk *w, u64 addr, u64 *word)
{
	return !(addr & (w->word - 1)) && read_number(w, addr, w->word, w->u->is_big, word);
}

static bool code_before(struct unwind_walk *w, u64 pc, u64 *code)
{
	u64 in_page = pc % 4096;

	if (read_number(w, pc - sizeof(*code), sizeof(*code), false, code))
		return true;
	/* The page before may be missing. */
	if (in_page >= sizeof(*code) || !read_number(w, pc - in_page, in_page, false, code))
		return false;
	*code <<= 8 * (sizeof(*code) - in_page) % 64;
	return true;
}

static u64 code_at(struct unwind_walk *w, u64 pc)
{
	u64 code;

	return read_number(w, pc, sizeof(code), false, &code) ? code : 0;
}

/* Find the rule at @pc, CFI_NONE where no table is. False: no code is there. */
static bool unwind_rule(const struct unwinder *u, taddr_t pc, u32 *rule)
{
	struct unwind_place place = { .table = NULL };

	if (!u->find(u->ctx, pc, &place))
		return false;
	*rule = place.table ? cfi_find(place.table, pc - place.bias) : CFI_NONE;
	return true;
}

static bool holds_code(const struct unwinder *u, u64 pc)
{
	u32 rule;

	return unwind_rule(u, pc, &rule);
}

static bool has_rule_at(const struct unwinder *u, u64 pc)
{
	u32 rule;

	return unwind_rule(u, pc, &rule) && cfi_kind(rule) != CFI_NONE;
}

static bool may_guess(struct unwind_walk *w, struct unwind_walk *f)
{
	f->has_guess = true;
	return w->arch->is_call;
}

/* The call was the last instruction. */
static int step_entry(struct unwind_walk *w)
{
	if (HAS_LINK)
		w->pc = w->lr;
	else if (!word_at(w, w->sp, &w->pc))
		return STACK_UNREADABLE;
	else
		w->sp = to_word(w, w->sp + w->word);
	w->pc = CODE_ADDRESS(w->pc);
	w->has_lr = w->is_interrupted = false;
	return w->pc ? STEP_ON : STACK_COMPLETE;
}

/* Step by the chain of frames that the ABI requires; 0 is its end. */
static int step_chain(struct unwind_walk *w)
{
	u64 sp;

	if (!word_at(w, w->sp, &sp))
		return STACK_UNREADABLE;
	if (!sp)
		return STACK_COMPLETE;
	if (sp <= w->sp)
		return STACK_NOT_GROWING;
	if (!word_at(w, sp + w->word, &w->pc))
		return STACK_UNREADABLE;
	w->sp = sp;
	return w->pc ? STEP_ON : STACK_COMPLETE;
}

static int unwind_step(struct unwind_walk *w)
{
	u32 rule;

	if (!unwind_rule(w->u, w->pc - 1, &rule))
		return STACK_UNMAPPED;
	return unwind_has_back_chain(w->arch) ? step_chain(w) : step_by_rule(w, w, w->u, rule);
}

size_t unwind_walk(const struct unwinder *u, const struct unwind_regs *regs, taddr_t *ips, size_t max,
		   enum stack_end *end)
{
	struct unwind_walk w = { .u = u,
				 .arch = u->arch,
				 .pc = regs->pc + 1,
				 .sp = regs->sp,
				 .fp = regs->fp,
				 .lr = regs->lr,
				 .word = u->arch->word_size,
				 .has_fp = true,
				 .has_lr = unwind_has_link(u->arch),
				 .is_interrupted = true };
	size_t nr = 0;

	for (;;) {
		int result = nr == 0 && regs->is_at_entry ? step_entry(&w) : unwind_step(&w);

		if (result == STEP_ON && nr == max)
			result = STACK_DEPTH;
		if (result != STEP_ON) {
			*end = result == STACK_COMPLETE && w.has_guess ? STACK_GUESSED
								       : (enum stack_end)result;
			return nr;
		}
		ips[nr++] = w.pc;
	}
}
