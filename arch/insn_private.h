/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The interface between arch/insn.c and the decoder of each CPU. */
#pragma once

#include "arch/insn.h"

/* The functions of arch/insn.h, called only for machines for which is_known() returns true. */
struct insn_decoder {
	u8 step; /* instructions begin at multiples of this many bytes */
	bool (*is_known)(u16 elf_machine);
	int (*decode)(struct insn *out, u16 elf_machine, taddr_t pc, const u8 *code, size_t len);
	taddr_t (*stub_slot)(u16 elf_machine, taddr_t pc, const u8 *code, size_t len);
	/* Where bytes are that could call @target, @len if there are none. The decoder makes the final decision. */
	size_t (*next_call)(taddr_t pc, const u8 *code, size_t len, taddr_t target);
	/* NULL = code of this machine cannot be moved. */
	int (*move)(u16 elf_machine, taddr_t pc, const u8 *code, size_t len, taddr_t to, u8 *out);
};

/* A CPU whose direct calls are known, and nothing else. */
struct insn_calls {
	u16 machine;
	u8 step; /* instructions begin at multiples of this many bytes */
	/* Is there a call to @target at @pc? @code has eight bytes. */
	bool (*is_call)(taddr_t pc, const u8 *code, taddr_t target);
};

/* decode() and move() of x86, by a library. */
int insn_x86_decode(struct insn *out, u16 elf_machine, taddr_t pc, const u8 *code, size_t len);
int insn_x86_move(u16 elf_machine, taddr_t pc, const u8 *code, size_t len, taddr_t to, u8 *out);

/* move() of aarch64. */
int insn_aarch64_move(u16 elf_machine, taddr_t pc, const u8 *code, size_t len, taddr_t to, u8 *out);

extern const struct insn_decoder insn_x86, insn_aarch64;
