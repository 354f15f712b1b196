/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What unwinding has to know about a CPU: its registers' DWARF numbers and its signal frames. */
#pragma once

#include "user/lib/types.h"

enum { UNWIND_SIGNAL_CODE_MAX = 12 };

struct unwind_arch {
	u16 machine;   /* EM_* */
	u8 word_size;  /* bytes */
	u8 sp, fp, ra; /* DWARF register numbers; ra is the return address column */
	bool has_link; /* a call leaves the return address in a register, not on the stack */
	/* The word at SP leads to the caller's SP, and above that one the return address is: no table is needed. */
	bool has_back_chain;
	u8 cfa_above_sp; /* bytes from the caller's SP to the CFA, as the information has it (s390x) */
	u8 ra_above_fp; /* bytes from the slot of the frame pointer to that of the return address; 0 = a word */
	/* In a signal frame's saved registers, bytes from the saved SP to the saved one. */
	s16 signal_pc, signal_fp, signal_lr;
	s16 signal_sp;	     /* bytes from SP to the saved SP, at the code that returns from a signal */
	u8 signal_code_size; /* bytes */
	u8 signal_code[UNWIND_SIGNAL_CODE_MAX]; /* that code, where no call frame information marks it */
	u8 coroutine_code_size;			/* bytes; 0 = none */
	u8 coroutine_code
		[UNWIND_SIGNAL_CODE_MAX]; /* what a coroutine's first function returns to, without information */
	/* Is this, the 8 bytes before an address as a little-endian number, the end of a call? May err on yes. */
	bool (*is_call)(u64 code);
	bool is_signal_cfi_partial; /* what there is does not say where the registers are: signal_sp does */
};

/* NULL for a CPU without rules for call frame information. @word_size: bytes of an address. */
const struct unwind_arch *unwind_arch(u16 machine, u8 word_size);
