/* SPDX-License-Identifier: GPL-2.0-or-later */
/* s390x for breakpoints. Emulates the instructions of prologues and epilogues, branches and plain moves. */
#include "arch/cpu_emulate.h"

#include <elf.h>
#include <errno.h>

/* The kernel's order (struct s390_regs): the program status word, the general registers, and others. */
enum { MASK = 0, ADDR = 1, GPR = 2, NR_WORDS = 27 };

enum { CODE_SHIFT = 44 }; /* of the condition code in the mask */

#define CODE_BITS (3ULL << CODE_SHIFT)

static u64 r(const struct cpu_insn *in, u32 nr)
{
	return cpu_insn_get(in, GPR + nr);
}

static int set_r(struct cpu_insn *in, u32 nr, u64 value)
{
	cpu_insn_set(in, GPR + nr, value);
	return 0;
}

/* The lower half of a register. */
static int set_low(struct cpu_insn *in, u32 nr, u32 value)
{
	return set_r(in, nr, (r(in, nr) & ~0xffffffffULL) | value);
}

/* In an address, register 0 means the value zero. */
static u64 base(const struct cpu_insn *in, u32 nr)
{
	return nr ? r(in, nr) : 0;
}

/* Two registers in the instruction's second byte. */
static u32 r1(u64 insn)
{
	return cpu_bits(insn, 36, 4);
}

static u32 r2(u64 insn)
{
	return cpu_bits(insn, 32, 4);
}

/* An address: base and displacement of 12 or 20 bits. For some instructions the second register is an index. */
static u64 address_12(const struct cpu_insn *in, u64 insn)
{
	return base(in, cpu_bits(insn, 28, 4)) + cpu_bits(insn, 16, 12);
}

static u64 address_20(const struct cpu_insn *in, u64 insn)
{
	return base(in, cpu_bits(insn, 28, 4)) + (u64)cpu_signed_bits(insn, 8, 8) * 4096 +
	       cpu_bits(insn, 16, 12);
}

static u64 indexed_12(const struct cpu_insn *in, u64 insn)
{
	return base(in, r2(insn)) + address_12(in, insn);
}

static u64 indexed_20(const struct cpu_insn *in, u64 insn)
{
	return base(in, r2(insn)) + address_20(in, insn);
}

/* Distances count halfwords. */
static u64 near(const struct cpu_insn *in, u64 insn)
{
	return in->pc + 2 * (u64)cpu_signed_bits(insn, 16, 16);
}

static u64 far(const struct cpu_insn *in, u64 insn)
{
	return in->pc + 2 * (u64)cpu_signed_bits(insn, 0, 32);
}

static int set_code(struct cpu_insn *in, u64 code)
{
	cpu_insn_set(in, MASK, (cpu_insn_get(in, MASK) & ~CODE_BITS) | code << CODE_SHIFT);
	return 0;
}

/* Is condition code @code among those of the mask? The highest of its four bits is code 0. */
static bool has_code(u32 mask, u32 code)
{
	return mask << code & 8;
}

static bool is_taken(const struct cpu_insn *in, u32 mask)
{
	return has_code(mask, (u32)((cpu_insn_get(in, MASK) & CODE_BITS) >> CODE_SHIFT));
}

/* 0 equal, 1 low, 2 high. */
static u32 compared(s64 a, s64 b)
{
	return a == b ? 0 : a < b ? 1 : 2;
}

static u32 compared_unsigned(u64 a, u64 b)
{
	return a == b ? 0 : a < b ? 1 : 2;
}

/* ---- moves ---- */

static int do_stmg(struct cpu_insn *in, u64 insn)
{
	taddr_t at = address_20(in, insn);
	u32 nr = r1(insn), last = r2(insn);
	u8 bytes[16 * 8];
	size_t len = 0;

	for (;; nr = (nr + 1) % 16) {
		cpu_insn_bytes(in, bytes + len, 8, r(in, nr));
		len += 8;
		if (nr == last)
			break;
	}
	return in->memory->write(in->memory->ctx, at, bytes, len);
}

