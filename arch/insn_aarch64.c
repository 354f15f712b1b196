/* SPDX-License-Identifier: GPL-2.0-or-later */
/* aarch64 instructions: four bytes each, so a table of patterns will do. */
#include "arch/insn_private.h"

#include <elf.h>
#include <errno.h>
#include <string.h>

enum {
	REG_LINK = 30,
	REG_SP = 31, /* or the zero register, as the instruction decides */
	NR_ARGS = 4,
	ALL_ARGS = (1 << NR_ARGS) - 1,
	STUB_INSNS = 5,
	ADDRESS_INSNS = 8, /* holds parts of an address */
};

/* Registers that an instruction writes, apart from flags and vector registers. */
enum writes {
	WRITES_NOTHING,
	WRITES_RD,	/* bits 0 to 4, 31 = none */
	WRITES_RD_SP,	/* bits 0 to 4, 31 = the stack pointer */
	WRITES_LINK,	/* the link register */
	WRITES_BASE,	/* bits 5 to 9, 31 = the stack pointer: addressing with write-back */
	WRITES_RD_BASE, /* both */
	WRITES_PAIR,	/* bits 0 to 4 and 10 to 14 */
	WRITES_PAIR_BASE,
	WRITES_X0,	/* a system call's result */
	WRITES_UNKNOWN, /* anything */
};

/* The field that holds the distance of a branch. */
enum distance { NO_DISTANCE, DISTANCE_26, DISTANCE_19, DISTANCE_14 };

/*
 * The first match counts. The kernel emulates the instructions that arch/arm64/kernel/probes/decode-insn.c names,
 * nop, and since 6.13 the stp at the start of functions. Older kernels step that stp wherever the probe is, so the
 * choice of another place gains nothing.
 */
