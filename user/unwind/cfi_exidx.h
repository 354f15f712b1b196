/* SPDX-License-Identifier: GPL-2.0-or-later */
/* ARM's own unwind information, as rules of bpf/cfi_rule.h. */
#pragma once

#include "arch/native.h"
#include "user/lib/elf.h"

struct unwind_arch;

/* Are there programs of such CPUs? */
#ifdef HAS_ARM
#define CFI_HAS_EXIDX true
#else
#define CFI_HAS_EXIDX false
#endif

/*
 * Call @fn for each function of .ARM.exidx, with the rule of its body, by address. The rule is CFI_UNSUPPORTED if it
 * does not fit, and CFI_NONE without information. 0, -ENOENT if @elf has no such section, -EIO, or the result of @fn.
 * The work is bounded.
 */
int cfi_exidx_each(const struct elf *elf, const struct unwind_arch *arch,
		   int (*fn)(void *ctx, u64 vaddr, u32 rule), void *ctx) __must_check;

/* The rule of the entry whose second word, at @vaddr, is @word. */
u32 cfi_exidx_rule(const struct elf *elf, const struct unwind_arch *arch, u64 vaddr, u32 word);
