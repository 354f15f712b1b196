/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Decodes instructions to choose the place of a probe: length, branches, and what is overwritten. */
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
	INSN_TRAP, /* control never reaches the next instruction: ud2, int3, hlt, brk */
};

struct insn {
	enum insn_kind kind;
	u8 length;	  /* bytes */
	bool is_emulated; /* a uprobe on it costs no single step (the table of each CPU) */
	bool moves_return; /* writes sp or the link register: the return address is not where it was at entry */
	u8 writes_args;	   /* bit n - 1: the register of argument n is written */
	u8 moves_from, moves_to; /* a move of the whole register of one argument to that of another; else 0 */
	taddr_t target;		 /* the destination of a direct jump, branch or call; else 0 */
	taddr_t address;  /* an address that the instruction itself names and puts into a register; else 0 */
	bool is_below_sp; /* names memory below the stack pointer; only x86 */
	taddr_t slot;	  /* jump or call through memory at a fixed address (GOT): that address; else 0 */
};

enum { INSN_MAX_LENGTH = 16, INSN_STUB_BYTES = 32, INSN_MAX_MOVED = 16 };

/* ELF machines that these functions know. */
bool insn_is_supported(u16 elf_machine);

/* ELF machines that insn_next_call() knows. */
bool insn_has_calls(u16 elf_machine);

/*
 * Can probes be placed in such code on this CPU? 32-bit ARM code on aarch64 cannot have them: the kernel takes Thumb
 * instructions for other ones, and corrupts them without a message.
 */
bool insn_is_probed_here(u16 elf_machine);

/*
 * Decode the instruction at @pc from @code. Returns 0, -EINVAL for bytes that are no instruction (or
 * too few), -ENOTSUP for another machine.
 */
int insn_decode(struct insn *out, u16 elf_machine, taddr_t pc, const u8 *code, size_t len) __must_check;

/*
 * The GOT slot through which the PLT entry at @pc jumps. @code has INSN_STUB_BYTES or less. 0 if @code is no PLT
 * entry.
 */
taddr_t insn_stub_slot(u16 elf_machine, taddr_t pc, const u8 *code, size_t len);

/*
 * Offset in @code of the first direct call to @target, or @len. Bytes that look like a call are decoded. A match in
 * the middle of another instruction is not excluded.
 */
size_t insn_next_call(u16 elf_machine, taddr_t pc, const u8 *code, size_t len, taddr_t target);

/*
 * Write to @out, of INSN_MAX_MOVED bytes, an instruction at @to that does what the one at @pc does. Returns its length.
 * -ENOTSUP: not possible (a call, whose return address would show the new place), or not on this machine; -ERANGE: an
 * address that it names is too far away; -EINVAL: no instruction.
 */
int insn_move(u16 elf_machine, taddr_t pc, const u8 *code, size_t len, taddr_t to, u8 *out) __must_check;
