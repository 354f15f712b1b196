/* SPDX-License-Identifier: GPL-2.0-or-later */
/* x86_64 and i386 code, as far as no library is needed; arch/insn_x86_decode.c decodes. */
#include "arch/insn_private.h"

#include <elf.h>
#include <string.h>

enum { CALL_OPCODE = 0xe8, CALL_BYTES = 5 };

static bool is_known(u16 elf_machine)
{
	return elf_machine == EM_X86_64 || elf_machine == EM_386;
}

/* A jump through the GOT, perhaps after a landing pad (endbr). */
static taddr_t stub_slot(u16 elf_machine, taddr_t pc, const u8 *code, size_t len)
{
	struct insn insn;
	size_t at = 0;

	for (int i = 0; i < 2; i++, at += insn.length) {
		if (insn_x86_decode(&insn, elf_machine, pc + at, code + at, len - at))
			return 0;
		if (insn.kind == INSN_JUMP)
			return insn.slot;
	}
	return 0;
}

static size_t next_call(taddr_t pc, const u8 *code, size_t len, taddr_t target)
{
	const u8 *at = code, *end = code + len;
	s32 distance;

	while ((at = memchr(at, CALL_OPCODE, (size_t)(end - at))) && end - at >= CALL_BYTES) {
		memcpy(&distance, at + 1, sizeof(distance));
		if (pc + (u64)(at - code) + CALL_BYTES + (u64)(s64)distance == target)
			return (size_t)(at - code);
		at++;
	}
	return len;
}

const struct insn_decoder insn_x86 = {
	.step = 1,
	.is_known = is_known,
	.decode = insn_x86_decode,
	.stub_slot = stub_slot,
	.next_call = next_call,
	.move = insn_x86_move,
};
