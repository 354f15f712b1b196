/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Emulation of x86 instructions, which vary too much for tables: the emulate() of struct cpu_isa. */
#pragma once

#include "arch/cpu_emulate.h"

int cpu_x86_emulate(const struct cpu *cpu, struct cpu_regs *regs, const u8 *code, size_t len,
		    const struct cpu_memory *memory);
