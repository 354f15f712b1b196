/* SPDX-License-Identifier: GPL-2.0-or-later */
/* One step up a call stack as a 32-bit rule. user/unwind/cfi.c packs it; bpf/walk_step.h follows it. */
#pragma once

#ifndef __bpf__ /* the BPF programs define these types in bpf/compat.bpf.h */
#include "user/lib/types.h"
#endif

/* How to find the CFA: the caller's stack pointer. N = cfi_cfa_words() words of the target. */
enum cfi_kind {
	CFI_NONE,	 /* no information: between functions, or code without any */
	CFI_OUTERMOST,	 /* no caller: the start of the process or thread */
	CFI_UNSUPPORTED, /* the rule is of a kind that this table does not have */
	CFI_SIGNAL,	 /* caller's registers are in a ucontext: SP at [SP + N], the others next to SP */
	CFI_PLT,	 /* SP + word, one word more when (pc & 15) >= cfi_save_words() */
	CFI_SP,		 /* SP + N */
	CFI_SP_RA_AT_SP, /* SP + N, with one of CFI_RA_...; M counts from SP on, because the CFA may be too far */
	CFI_FP,		 /* FP + N */
	CFI_DEREF_SP,	   /* [SP + N] */
	CFI_DEREF_FP,	   /* [FP + N]: gcc's realigned main() */
	CFI_DEREF_SP_WORD, /* [SP + N] + word: hand-written assembly */
	CFI_DEREF_FP_WORD, /* [FP + N] + word */
	NR_CFI_KINDS
};

/*
 * Where the caller's FP is saved and, on machines with a link register, the return address. On other machines the
 * return address is always in the word below the CFA. M = cfi_save_words() words; base is the register, SP or FP, that
 * the kind begins with.
 */
enum cfi_save {
	CFI_SAME,	       /* FP unchanged; return address still in the link register */
	CFI_FP_AT_CFA,	       /* FP at [CFA - M]; return address as in CFI_SAME */
	CFI_FP_AT_BASE,	       /* FP at [base + M]; return address as in CFI_SAME */
	CFI_FP_LOST,	       /* FP cannot be restored; return address as in CFI_SAME */
	CFI_RA_AT_CFA,	       /* FP unchanged, return address at [CFA - M], in one kind at [SP + M] */
	CFI_RA_AT_CFA_FP_LOST, /* FP cannot be restored, return address as in CFI_RA_AT_CFA */
	CFI_PAIR_AT_CFA,       /* FP at [CFA - M], return address in the word above it */
	CFI_PAIR_AT_BASE,      /* FP at [base + M], return address in the word above it */
	NR_CFI_SAVES
};

/*
 *  31            16 15         7 6    4 3    0
 * | N, signed      | M          | save | kind |
 */
enum {
	CFI_SAVE_SHIFT = 4,
	CFI_WORDS_SHIFT = 7,
	CFI_CFA_SHIFT = 16,
	CFI_KIND_MASK = 15,
	CFI_SAVE_MASK = 7,
	CFI_WORDS_MASK = 511,
	CFI_MAX_CFA_WORDS = 32767,
	CFI_MAX_SAVE_WORDS = CFI_WORDS_MASK,
};

/*
 * The stack of a program ends in a function of the C library that calls main(), often without unwind information.
 * A frame without information belongs to this function if it lies at most so many bytes below the first stack pointer
 * of the program (musl needs 48).
 */
enum { CFI_START_BYTES = 96 };

/* Valid from pc to the pc of the next row. Rows are sorted, and no two have the same pc. */
struct cfi_row {
	u32 pc; /* ELF virtual address - the table's text_base */
	u32 rule;
};

static inline u32 cfi_kind(u32 rule)
{
	return rule & CFI_KIND_MASK;
}

static inline u32 cfi_save(u32 rule)
{
	return rule >> CFI_SAVE_SHIFT & CFI_SAVE_MASK;
}

static inline u32 cfi_save_words(u32 rule)
{
	return rule >> CFI_WORDS_SHIFT & CFI_WORDS_MASK;
}

static inline s32 cfi_cfa_words(u32 rule)
{
	return (s32)rule >> CFI_CFA_SHIFT;
}

static inline u32 cfi_rule(u32 kind, s32 cfa_words, u32 save, u32 save_words)
{
	return (u32)cfa_words << CFI_CFA_SHIFT | save_words << CFI_WORDS_SHIFT | save << CFI_SAVE_SHIFT |
	       kind;
}
