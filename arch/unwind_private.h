/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The rows of arch/unwind.c that are in files of their own: of CPUs whose stacks BPF programs walk, too. */
#pragma once

#include "arch/unwind.h"

extern const struct unwind_arch unwind_x86_64, unwind_i386, unwind_aarch64;

/* All that vmlinux/CPU/walk_cpu.h says of the CPU, where a word has @word bytes. */
#define UNWIND_BY_WALK_CPU(word)                                                                             \
	.word_size = (word), .has_link = HAS_LINK, .signal_pc = SIGNAL_PC_OFFSET(word),                      \
	.signal_fp = SIGNAL_FP_OFFSET(word), .signal_lr = SIGNAL_LR_OFFSET(word),                            \
	.signal_sp = SIGNAL_SP_OFFSET(word), .signal_code = SIGNAL_CODE(word),                               \
	.signal_code_unused = __builtin_clzll(SIGNAL_CODE_MASK(word)),                                       \
	.coroutine_code = COROUTINE_CODE(word)
