/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The CPUs that arch/cpu.c knows. */
#pragma once

#include "arch/cpu.h"

extern const struct cpu cpu_x86_64, cpu_i386, cpu_aarch64, cpu_arm, cpu_riscv64, cpu_mipsel, cpu_powerpc;
