/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Instructions of a CPU as the choice of a probe's place needs them: lengths, branches, what is clobbered. */
#pragma once

#include "user/lib/types.h"

enum insn_kind {
	INSN_OTHER,
	INSN_NOP,    /* any length, endbr and bti not among them */
	INSN_PUSH,   /* of a register */
	INSN_JUMP,   /* unconditional, direct or through memory */
	INSN_BRANCH, /* conditional */
	INSN_CALL,
	INSN_RETURN,
	INSN_TRAP, /* control does not go on behind it: ud2, int3, hlt, brk */
};

struct insn {
	enum insn_kind kind;
	u8 length;	   /* bytes */
	bool is_emulated;  /* a uprobe on it costs no single step (the table of each CPU) */
	bool moves_return; /* sp or the link register: the return address is not where it was at entry */
	u8 writes_args;	   /* bit n - 1: the register of argument n is written */
	u8 moves_from, moves_to; /* a move of the whole register of one argument to that of another; else 0 */
	taddr_t target;		 /* direct jump, branch or call: where to; else 0 */
	taddr_t address;	 /* put into a register: a place that the instruction itself names; else 0 */
	taddr_t slot; /* jump or call through memory at a fixed address (GOT): that address; else 0 */
};

enum { INSN_MAX_LENGTH = 16, INSN_STUB_BYTES = 32 };

/* ELF machines that these functions know. */
bool insn_is_supported(u16 elf_machine);

/* The same for insn_next_call() alone. */
bool insn_has_calls(u16 elf_machine);

/*
 * May probes be placed in such code on this CPU? Not in 32-bit ARM code on aarch64: the kernel takes Thumb
 * instructions for others and corrupts them without a word.
 */
bool insn_is_probed_here(u16 elf_machine);

/*
 * Decode the instruction at @pc from @code. Returns 0, -EINVAL for bytes that are no instruction (or
 * too few), -ENOTSUP for another machine.
 */
int insn_decode(struct insn *out, u16 elf_machine, taddr_t pc, const u8 *code, size_t len) __must_check;

/* The GOT slot through which the PLT entry at @pc jumps; 0 if @code, of INSN_STUB_BYTES or less, is none. */
taddr_t insn_stub_slot(u16 elf_machine, taddr_t pc, const u8 *code, size_t len);

/*
 * Offset in @code of its first direct call to @target, @len if there is none. What looks like a call without
 * being one is checked by decoding, but no more than that: bytes in the middle of an instruction may look like one.
 */
size_t insn_next_call(u16 elf_machine, taddr_t pc, const u8 *code, size_t len, taddr_t target);
