/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Properties of a CPU for unwinding: DWARF numbers of registers, and signal frames. */
#pragma once

#include "arch/native.h"
#include "user/lib/types.h"

struct unwind_arch {
	u16 machine;   /* EM_* */
	u8 word_size;  /* bytes */
	u8 sp, fp, ra; /* DWARF register numbers; ra is the return address column */
	bool has_link; /* a call leaves the return address in a register, not on the stack */
	/* The word at SP points to the caller's frame, whose next word is the return address: no table is needed. */
	bool has_back_chain;
	/* In the registers that a signal frame saves: bytes from the saved SP to each other register. */
	s16 signal_pc, signal_fp, signal_lr;
	s16 signal_sp; /* bytes from SP to the saved SP, at the code that returns from a signal */
	/*
	 * The 8 bytes where the code begins that returns from a signal, as a little-endian number without its upper
	 * bits that are unused, for libraries without call frame information; 0 = none.
	 */
	u8 signal_code_unused;
	u64 signal_code;
	u64 coroutine_code; /* those of the code that a coroutine's first function returns to; 0 = none */
	/*
	 * Do these 8 bytes, the ones before an address as a little-endian number, end in a call? A wrong yes is
	 * possible.
	 */
	bool (*is_call)(u64 code);
	bool is_signal_cfi_partial; /* the call frame information does not describe the registers; signal_sp does */
};

/* Properties that are constants where the build has only x86 or no PowerPC. */
static inline bool unwind_has_link(const struct unwind_arch *arch)
{
	return HAS_LINK_CPUS && arch->has_link;
}

static inline bool unwind_has_back_chain(const struct unwind_arch *arch)
{
#ifdef HAS_POWERPC
	return arch->has_back_chain;
#else
	(void)arch;
	return false;
#endif
}

/* NULL for a CPU whose call frame information is not followed. @word_size: bytes of an address. */
const struct unwind_arch *unwind_arch(u16 machine, u8 word_size);
