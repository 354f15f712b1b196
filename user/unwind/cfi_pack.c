/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Packs the state of a call frame program into the 32-bit rule of a row. */
#include "user/unwind/cfi_parse.h"

#include <string.h>

/* DWARF expression operations that occur in real frames. */
enum {
	OP_DEREF = 0x06,
	OP_AND = 0x1a,
	OP_PLUS = 0x22,
	OP_PLUS_UCONST = 0x23,
	OP_SHL = 0x24,
	OP_GE = 0x2a,
	OP_LIT0 = 0x30,
	OP_BREG0 = 0x70,
	OP_BREGX = 0x92
};

/* register + offset; dereferenced; + add. */
struct address {
	u64 reg;
	s64 offset;
	bool is_deref;
	s64 add;
};

static u32 cfi_pack_unsupported(struct cfi_stats *stats, enum cfi_reason reason)
{
	stats->unsupported[reason]++;
	return cfi_rule(CFI_UNSUPPORTED, 0, 0, 0);
}

static bool read_address(const struct cfi_cie *cie, const struct cfi_expression *e, struct address *a)
{
	struct cfi_cursor c = { .section = cie->program.section, .p = e->p, .end = e->p + e->size };
	u8 op = (u8)cursor_fixed(&c, 1);

	*a = (struct address){ .reg = (u64)op - OP_BREG0 };
	if (op == OP_BREGX)
		a->reg = cursor_uleb(&c);
	else if (op < OP_BREG0 || op > OP_BREG0 + 31)
		return false;
	a->offset = cursor_sleb(&c);
	while (c.p < c.end && !c.is_bad) {
		op = (u8)cursor_fixed(&c, 1);
		if (op == OP_PLUS_UCONST)
			a->add += (s64)(cursor_uleb(&c) & 0xffffffff);
		else if (op == OP_DEREF && !a->is_deref && a->add == 0)
			a->is_deref = true;
		else
			return false;
	}
	return !c.is_bad;
}

/* The expression of a linker for a PLT. Every entry pushes at one place: that place, or 0. */
static u32 plt_threshold(const struct unwind_arch *arch, const struct cfi_expression *e)
{
	const u8 shift = arch->word_size == 8 ? 3 : 2;
	const u8 plt[] = { OP_BREG0 + arch->sp,
			   arch->word_size,
			   OP_BREG0 + arch->ra,
			   0,
			   OP_LIT0 + 15,
			   OP_AND,
			   0,
			   OP_GE,
			   OP_LIT0 + shift,
			   OP_SHL,
			   OP_PLUS };
	const size_t at = 6;

	if (unwind_has_link(arch) || e->size != sizeof(plt) || memcmp(e->p, plt, at) ||
	    memcmp(e->p + at + 1, plt + at + 1, sizeof(plt) - at - 1))
		return 0;
	return e->p[at] > OP_LIT0 && e->p[at] < OP_LIT0 + 16 ? e->p[at] - OP_LIT0 : 0;
}

/* @bytes as words of the target, at least @min, at most @max. */
static bool to_words(const struct unwind_arch *arch, s64 bytes, s64 min, s64 max, s32 *words)
{
	if (bytes % arch->word_size || bytes / arch->word_size < min || bytes / arch->word_size > max)
		return false;
	*words = (s32)(bytes / arch->word_size);
	return true;
}

static bool saved_at_sp(const struct cfi_cie *cie, const struct unwind_arch *arch,
			const struct cfi_register *reg, s64 offset)
{
	struct address a;

	return reg->how == HOW_EXPRESSION && read_address(cie, &reg->expression, &a) && a.reg == arch->sp &&
	       !a.is_deref && a.offset + a.add == offset;
}

