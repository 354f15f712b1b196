/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Direct calls in code of the CPUs that have no full decoder here. */
#include "arch/insn_private.h"

#include <elf.h>

#include "arch/native.h"

static inline u32 half_at(const u8 *code)
{
	return code[0] | code[1] << 8;
}

static inline u32 word_at(const u8 *code)
{
	return half_at(code) | half_at(code + 2) << 16;
}

/* @bits of @word from @shift on, as a signed number. */
static inline s64 signed_field(u64 word, u32 shift, u32 bits)
{
	return (s64)(word << (64 - shift - bits)) >> (64 - bits);
}

#ifdef HAS_ARM
/* bl of ARM code, bl of Thumb code; bit 0 of @target says which is wanted. */
static bool is_arm_call(taddr_t pc, const u8 *code, taddr_t target)
{
	u32 first = half_at(code), second = half_at(code + 2), sign = first >> 10 & 1;
	u32 i1 = (second >> 13 & 1) == sign, i2 = (second >> 11 & 1) == sign, distance;

	if (!(target & 1))
		return !(pc & 3) && (word_at(code) & 0xff000000) == 0xeb000000 &&
		       (u32)(pc + 8 + 4 * (u64)signed_field(word_at(code), 0, 24)) == target;
	if ((first & 0xf800) != 0xf000 || (second & 0xd000) != 0xd000)
		return false;
	distance = (0 - sign) << 24 | i1 << 23 | i2 << 22 | (first & 1023) << 12 | (second & 2047) << 1;
	return ((u32)pc + 4 + distance) == (u32)target - 1;
}
#endif

#ifdef HAS_RISCV
/* jal ra, or auipc and jalr with the same register. */
static bool is_riscv_call(taddr_t pc, const u8 *code, taddr_t target)
{
	u32 word = word_at(code), next = word_at(code + 4);
	u64 distance = (u64)signed_field(word, 31, 1) << 20 | (word >> 12 & 255) << 12 |
		       (word >> 20 & 1) << 11 | (word >> 21 & 1023) << 1;

	if ((word & 0xfff) == 0x0ef)
		return pc + distance == target;
	if ((word & 0x7f) != 0x17 || (next & 0x7fff) != 0x00e7 || (next >> 15 & 31) != (word >> 7 & 31))
		return false;
	return pc + ((u64)signed_field(word, 12, 20) << 12) + (u64)signed_field(next, 20, 12) == target;
}
#endif

#ifdef HAS_MIPS
/* bal; other calls go through a register. */
static bool is_mips_call(taddr_t pc, const u8 *code, taddr_t target)
{
	u32 word = word_at(code);

	return word >> 16 == 0x0411 && (u32)(pc + 4 + 4 * (u64)signed_field(word, 0, 16)) == target;
}
#endif

#ifdef HAS_POWERPC
static bool is_ppc_call(taddr_t pc, const u8 *code, taddr_t target)
{
	u32 word = (u32)code[0] << 24 | code[1] << 16 | code[2] << 8 | code[3];

	return (word & 0xfc000003) == 0x48000001 && (u32)(pc + 4 * (u64)signed_field(word, 2, 24)) == target;
}
#endif

#ifdef HAS_X86
/* Bytes in the middle of another instruction match only if their distance fits by chance. */
static bool is_x86_call(taddr_t pc, const u8 *code, taddr_t target)
{
	return code[0] == 0xe8 && (u32)(pc + 5 + word_at(code + 1)) == (u32)target;
}
#endif

static const struct insn_calls calls[] = {
#ifdef HAS_X86
	{ EM_386, 1, is_x86_call },	{ EM_X86_64, 1, is_x86_call }, /* used where no decoder is built in */
#endif
#ifdef HAS_ARM
	{ EM_ARM, 2, is_arm_call },
#endif
#ifdef HAS_RISCV
	{ EM_RISCV, 2, is_riscv_call },
#endif
#ifdef HAS_MIPS
	{ EM_MIPS, 4, is_mips_call },
#endif
#ifdef HAS_POWERPC
	{ EM_PPC, 4, is_ppc_call },
#endif
};

const struct insn_calls *insn_calls_of(u16 elf_machine)
{
	for (size_t i = 0; i < ARRAY_SIZE(calls); i++)
		if (calls[i].machine == elf_machine)
			return &calls[i];
	return NULL;
}
