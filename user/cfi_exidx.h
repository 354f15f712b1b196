/* SPDX-License-Identifier: GPL-2.0-or-later */
/* ARM's own unwind information, as rules of bpf/cfi_rule.h. */
#pragma once

#include "user/lib/elf.h"

struct unwind_arch;

/*
 * Tell @fn each function of .ARM.exidx and the rule of its body, by address. What cannot be a rule is CFI_UNSUPPORTED,
 * what has no information CFI_NONE. 0, -ENOENT if @elf has none, -EIO, or what @fn returned. The work is bounded.
 */
int cfi_exidx_each(const struct elf *elf, const struct unwind_arch *arch,
		   int (*fn)(void *ctx, u64 vaddr, u32 rule), void *ctx) __must_check;

/* The rule of the entry whose second word, at @vaddr, is @word. */
u32 cfi_exidx_rule(const struct elf *elf, const struct unwind_arch *arch, u64 vaddr, u32 word);