/* True for a signal frame whose registers are where the kernel saves them. */
static u32 pack_signal(const struct unwind_arch *arch, const struct cfi_cie *cie,
		       const struct cfi_state *state, struct cfi_stats *stats)
{
	struct address cfa = { .offset = arch->signal_sp };
	s32 words;

	if (!arch->is_signal_cfi_partial &&
	    (!state->cfa_expression.size || !read_address(cie, &state->cfa_expression, &cfa) ||
	     cfa.reg != arch->sp || !cfa.is_deref || cfa.add ||
	     !saved_at_sp(cie, arch, &state->regs[REG_RA], cfa.offset + arch->signal_pc) ||
	     !saved_at_sp(cie, arch, &state->regs[REG_FP], cfa.offset + arch->signal_fp)))
		return cfi_pack_unsupported(stats, CFI_SP_RULE);
	if (!to_words(arch, cfa.offset, 0, CFI_MAX_CFA_WORDS, &words))
		return cfi_pack_unsupported(stats, CFI_OFFSET_RANGE);
	return cfi_rule(CFI_SIGNAL, words, 0, 0);
}

/* The kind of rule for @a, or CFI_UNSUPPORTED. */
static u32 address_kind(const struct unwind_arch *arch, const struct address *a)
{
	static const u8 kinds[2][3] = { { CFI_SP, CFI_DEREF_SP, CFI_DEREF_SP_WORD },
					{ CFI_FP, CFI_DEREF_FP, CFI_DEREF_FP_WORD } };

	if (!a->is_deref)
		return kinds[a->reg == arch->fp][0];
	if (a->add != 0 && a->add != arch->word_size)
		return CFI_UNSUPPORTED;
	return kinds[a->reg == arch->fp][a->add ? 2 : 1];
}

struct packed {
	struct address cfa;
	s32 cfa_words;
	u32 kind, save;
	s32 save_words;
};

static u32 pack_cfa(const struct unwind_arch *arch, const struct cfi_cie *cie, const struct cfi_state *state,
		    struct packed *p, struct cfi_stats *stats)
{
	p->cfa = (struct address){ .reg = state->cfa_register, .offset = state->cfa_offset };
	if (state->cfa_expression.size) {
		p->save_words = (s32)plt_threshold(arch, &state->cfa_expression);
		p->kind = CFI_PLT;
		if (p->save_words)
			return p->kind;
		if (!read_address(cie, &state->cfa_expression, &p->cfa))
			return cfi_pack_unsupported(stats, CFI_CFA_EXPRESSION);
		if (!p->cfa.is_deref && !__builtin_add_overflow(p->cfa.offset, p->cfa.add, &p->cfa.offset))
			p->cfa.add = 0;
	}
	if (p->cfa.reg != arch->sp && p->cfa.reg != arch->fp)
		return cfi_pack_unsupported(stats, CFI_CFA_REGISTER);
	p->kind = address_kind(arch, &p->cfa);
	if (p->kind == CFI_UNSUPPORTED)
		return cfi_pack_unsupported(stats, CFI_CFA_EXPRESSION);
	if (!to_words(arch, p->cfa.offset, -CFI_MAX_CFA_WORDS, CFI_MAX_CFA_WORDS, &p->cfa_words))
		return cfi_pack_unsupported(stats, CFI_OFFSET_RANGE);
	return p->kind;
}

/* Where @reg is saved: below the CFA (CFI_FP_AT_CFA), above the base (CFI_FP_AT_BASE), or CFI_FP_LOST. */
static u32 pack_slot(const struct unwind_arch *arch, const struct cfi_cie *cie,
		     const struct cfi_register *reg, struct packed *p)
{
	struct address slot;

	if (reg->how == HOW_OFFSET) {
		/* A slot far below the CFA may still be near the register that the CFA is computed from. */
		if (reg->offset > -(1LL << 40) &&
		    to_words(arch, -reg->offset, 1, CFI_MAX_SAVE_WORDS, &p->save_words))
			return CFI_FP_AT_CFA;
		if (!p->cfa.is_deref && reg->offset > -(1LL << 40) && reg->offset < 0 &&
		    to_words(arch, p->cfa.offset + reg->offset, 0, CFI_MAX_SAVE_WORDS, &p->save_words))
			return CFI_FP_AT_BASE;
	}
	if (reg->how == HOW_EXPRESSION && read_address(cie, &reg->expression, &slot) && !slot.is_deref &&
	    slot.reg == p->cfa.reg && slot.offset > -(1LL << 40) && slot.offset < 1LL << 40 &&
	    to_words(arch, slot.offset + slot.add, 0, CFI_MAX_SAVE_WORDS, &p->save_words))
		return CFI_FP_AT_BASE;
	p->save_words = 0;
	return CFI_FP_LOST;
}