static const struct pattern {
	u32 mask, value;
	u8 kind; /* enum insn_kind */
	u8 distance, writes;
	bool is_emulated;
} patterns[] = {
	/* branches */
	{ 0xfc000000, 0x14000000, INSN_JUMP, DISTANCE_26, WRITES_NOTHING, true },    /* b */
	{ 0xfc000000, 0x94000000, INSN_CALL, DISTANCE_26, WRITES_LINK, true },	     /* bl */
	{ 0xff000010, 0x54000000, INSN_BRANCH, DISTANCE_19, WRITES_NOTHING, true },  /* b.cond */
	{ 0xff000010, 0x54000010, INSN_BRANCH, DISTANCE_19, WRITES_NOTHING, false }, /* bc.cond */
	{ 0x7e000000, 0x34000000, INSN_BRANCH, DISTANCE_19, WRITES_NOTHING, true },  /* cbz, cbnz */
	{ 0x7e000000, 0x36000000, INSN_BRANCH, DISTANCE_14, WRITES_NOTHING, true },  /* tbz, tbnz */
	{ 0xfffffc1f, 0xd61f0000, INSN_JUMP, NO_DISTANCE, WRITES_NOTHING, true },    /* br */
	{ 0xfffffc1f, 0xd63f0000, INSN_CALL, NO_DISTANCE, WRITES_LINK, true },	     /* blr */
	{ 0xfffffc1f, 0xd65f0000, INSN_RETURN, NO_DISTANCE, WRITES_NOTHING, true },  /* ret */
	{ 0xfefff800, 0xd61f0800, INSN_JUMP, NO_DISTANCE, WRITES_NOTHING, false },   /* braa, braaz, ... */
	{ 0xfefff800, 0xd63f0800, INSN_CALL, NO_DISTANCE, WRITES_LINK, false },	     /* blraa, blraaz, ... */
	{ 0xfffffbff, 0xd65f0bff, INSN_RETURN, NO_DISTANCE, WRITES_NOTHING, false }, /* retaa, retab */
	{ 0xfe000000, 0xd6000000, INSN_TRAP, NO_DISTANCE, WRITES_UNKNOWN, false },   /* eret, drps */
	/* exceptions and system */
	{ 0xffe0001f, 0xd4000001, INSN_OTHER, NO_DISTANCE, WRITES_X0, false },	   /* svc */
	{ 0xff000000, 0xd4000000, INSN_TRAP, NO_DISTANCE, WRITES_UNKNOWN, false }, /* brk, hlt, ... */
	{ 0xffff0000, 0x00000000, INSN_TRAP, NO_DISTANCE, WRITES_UNKNOWN, false }, /* udf */
	{ 0xffffffff, 0xd503201f, INSN_NOP, NO_DISTANCE, WRITES_NOTHING, true },   /* nop */
	{ 0xffffffff, 0xd50320ff, INSN_OTHER, NO_DISTANCE, WRITES_LINK, false },   /* xpaclri */
	{ 0xffffff1f, 0xd503231f, INSN_OTHER, NO_DISTANCE, WRITES_LINK, false },   /* paciasp, autiasp, ... */
	{ 0xfffff01f, 0xd503201f, INSN_OTHER, NO_DISTANCE, WRITES_NOTHING, false }, /* bti and other hints */
	{ 0xffe00000, 0xd5200000, INSN_OTHER, NO_DISTANCE, WRITES_RD, false },	    /* mrs, sysl */
	{ 0xfff00000, 0xd5300000, INSN_OTHER, NO_DISTANCE, WRITES_RD, false },	    /* mrs */
	{ 0xffc00000, 0xd5000000, INSN_OTHER, NO_DISTANCE, WRITES_NOTHING, false }, /* msr, sys, barriers */
	/* immediates */
	{ 0x1f000000, 0x10000000, INSN_OTHER, NO_DISTANCE, WRITES_RD, true },	  /* adr, adrp */
	{ 0x3f000000, 0x31000000, INSN_OTHER, NO_DISTANCE, WRITES_RD, false },	  /* adds, subs */
	{ 0x1f000000, 0x11000000, INSN_OTHER, NO_DISTANCE, WRITES_RD_SP, false }, /* add, sub, addg, subg */
	{ 0x7f800000, 0x72000000, INSN_OTHER, NO_DISTANCE, WRITES_RD, false },	  /* ands */
	{ 0x1f800000, 0x12000000, INSN_OTHER, NO_DISTANCE, WRITES_RD_SP, false }, /* and, orr, eor */
	{ 0x1c000000, 0x10000000, INSN_OTHER, NO_DISTANCE, WRITES_RD, false },	  /* movz, bfm, extr, ... */
	/* registers */
	{ 0x3fe00000, 0x2b200000, INSN_OTHER, NO_DISTANCE, WRITES_RD, false },	    /* adds, subs, extended */
	{ 0x1fe00000, 0x0b200000, INSN_OTHER, NO_DISTANCE, WRITES_RD_SP, false },   /* add, sub, extended */
	{ 0x1fe00000, 0x1a400000, INSN_OTHER, NO_DISTANCE, WRITES_NOTHING, false }, /* ccmp, ccmn */
	{ 0x0e000000, 0x0a000000, INSN_OTHER, NO_DISTANCE, WRITES_RD, false },
	/* literals */
	{ 0xff000000, 0xd8000000, INSN_OTHER, NO_DISTANCE, WRITES_NOTHING, false }, /* prfm */
	{ 0x3f000000, 0x18000000, INSN_OTHER, NO_DISTANCE, WRITES_RD, true },	    /* ldr, ldrsw */
	{ 0x3f000000, 0x1c000000, INSN_OTHER, NO_DISTANCE, WRITES_NOTHING,
	  false }, /* ldr of a vector register */
	/* pairs: no write-back, then with it; stores, vector registers, loads */
	{ 0xffc07fff, 0xa9807bfd, INSN_OTHER, NO_DISTANCE, WRITES_BASE, true }, /* stp x29, x30, [sp, n]! */
	{ 0x3ac00000, 0x28000000, INSN_OTHER, NO_DISTANCE, WRITES_NOTHING, false },
	{ 0x3ac00000, 0x29000000, INSN_OTHER, NO_DISTANCE, WRITES_NOTHING, false },
	{ 0x3a400000, 0x28000000, INSN_OTHER, NO_DISTANCE, WRITES_BASE, false },
	{ 0x3e800000, 0x2c000000, INSN_OTHER, NO_DISTANCE, WRITES_NOTHING, false },
	{ 0x3e000000, 0x2c000000, INSN_OTHER, NO_DISTANCE, WRITES_BASE, false },
	{ 0x3e800000, 0x28000000, INSN_OTHER, NO_DISTANCE, WRITES_PAIR, false },
	{ 0x3e000000, 0x28000000, INSN_OTHER, NO_DISTANCE, WRITES_PAIR_BASE, false },
	/* single registers: unsigned offset, then atomics and register offsets, then unscaled, then write-back */
	{ 0x3fc00000, 0x39000000, INSN_OTHER, NO_DISTANCE, WRITES_NOTHING, false }, /* str */
	{ 0x3f000000, 0x3d000000, INSN_OTHER, NO_DISTANCE, WRITES_NOTHING, false }, /* vector registers */
	{ 0xffc00000, 0xf9800000, INSN_OTHER, NO_DISTANCE, WRITES_NOTHING, false }, /* prfm */
	{ 0x3f000000, 0x39000000, INSN_OTHER, NO_DISTANCE, WRITES_RD, false },	    /* ldr */
	{ 0x3fe00c00, 0x38200800, INSN_OTHER, NO_DISTANCE, WRITES_NOTHING, false }, /* str, register offset */
	{ 0x3f200c00, 0x3c200800, INSN_OTHER, NO_DISTANCE, WRITES_NOTHING, false },
	{ 0x3f200400, 0x38200000, INSN_OTHER, NO_DISTANCE, WRITES_RD, false },	    /* atomics, ldr */
	{ 0x3f200400, 0x38200400, INSN_OTHER, NO_DISTANCE, WRITES_RD_BASE, false }, /* ldraa, ldrab */
	{ 0x3fe00400, 0x38000000, INSN_OTHER, NO_DISTANCE, WRITES_NOTHING, false }, /* stur, sttr */
	{ 0x3fe00400, 0x38000400, INSN_OTHER, NO_DISTANCE, WRITES_BASE, false },    /* str with write-back */
	{ 0x3f200400, 0x3c000000, INSN_OTHER, NO_DISTANCE, WRITES_NOTHING, false },
	{ 0x3f200400, 0x3c000400, INSN_OTHER, NO_DISTANCE, WRITES_BASE, false },
	{ 0x3f200400, 0x38000000, INSN_OTHER, NO_DISTANCE, WRITES_RD, false },	    /* ldur, ldtr */
	{ 0x3f200400, 0x38000400, INSN_OTHER, NO_DISTANCE, WRITES_RD_BASE, false }, /* ldr with write-back */
	/* vectors: those that write a general register are among them */
	{ 0x0e000000, 0x0e000000, INSN_OTHER, NO_DISTANCE, WRITES_RD, false },
};

