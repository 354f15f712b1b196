/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What each CPU's decoder gives to arch/insn.c. */
#pragma once

#include "arch/insn.h"

/* The functions are those of arch/insn.h, for machines that is_known() says yes to. */
struct insn_decoder {
	u8 step; /* instructions begin at multiples of this many bytes */
	bool (*is_known)(u16 elf_machine);
	int (*decode)(struct insn *out, u16 elf_machine, taddr_t pc, const u8 *code, size_t len);
	taddr_t (*stub_slot)(u16 elf_machine, taddr_t pc, const u8 *code, size_t len);
	/* Cheap: could there be a call to @target? The decoder has the last word. */
	bool (*may_call)(taddr_t pc, const u8 *code, size_t len, taddr_t target);
};

/* A CPU of which only direct calls are known. */
struct insn_calls {
	u16 machine;
	u8 step; /* instructions begin at multiples of this many bytes */
	/* Is there a call to @target at @pc? @code has eight bytes. */
	bool (*is_call)(taddr_t pc, const u8 *code, taddr_t target);
};

/* NULL for one that is not known so. */
const struct insn_calls *insn_calls_of(u16 elf_machine);

extern const struct insn_decoder insn_x86, insn_aarch64;