static int do_lmg(struct cpu_insn *in, u64 insn)
{
	taddr_t at = address_20(in, insn);
	u64 value;

	for (u32 nr = r1(insn);; nr = (nr + 1) % 16, at += 8) {
		int err = cpu_insn_load(in, at, 8, &value);

		if (err)
			return err;
		set_r(in, nr, value);
		if (nr == r2(insn))
			return 0;
	}
}

static int do_la(struct cpu_insn *in, u64 insn)
{
	return set_r(in, r1(insn), indexed_12(in, insn));
}

static int do_lay(struct cpu_insn *in, u64 insn)
{
	return set_r(in, r1(insn), indexed_20(in, insn));
}

/* No program has addresses below 0, and qemu computes them in another way. */
static int do_larl(struct cpu_insn *in, u64 insn)
{
	return (s64)far(in, insn) < 0 ? -ENOTSUP : set_r(in, r1(insn), far(in, insn));
}

static int do_lg(struct cpu_insn *in, u64 insn)
{
	u64 value;
	int err = cpu_insn_load(in, indexed_20(in, insn), 8, &value);

	return err ? err : set_r(in, r1(insn), value);
}

static int do_lgrl(struct cpu_insn *in, u64 insn)
{
	u64 value;
	int err = far(in, insn) & 7 ? -ENOTSUP : cpu_insn_load(in, far(in, insn), 8, &value);

	return err ? err : set_r(in, r1(insn), value);
}

static int do_stg(struct cpu_insn *in, u64 insn)
{
	return cpu_insn_store(in, indexed_20(in, insn), 8, r(in, r1(insn)));
}

static int do_lr(struct cpu_insn *in, u64 insn)
{
	return set_low(in, r1(insn), (u32)r(in, r2(insn)));
}

/* In instructions of four bytes, the registers are in the last byte. */
static int do_lgr(struct cpu_insn *in, u64 insn)
{
	return set_r(in, cpu_bits(insn, 20, 4), r(in, cpu_bits(insn, 16, 4)));
}

static int do_ltgr(struct cpu_insn *in, u64 insn)
{
	set_code(in, compared((s64)r(in, cpu_bits(insn, 16, 4)), 0));
	return do_lgr(in, insn);
}

static int do_lgfr(struct cpu_insn *in, u64 insn)
{
	return set_r(in, cpu_bits(insn, 20, 4), cpu_sign_extend(r(in, cpu_bits(insn, 16, 4)), 32));
}

static int do_lhi(struct cpu_insn *in, u64 insn)
{
	return set_low(in, r1(insn), (u32)cpu_signed_bits(insn, 16, 16));
}

static int do_lghi(struct cpu_insn *in, u64 insn)
{
	return set_r(in, r1(insn), (u64)cpu_signed_bits(insn, 16, 16));
}

static int do_aghi(struct cpu_insn *in, u64 insn)
{
	s64 sum;
	bool overflows = __builtin_add_overflow((s64)r(in, r1(insn)), cpu_signed_bits(insn, 16, 16), &sum);

	set_code(in, overflows ? 3 : compared(sum, 0));
	return set_r(in, r1(insn), (u64)sum);
}

/* ---- branches ---- */

static int go_to(struct cpu_insn *in, taddr_t to, bool is_taken)
{
	if (is_taken)
		in->next = to;
	return 0;
}

/* br, and nops. Two forms make the CPU wait for memory; the stop of the thread has already done so. */
static int do_bcr(struct cpu_insn *in, u64 insn)
{
	return go_to(in, base(in, r2(insn)), r2(insn) && is_taken(in, r1(insn)));
}

static int do_bc(struct cpu_insn *in, u64 insn)
{
	return go_to(in, indexed_12(in, insn), is_taken(in, r1(insn)));
}

static int do_brc(struct cpu_insn *in, u64 insn)
{
	return go_to(in, near(in, insn), is_taken(in, r1(insn)));
}

static int do_brcl(struct cpu_insn *in, u64 insn)
{
	return go_to(in, far(in, insn), is_taken(in, r1(insn)));
}