static const struct pattern unknown = { .kind = INSN_OTHER, .writes = WRITES_UNKNOWN };

static const struct pattern *pattern_of(u32 word)
{
	for (size_t i = 0; i < ARRAY_SIZE(patterns); i++)
		if ((word & patterns[i].mask) == patterns[i].value)
			return &patterns[i];
	return &unknown;
}

/* @bits of @word from @shift on, as a signed number. */
static s64 signed_field(u32 word, u32 shift, u32 bits)
{
	return (s64)((u64)word << (64 - shift - bits)) >> (64 - bits);
}

static taddr_t branch_target(u32 word, enum distance distance, taddr_t pc)
{
	switch (distance) {
	case DISTANCE_26:
		return pc + 4 * (u64)signed_field(word, 0, 26);
	case DISTANCE_19:
		return pc + 4 * (u64)signed_field(word, 5, 19);
	case DISTANCE_14:
		return pc + 4 * (u64)signed_field(word, 5, 14);
	default:
		return 0;
	}
}

static void note_register(struct insn *out, u32 reg, bool is_sp)
{
	if (reg < NR_ARGS)
		out->writes_args |= 1 << reg;
	if (reg == REG_LINK || (reg == REG_SP && is_sp))
		out->moves_return = true;
}

static void note_writes(struct insn *out, u32 word, enum writes writes)
{
	u32 rd = word & 31, base = word >> 5 & 31, second = word >> 10 & 31;

	if (writes == WRITES_UNKNOWN) {
		out->writes_args = ALL_ARGS;
		out->moves_return = true;
	}
	if (writes == WRITES_X0)
		note_register(out, 0, false);
	if (writes == WRITES_LINK)
		note_register(out, REG_LINK, false);
	if (writes == WRITES_RD || writes == WRITES_RD_SP || writes == WRITES_RD_BASE ||
	    writes == WRITES_PAIR || writes == WRITES_PAIR_BASE)
		note_register(out, rd, writes == WRITES_RD_SP);
	if (writes == WRITES_PAIR || writes == WRITES_PAIR_BASE)
		note_register(out, second, false);
	if (writes == WRITES_BASE || writes == WRITES_RD_BASE || writes == WRITES_PAIR_BASE)
		note_register(out, base, true);
}

