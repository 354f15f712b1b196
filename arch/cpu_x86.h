/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Between arch/cpu_x86.c and the emulation: struct cpu's emulate(). */
#pragma once

#include "arch/cpu_private.h"

int cpu_x86_emulate_64(struct cpu_regs *regs, const u8 *code, size_t len, const struct cpu_memory *memory);
int cpu_x86_emulate_32(struct cpu_regs *regs, const u8 *code, size_t len, const struct cpu_memory *memory);