static int do_basr(struct cpu_insn *in, u64 insn)
{
	taddr_t to = base(in, r2(insn));

	set_r(in, r1(insn), in->next);
	return go_to(in, to, r2(insn));
}

static int do_bras(struct cpu_insn *in, u64 insn)
{
	set_r(in, r1(insn), in->next);
	return go_to(in, near(in, insn), true);
}

static int do_brasl(struct cpu_insn *in, u64 insn)
{
	set_r(in, r1(insn), in->next);
	return go_to(in, far(in, insn), true);
}

static int do_brct(struct cpu_insn *in, u64 insn)
{
	u32 left = (u32)r(in, r1(insn)) - 1;

	set_low(in, r1(insn), left);
	return go_to(in, near(in, insn), left);
}

static int do_brctg(struct cpu_insn *in, u64 insn)
{
	set_r(in, r1(insn), r(in, r1(insn)) - 1);
	return go_to(in, near(in, insn), r(in, r1(insn)));
}

/* Compare two registers and branch. Bit 0 of the operation: 32 bits wide. Bit 1 of its upper half: signed. */
static int do_crj(struct cpu_insn *in, u64 insn)
{
	u64 a = r(in, r1(insn)), b = r(in, r2(insn));
	u32 op = cpu_bits(insn, 0, 8), code;

	if (op == 0x76 || op == 0x64) /* crj, cgrj */
		code = op == 0x76 ? compared((s32)a, (s32)b) : compared((s64)a, (s64)b);
	else
		code = op == 0x77 ? compared_unsigned((u32)a, (u32)b) : compared_unsigned(a, b);
	return go_to(in, near(in, insn), has_code(cpu_bits(insn, 12, 4), code));
}

/* Compare a register with a byte and branch. The mask is in the field of the second register. */
static int do_cij(struct cpu_insn *in, u64 insn)
{
	u64 a = r(in, r1(insn));
	u32 op = cpu_bits(insn, 0, 8), byte = cpu_bits(insn, 8, 8), code;

	if (op == 0x7e || op == 0x7c) /* cij, cgij */
		code = compared(op == 0x7e ? (s32)a : (s64)a, (s8)byte);
	else
		code = compared_unsigned(op == 0x7f ? (u32)a : a, byte);
	return go_to(in, near(in, insn), has_code(r2(insn), code));
}

static const struct cpu_pattern patterns[] = {
	{ 0xff0000000000, 0x070000000000, do_bcr },
	{ 0xff0000000000, 0x0d0000000000, do_basr },
	{ 0xff0000000000, 0x180000000000, do_lr },
	{ 0xff0000000000, 0x410000000000, do_la },
	{ 0xff0000000000, 0x470000000000, do_bc },
	{ 0xff0f00000000, 0xa70400000000, do_brc },
	{ 0xff0f00000000, 0xa70500000000, do_bras },
	{ 0xff0f00000000, 0xa70600000000, do_brct },
	{ 0xff0f00000000, 0xa70700000000, do_brctg },
	{ 0xff0f00000000, 0xa70800000000, do_lhi },
	{ 0xff0f00000000, 0xa70900000000, do_lghi },
	{ 0xff0f00000000, 0xa70b00000000, do_aghi },
	{ 0xffff00000000, 0xb90200000000, do_ltgr },
	{ 0xffff00000000, 0xb90400000000, do_lgr },
	{ 0xffff00000000, 0xb91400000000, do_lgfr },
	{ 0xff0f00000000, 0xc00000000000, do_larl },
	{ 0xff0f00000000, 0xc00400000000, do_brcl },
	{ 0xff0f00000000, 0xc00500000000, do_brasl },
	{ 0xff0f00000000, 0xc40800000000, do_lgrl },
	{ 0xff00000000ff, 0xe30000000004, do_lg },
	{ 0xff00000000ff, 0xe30000000024, do_stg },
	{ 0xff00000000ff, 0xe30000000071, do_lay },
	{ 0xff00000000ff, 0xeb0000000004, do_lmg },
	{ 0xff00000000ff, 0xeb0000000024, do_stmg },
	{ 0xff00000000ff, 0xec0000000064, do_crj },
	{ 0xff00000000ff, 0xec0000000065, do_crj },
	{ 0xff00000000ff, 0xec0000000076, do_crj },
	{ 0xff00000000ff, 0xec0000000077, do_crj },
	{ 0xff00000000ff, 0xec000000007c, do_cij },
	{ 0xff00000000ff, 0xec000000007d, do_cij },
	{ 0xff00000000ff, 0xec000000007e, do_cij },
	{ 0xff00000000ff, 0xec000000007f, do_cij },
	{ 0 },
};