/* mov of one argument's whole register to another one's: orr Xd, xzr, Xm. */
static void note_move(struct insn *out, u32 word)
{
	u32 to = word & 31, from = word >> 16 & 31;

	if ((word & 0xffe0ffe0) != 0xaa0003e0 || to >= NR_ARGS || from >= NR_ARGS)
		return;
	out->moves_to = to + 1;
	out->moves_from = from + 1;
}

static u32 word_at(const u8 *code)
{
	return code[0] | code[1] << 8 | code[2] << 16 | (u32)code[3] << 24;
}

/* The address that adr and adrp name: 21 bits in two fields, counted in bytes or in pages. */
static taddr_t relative_address(u32 word, taddr_t pc)
{
	u64 distance = (u64)signed_field(word, 5, 19) * 4 + (word >> 29 & 3);

	return word >> 31 ? (pc & ~4095ULL) + distance * 4096 : pc + distance;
}

/* An address from adr, or from adrp and an add. Other instructions may lie between adrp and add. */
static void note_address(struct insn *out, taddr_t pc, const u8 *code, size_t len)
{
	u32 word = word_at(code), reg = word & 31;

	if ((word & 0x1f000000) != 0x10000000)
		return;
	if (!(word >> 31)) {
		out->address = relative_address(word, pc);
		return;
	}
	for (size_t at = 4; at + 4 <= len && at < ADDRESS_INSNS * 4; at += 4) {
		u32 next = word_at(code + at);

		if ((next & 0xffc003e0) == (0x91000000 | reg << 5)) {
			out->address = relative_address(word, pc) + (next >> 10 & 4095);
			return;
		}
	}
}

static bool is_known(u16 elf_machine)
{
	return elf_machine == EM_AARCH64;
}

static int decode(struct insn *out, u16 elf_machine, taddr_t pc, const u8 *code, size_t len)
{
	const struct pattern *p;
	u32 word;

	(void)elf_machine;
	if (len < 4 || pc & 3)
		return -EINVAL;
	word = word_at(code);
	p = pattern_of(word);
	memset(out, 0, sizeof(*out));
	out->length = 4;
	out->kind = p->kind;
	out->target = branch_target(word, p->distance, pc);
	out->is_emulated = p->is_emulated;
	note_writes(out, word, p->writes);
	note_move(out, word);
	note_address(out, pc, code, len);
	return 0;
}

/* Perhaps bti c; then adrp x16, page; ldr x17, [x16, offset]; add x16, x16, offset; br x17. */
static taddr_t stub_slot(u16 elf_machine, taddr_t pc, const u8 *code, size_t len)
{
	taddr_t page = 0, slot = 0;

	(void)elf_machine;
	for (size_t at = 0; at < STUB_INSNS * 4 && at + 4 <= len; at += 4) {
		u32 word = word_at(code + at);

		if ((word & 0x9f00001f) == 0x90000010)
			page = relative_address(word, pc + at);
		else if ((word & 0xffc003ff) == 0xf9400211 && page)
			slot = page + (word >> 10 & 4095) * 8;
		else if (word == 0xd61f0220)
			return slot;
		else if ((word & 0xffc003ff) != 0x91000210 && (word & 0xfffff01f) != 0xd503201f)
			return 0;
	}
	return 0;
}

static size_t next_call(taddr_t pc, const u8 *code, size_t len, taddr_t target)
{
	for (size_t at = -pc & 3; at + 4 <= len; at += 4) {
		u32 word = word_at(code + at);

		if (word >> 26 == 0x25 && branch_target(word, DISTANCE_26, pc + at) == target)
			return at;
	}
	return len;
}

const struct insn_decoder insn_aarch64 = {
	.step = 4,
	.is_known = is_known,
	.decode = decode,
	.stub_slot = stub_slot,
	.next_call = next_call,
	.move = IS_AGENT ? NULL : insn_aarch64_move,
};
