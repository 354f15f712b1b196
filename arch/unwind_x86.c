/* SPDX-License-Identifier: GPL-2.0-or-later */
/* x86_64 and i386 for unwinding. */
#include "arch/unwind_private.h"

#include <elf.h>

#include "vmlinux/x86_64/walk_cpu.h"

static bool is_call_x86(u64 code)
{
	return IS_CALL(code);
}

const struct unwind_arch unwind_x86_64 = {
	.machine = EM_X86_64, .sp = 7, .fp = 6, .ra = 16, .is_call = is_call_x86, UNWIND_BY_WALK_CPU(8)
};

const struct unwind_arch unwind_i386 = {
	.machine = EM_386, .sp = 4, .fp = 5, .ra = 8, .is_call = is_call_x86, UNWIND_BY_WALK_CPU(4)
};