/*
 * Other instructions that may not continue with the next one, or that execute another one: traps and reserved codes
 * (00, 01); balr, bctr, bsm, bassm; ex, bal, bct, bas; brxh, brxle, bxh, bxle; bctgr and returns of kernels; brcth;
 * exrl; comparisons of six bytes with a trap or a branch.
 */
static const struct cpu_pattern strays[] = {
	{ 0xfe0000000000, 0x000000000000, NULL }, { 0xfe0000000000, 0x040000000000, NULL },
	{ 0xff0000000000, 0x060000000000, NULL }, { 0xfe0000000000, 0x0a0000000000, NULL },
	{ 0xff0000000000, 0x0c0000000000, NULL }, { 0xfe0000000000, 0x440000000000, NULL },
	{ 0xff0000000000, 0x460000000000, NULL }, { 0xff0000000000, 0x4d0000000000, NULL },
	{ 0xfc0000000000, 0x840000000000, NULL }, { 0xffff00000000, 0xb94600000000, NULL },
	{ 0xff0000000000, 0xb20000000000, NULL }, { 0xff0f00000000, 0xcc0600000000, NULL },
	{ 0xff0f00000000, 0xc60000000000, NULL }, { 0xff00000000fe, 0xe30000000046, NULL },
	{ 0xff00000000fe, 0xeb0000000044, NULL }, { 0xff00000000fe, 0xec0000000044, NULL },
	{ 0xff00000000f0, 0xec0000000070, NULL }, { 0xff00000000c0, 0xec00000000c0, NULL },
	{ 0xff00000000f0, 0xeb0000000020, NULL },
};

/* The first two bits give the length: two, four, four or six bytes. */
static size_t length_of(const u8 *code, size_t len)
{
	size_t length = len < 2 ? 0 : code[0] >> 6 == 0 ? 2 : code[0] >> 6 == 3 ? 6 : 4;

	return length > len ? 0 : length;
}

/* Shorter instructions lie in the upper bytes of the 48 bits. */
static u64 number(const u8 *code, size_t length)
{
	return cpu_insn_big_endian(code, length) << 8 * (6 - length);
}

static bool may_branch(const struct cpu_insn *in, u64 insn)
{
	(void)in;
	for (size_t i = 0; i < ARRAY_SIZE(strays); i++)
		if ((insn & strays[i].mask) == strays[i].value)
			return true;
	return false;
}

static const struct cpu_isa isa = {
	.length = length_of,
	.number = number,
	.patterns = patterns,
	.may_branch = may_branch,
	.breakpoint = { 0x00, 0x01 }, /* the kernel makes SIGTRAP of it (arch/s390/kernel/traps.c) */
	.breakpoint_size = 2,
};

const struct cpu cpu_s390x = {
	.name = "s390x",
	.machine = EM_S390,
	.word_size = 8,
	.is_big = true,
	.has_link = true,
	.has_step = true,
	.trap_skip = 2,
	.regs_size = NR_WORDS * 8,
	.words = { [CPU_PC] = ADDR,
		   [CPU_SP] = GPR + 15,
		   [CPU_FP] = GPR + 11,
		   [CPU_LINK] = GPR + 14,
		   [CPU_RESULT] = GPR + 2,
		   [CPU_ARG1] = GPR + 2,
		   [CPU_ARG2] = GPR + 3,
		   [CPU_ARG3] = GPR + 4,
		   [CPU_ARG4] = GPR + 5 },
	.isa = &isa,
};
