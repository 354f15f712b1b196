/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Chooses the decoder of a file's CPU. */
#include <elf.h>
#include <errno.h>

#include "arch/insn_private.h"
#include "arch/native.h"

/* Direct calls in code of the CPUs that have no full decoder here. */

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

/* NULL if the calls of this machine are not known. */
static const struct insn_calls *insn_calls_of(u16 elf_machine)
{
	for (size_t i = 0; i < ARRAY_SIZE(calls); i++)
		if (calls[i].machine == elf_machine)
			return &calls[i];
	return NULL;
}

/*
 * Tests read files of other CPUs too. Only builds for x86 ask for the library that decodes x86, and the agent has no
 * decoder of another CPU.
 */
static const struct insn_decoder *const decoders[] = {
#if defined(__x86_64__) && !defined(WITHOUT_CAPSTONE)
	&insn_x86,
#endif
#ifdef HAS_AARCH64
	&insn_aarch64,
#endif
	NULL,
};

static const struct insn_decoder *decoder_of(u16 elf_machine)
{
	const struct insn_decoder *const *d = decoders;

	while (*d && !(*d)->is_known(elf_machine))
		d++;
	return *d;
}

bool insn_is_supported(u16 elf_machine)
{
	return decoder_of(elf_machine);
}

bool insn_has_calls(u16 elf_machine)
{
	return decoder_of(elf_machine) || insn_calls_of(elf_machine);
}

bool insn_is_probed_here(u16 elf_machine)
{
#if defined(__x86_64__)
	return elf_machine == EM_X86_64 || elf_machine == EM_386;
#elif defined(__aarch64__)
	return elf_machine == EM_AARCH64;
#else
	(void)elf_machine;
	return false;
#endif
}

int insn_decode(struct insn *out, u16 elf_machine, taddr_t pc, const u8 *code, size_t len)
{
	const struct insn_decoder *d = decoder_of(elf_machine);

	return d ? d->decode(out, elf_machine, pc, code, len) : -ENOTSUP;
}

taddr_t insn_stub_slot(u16 elf_machine, taddr_t pc, const u8 *code, size_t len)
{
	const struct insn_decoder *d = decoder_of(elf_machine);

	return d ? d->stub_slot(elf_machine, pc, code, len) : 0;
}

static size_t next_plain_call(const struct insn_calls *c, taddr_t pc, const u8 *code, size_t len,
			      taddr_t target)
{
	for (size_t at = -pc & (c->step - 1U); at + 8 <= len; at += c->step)
		if (c->is_call(pc + at, code + at, target))
			return at;
	return len;
}

size_t insn_next_call(u16 elf_machine, taddr_t pc, const u8 *code, size_t len, taddr_t target)
{
	const struct insn_decoder *d = decoder_of(elf_machine);
	const struct insn_calls *c = insn_calls_of(elf_machine);
	struct insn insn;

	if (!d)
		return c ? next_plain_call(c, pc, code, len, target) : len;
	for (size_t at = 0; at < len; at += d->step) {
		at += d->next_call(pc + at, code + at, len - at, target);
		if (at < len && !d->decode(&insn, elf_machine, pc + at, code + at, len - at) &&
		    insn.kind == INSN_CALL)
			return at;
	}
	return len;
}

int insn_move(u16 elf_machine, taddr_t pc, const u8 *code, size_t len, taddr_t to, u8 *out)
{
	const struct insn_decoder *d = decoder_of(elf_machine);

	return d && d->move ? d->move(elf_machine, pc, code, len, to, out) : -ENOTSUP;
}
