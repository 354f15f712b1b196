/* SPDX-License-Identifier: GPL-2.0-or-later */
/* aarch64 for unwinding. */
#include "arch/unwind_private.h"

#include <elf.h>

#include "vmlinux/aarch64/walk_cpu.h"

static bool is_call_aarch64(u64 code)
{
	return IS_CALL(code);
}

const struct unwind_arch unwind_aarch64 = { .machine = EM_AARCH64,
					    .sp = 31,
					    .fp = 29,
					    .ra = 30,
					    .is_call = is_call_aarch64,
					    .is_signal_cfi_partial = true,
					    UNWIND_BY_WALK_CPU(8) };
