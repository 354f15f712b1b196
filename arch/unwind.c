/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The CPUs whose call frame information heaptap follows. */
#include "arch/unwind.h"

#include <elf.h>

#include "arch/native.h"
#include "arch/unwind_private.h"

#ifdef HAS_ARM
/*
 * ARM code has no chain of frame pointers that code without information would keep. ARM uses two registers for frames;
 * the table has the one of Thumb code.
 */
static const struct unwind_arch unwind_arm = {
	.machine = EM_ARM, .word_size = 4, .sp = 13, .fp = 7, .ra = 14, .has_link = true
};
#endif
#ifdef HAS_RISCV
static const struct unwind_arch unwind_riscv64 = {
	.machine = EM_RISCV, .word_size = 8, .sp = 2, .fp = 8, .ra = 1, .has_link = true
};
#endif
#ifdef HAS_MIPS
static const struct unwind_arch unwind_mipsel = {
	.machine = EM_MIPS, .word_size = 4, .sp = 29, .fp = 30, .ra = 31, .has_link = true
};
#endif
#ifdef HAS_POWERPC
static const struct unwind_arch unwind_powerpc = { .machine = EM_PPC,
						   .word_size = 4,
						   .sp = 1,
						   .fp = 31,
						   .ra = 65,
						   .has_link = true,
						   .has_back_chain = true };
#endif

static const struct unwind_arch *const arches[] = {
#ifdef HAS_X86
	&unwind_x86_64,	 &unwind_i386,
#endif
#ifdef HAS_AARCH64
	&unwind_aarch64,
#endif
#ifdef HAS_ARM
	&unwind_arm,
#endif
#ifdef HAS_RISCV
	&unwind_riscv64,
#endif
#ifdef HAS_MIPS
	&unwind_mipsel,
#endif
#ifdef HAS_POWERPC
	&unwind_powerpc,
#endif
};

const struct unwind_arch *unwind_arch(u16 machine, u8 word_size)
{
	for (size_t i = 0; i < ARRAY_SIZE(arches); i++)
		if (arches[i]->machine == machine && arches[i]->word_size == word_size)
			return arches[i];
	return NULL;
}