/* CPUs whose calls leave the return address in the word below the CFA. */
static u32 pack_stack_machine(const struct unwind_arch *arch, const struct cfi_cie *cie,
			      const struct cfi_state *state, struct packed *p, struct cfi_stats *stats)
{
	const struct cfi_register *fp = &state->regs[REG_FP], *ra = &state->regs[REG_RA];

	if (ra->how != HOW_OFFSET || ra->offset != -arch->word_size)
		return cfi_pack_unsupported(stats, CFI_RA_RULE);
	p->save = fp->how == HOW_SAME ? CFI_SAME : pack_slot(arch, cie, fp, p);
	if (p->save == CFI_FP_LOST)
		stats->unsupported[CFI_FP_RULE]++;
	return cfi_rule(p->kind, p->cfa_words, p->save, (u32)p->save_words);
}

/* CPUs whose calls leave the return address in the link register, mostly saved next to the frame pointer later. */
static u32 pack_link_machine(const struct unwind_arch *arch, const struct cfi_cie *cie,
			     const struct cfi_state *state, struct packed *p, struct cfi_stats *stats)
{
	const struct cfi_register *fp = &state->regs[REG_FP], *ra = &state->regs[REG_RA];
	u32 slot;

	if (ra->how == HOW_SAME) {
		p->save = fp->how == HOW_SAME ? CFI_SAME : pack_slot(arch, cie, fp, p);
		if (p->save == CFI_FP_LOST)
			stats->unsupported[CFI_FP_RULE]++;
		return cfi_rule(p->kind, p->cfa_words, p->save, (u32)p->save_words);
	}
	if (ra->how != HOW_OFFSET)
		return cfi_pack_unsupported(stats, CFI_RA_RULE);
	if (fp->how == HOW_OFFSET && fp->offset < 0 && ra->offset - fp->offset == arch->word_size) {
		p->save = pack_slot(arch, cie, fp, p);
		if (p->save != CFI_FP_LOST)
			return cfi_rule(p->kind, p->cfa_words,
					p->save == CFI_FP_AT_CFA ? CFI_PAIR_AT_CFA : CFI_PAIR_AT_BASE,
					(u32)p->save_words);
	}
	slot = pack_slot(arch, cie, ra, p);
	if (slot == CFI_FP_AT_BASE && p->kind == CFI_SP)
		p->kind = CFI_SP_RA_AT_SP;
	else if (slot != CFI_FP_AT_CFA)
		return cfi_pack_unsupported(stats, CFI_RA_RULE);
	p->save = fp->how == HOW_SAME ? CFI_RA_AT_CFA : CFI_RA_AT_CFA_FP_LOST;
	if (p->save == CFI_RA_AT_CFA_FP_LOST)
		stats->unsupported[CFI_FP_RULE]++;
	return cfi_rule(p->kind, p->cfa_words, p->save, (u32)p->save_words);
}

u32 cfi_pack(const struct unwind_arch *arch, const struct cfi_cie *cie, const struct cfi_state *state,
	     struct cfi_stats *stats)
{
	struct packed p = { 0 };

	if (cie->ra != arch->ra)
		return cfi_pack_unsupported(stats, CFI_RA_RULE);
	if (state->regs[REG_RA].how == HOW_UNDEFINED)
		return cfi_rule(CFI_OUTERMOST, 0, 0, 0);
	if (cie->is_signal_frame)
		return pack_signal(arch, cie, state, stats);
	if (state->regs[REG_SP].how != HOW_SAME)
		return cfi_pack_unsupported(stats, CFI_SP_RULE);
	if (pack_cfa(arch, cie, state, &p, stats) == CFI_UNSUPPORTED)
		return cfi_rule(CFI_UNSUPPORTED, 0, 0, 0);
	if (p.kind == CFI_PLT)
		return cfi_rule(CFI_PLT, 1, CFI_SAME, (u32)p.save_words);
	if (unwind_has_link(arch))
		return pack_link_machine(arch, cie, state, &p, stats);
	return pack_stack_machine(arch, cie, state, &p, stats);
}
