/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Compiled call frame information of a file: user/unwind/cfi.c makes it, walks read it. */
#pragma once

#include "user/lib/types.h"

#include "bpf/cfi_rule.h"

/* Why a rule became CFI_UNSUPPORTED or lost the frame pointer. */
enum cfi_reason {
	CFI_CFA_REGISTER,   /* CFA from a register other than SP and FP */
	CFI_CFA_EXPRESSION, /* CFA from an unknown expression */
	CFI_OFFSET_RANGE,   /* an offset that does not fit into a row */
	CFI_RA_RULE,	    /* return address elsewhere */
	CFI_SP_RULE,	    /* caller's SP is not the CFA */
	CFI_FP_RULE,	    /* FP saved in an unknown way: rows with CFI_*FP_LOST */
	CFI_BAD_PROGRAM,    /* damaged instructions */
	NR_CFI_REASONS
};

/* Rules that were compiled, and rules that were left out. */
struct cfi_stats {
	u32 nr_fdes;			 /* functions with information, before any is dropped */
	u32 unsupported[NR_CFI_REASONS]; /* times */
	u32 nr_bad_entries;		 /* CIEs and FDEs that make no sense */
	u32 nr_empty;			 /* FDEs of no bytes */
	u32 nr_outside;			 /* FDEs outside executable segments */
	u32 nr_overlapping; /* FDEs cut or dropped because an earlier one covers their addresses */
	u32 is_cut;	    /* 1: a limit was reached, the rest of the file is missing */
};

struct cfi_table {
	u64 text_base;	      /* ELF virtual address of pc 0: the lowest executable segment */
	struct cfi_row *rows; /* owned; at least one, the last is CFI_NONE */
	size_t nr_rows;
	u16 machine;	/* EM_* */
	u8 word_size;	/* bytes */
	bool is_cached; /* read from the cache, not compiled */
	struct cfi_stats stats;
};

/* The rule for the instruction at ELF virtual address @vaddr. For a return address, pass the byte before it. */
u32 cfi_find(const struct cfi_table *table, u64 vaddr);
