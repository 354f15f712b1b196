/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tests of the decoders: kinds, targets, what is written; PLT entries; the search for calls. */
#include "arch/insn.h"

#include <elf.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "arch/cpu.h"

enum { PC = 0x10000, EMULATED = 1, MOVES_RETURN = 2 };

/* As an assembler wrote them. */
static const struct aarch64_case {
	const char *name;
	u32 word;
	enum insn_kind kind;
	u8 flags;
	u8 writes;   /* arguments, bit n - 1 */
	s64 to;	     /* distance of the target, 0 = none */
	u8 from_arg; /* of a move, then the argument that it goes to */
	u8 to_arg;
} aarch64_cases[] = {
	{ "nop", 0xd503201f, INSN_NOP, EMULATED },
	{ "bti c", 0xd503245f, INSN_OTHER, 0 },
	{ "paciasp", 0xd503233f, INSN_OTHER, MOVES_RETURN },
	{ "autiasp", 0xd50323bf, INSN_OTHER, MOVES_RETURN },
	{ "cbz x0", 0xb4000080, INSN_BRANCH, EMULATED, 0, 16 },
	{ "tbnz w3, #4", 0x3727ffc3, INSN_BRANCH, EMULATED, 0, -8 },
	{ "b.ne", 0x54000041, INSN_BRANCH, EMULATED, 0, 8 },
	{ "b", 0x14000040, INSN_JUMP, EMULATED, 0, 0x100 },
	{ "bl", 0x97ffffc0, INSN_CALL, EMULATED | MOVES_RETURN, 0, -0x100 },
	{ "br x17", 0xd61f0220, INSN_JUMP, EMULATED },
	{ "blr x1", 0xd63f0020, INSN_CALL, EMULATED | MOVES_RETURN },
	{ "ret", 0xd65f03c0, INSN_RETURN, EMULATED },
	{ "retaa", 0xd65f0bff, INSN_RETURN, 0 },
	{ "brk #0", 0xd4200000, INSN_TRAP, MOVES_RETURN, 15 },
	{ "udf #0", 0x00000000, INSN_TRAP, MOVES_RETURN, 15 },
	{ "stp x29, x30, [sp, #-32]!", 0xa9be7bfd, INSN_OTHER, EMULATED | MOVES_RETURN },
	{ "stp x19, x20, [sp, #16]", 0xa90153f3, INSN_OTHER, 0 },
	{ "str x30, [sp, #-16]!", 0xf81f0ffe, INSN_OTHER, MOVES_RETURN },
	{ "ldp x29, x30, [sp], #32", 0xa8c27bfd, INSN_OTHER, MOVES_RETURN },
	{ "ldp x0, x3, [x4]", 0xa9400c80, INSN_OTHER, 0, 1 | 8 },
	{ "ldr x1, [x0]", 0xf9400001, INSN_OTHER, 0, 2 },
	{ "ldr x1, [x2], #8", 0xf8408441, INSN_OTHER, 0, 2 | 4 },
	{ "str x0, [x1]", 0xf9000020, INSN_OTHER, 0 },
	{ "ldr d0, [x1]", 0xfd400020, INSN_OTHER, 0 },
	{ "ldr x2, literal", 0x58000082, INSN_OTHER, EMULATED, 4 },
	{ "adrp x3", 0x90000003, INSN_OTHER, EMULATED, 8 },
	{ "mov x3, x0", 0xaa0003e3, INSN_OTHER, 0, 8, 0, 1, 4 },
	{ "mov x19, x0", 0xaa0003f3, INSN_OTHER, 0 },
	{ "mov w2, w1", 0x2a0103e2, INSN_OTHER, 0, 4 },
	{ "sub sp, sp, #16", 0xd10043ff, INSN_OTHER, MOVES_RETURN },
	{ "add x1, sp, #8", 0x910023e1, INSN_OTHER, 0, 2 },
	{ "subs x0, x0, #1", 0xf1000400, INSN_OTHER, 0, 1 },
	{ "cmp x0, #1", 0xf100041f, INSN_OTHER, 0 },
	{ "ccmp x0, #1, #2, eq", 0xfa410802, INSN_OTHER, 0 },
	{ "mrs x1, tpidr_el0", 0xd53bd041, INSN_OTHER, 0, 2 },
	{ "swpal w1, w2, [x0]", 0xb8e18002, INSN_OTHER, 0, 4 },
	{ "svc #0", 0xd4000001, INSN_OTHER, 0, 1 },
	{ "mov x30, x5", 0xaa0503fe, INSN_OTHER, MOVES_RETURN },
	{ "a vector's length, unknown here", 0x0420e3e9, INSN_OTHER, MOVES_RETURN, 15 },
};

static void put_word(u8 *code, u32 word)
{
	for (int i = 0; i < 4; i++)
		code[i] = (u8)(word >> 8 * i);
}

static void test_aarch64(void **state)
{
	u8 code[4];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(aarch64_cases); i++) {
		const struct aarch64_case *c = &aarch64_cases[i];
		struct insn insn;

		print_message("# %s\n", c->name);
		put_word(code, c->word);
		assert_int_equal(insn_decode(&insn, EM_AARCH64, PC, code, sizeof(code)), 0);
		assert_int_equal(insn.length, 4);
		assert_int_equal(insn.kind, c->kind);
		assert_int_equal(insn.is_emulated, !!(c->flags & EMULATED));
		assert_int_equal(insn.moves_return, !!(c->flags & MOVES_RETURN));
		assert_int_equal(insn.writes_args, c->writes);
		assert_int_equal(insn.target, c->to ? PC + (u64)c->to : 0);
		assert_int_equal(insn.moves_from, c->from_arg);
		assert_int_equal(insn.moves_to, c->to_arg);
		assert_int_equal(insn.slot, 0);
	}
	assert_int_equal(insn_decode(&(struct insn){ 0 }, EM_AARCH64, PC, code, 3), -EINVAL);
	assert_int_equal(insn_decode(&(struct insn){ 0 }, EM_AARCH64, PC + 2, code, 4), -EINVAL);
}

/* 32-bit ARM among them: the kernel corrupts Thumb code under a probe. */
static void test_unknown_machines(void **state)
{
	static const u16 machines[] = { EM_NONE, EM_ARM, EM_MIPS, EM_RISCV, EM_PPC };
	const u8 code[INSN_MAX_LENGTH] = { 0 };
	struct insn insn;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(machines); i++) {
		assert_false(insn_is_supported(machines[i]));
		assert_false(insn_is_probed_here(machines[i]));
		assert_int_equal(insn_decode(&insn, machines[i], PC, code, sizeof(code)), -ENOTSUP);
		assert_int_equal(insn_stub_slot(machines[i], PC, code, sizeof(code)), 0);
		assert_int_equal(insn_next_call(machines[i], PC, code, sizeof(code), PC), sizeof(code));
	}
	assert_true(insn_is_supported(EM_AARCH64));
}

/* adr; adrp, with another one between it and its add; adrp whose add is for another register */
static void test_aarch64_addresses(void **state)
{
	/* adr x1, +12; adrp x0, +1 page; adrp x1, +0 pages; add x0, x0, #0x160; add x1, x1, #0x170 */
	static const u32 words[] = { 0x10000061, 0xb0000000, 0x90000001, 0x91058000, 0x9105c021 };
	static const u64 want[] = { PC + 12, PC + 0x1160, PC + 0x170, 0, 0 };
	u8 code[sizeof(words)];
	struct insn insn;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		put_word(code + 4 * i, words[i]);
	for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
		assert_int_equal(
			insn_decode(&insn, EM_AARCH64, PC + 4 * i, code + 4 * i, sizeof(code) - 4 * i), 0);
		assert_int_equal(insn.address, want[i]);
	}
	assert_int_equal(insn_decode(&insn, EM_AARCH64, PC + 4, code + 4, 8), 0);
	assert_int_equal(insn.address, 0);
}

static void test_aarch64_stub(void **state)
{
	/* bti c; adrp x16, +0x1f pages; ldr x17, [x16, #4088]; add x16, x16, #0xff8; br x17 */
	static const u32 words[] = { 0xd503245f, 0xf00000f0, 0xf947fe11, 0x913fe210, 0xd61f0220, 0xd503201f };
	const u64 slot = PC + 0x1f000 + 0xff8;
	u8 code[sizeof(words)];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		put_word(code + 4 * i, words[i]);
	assert_int_equal(insn_stub_slot(EM_AARCH64, PC, code, sizeof(code)), slot);
	assert_int_equal(insn_stub_slot(EM_AARCH64, PC + 4, code + 4, 16), slot);
	assert_int_equal(insn_stub_slot(EM_AARCH64, PC, code, 16), 0);
	put_word(code + 8, 0xf9400001); /* ldr x1, [x0] */
	assert_int_equal(insn_stub_slot(EM_AARCH64, PC, code, sizeof(code)), 0);
}

static void test_aarch64_calls(void **state)
{
	u8 code[32] = { 0 };

	(void)state;
	put_word(code + 8, 0x94000006);	 /* bl, 24 bytes on */
	put_word(code + 16, 0x14000004); /* a jump to there is no call */
	put_word(code + 24, 0x94000002);
	assert_int_equal(insn_next_call(EM_AARCH64, PC, code, sizeof(code), PC + 32), 8);
	assert_int_equal(insn_next_call(EM_AARCH64, PC + 9, code + 9, 23, PC + 32), 15);
	assert_int_equal(insn_next_call(EM_AARCH64, PC, code, 27, PC + 36), 27);
	assert_int_equal(insn_next_call(EM_AARCH64, PC, code, 0, PC), 0);
}

/* ---- aarch64 code that is moved ---- */

enum { X16 = 16, X17 = 17, PC_WORD = 32, FLAGS_WORD = 33, NR_REGS = 34, MAX_STEPS = 8 };

/* A CPU for moved code: the emulation of heaptap, and loads that it leaves out. Each address holds another number. */
struct toy {
	struct cpu_regs regs;
	const u8 *code; /* at start */
	size_t len;
	u64 start;
	u64 vector_addr; /* what was loaded to a vector register, from where */
	u32 vector, vector_size;
};

static int read_number(void *ctx, taddr_t addr, void *buf, size_t len)
{
	u64 value = addr * 0x9e3779b97f4a7c15ULL;

	(void)ctx;
	memcpy(buf, &value, len);
	return 0;
}

/* Memory of the moved code itself, or the number of the address. */
static int read_toy(void *ctx, taddr_t addr, void *buf, size_t len)
{
	const struct toy *t = ctx;

	if (addr < t->start || addr + len > t->start + t->len)
		return read_number(NULL, addr, buf, len);
	memcpy(buf, t->code + (addr - t->start), len);
	return 0;
}

static u64 *reg(struct toy *t, u32 nr)
{
	return (u64 *)(void *)t->regs.bytes + nr;
}

static void load(struct toy *t, u64 addr, u32 which, u32 to)
{
	u64 value = 0;

	assert_int_equal(read_toy(t, addr, &value, which == 1 ? 8 : 4), 0);
	if (which == 2)
		value = (u64)(s64)(s32)value;
	if (to < 31)
		*reg(t, to) = value;
}

static void load_vector(struct toy *t, u64 addr, u32 size, u32 to)
{
	t->vector_addr = addr;
	t->vector_size = size;
	t->vector = to + 1;
}

static bool step_load(struct toy *t, u32 word, u64 pc)
{
	u64 literal = pc + (u64)((s64)((u64)word << 40) >> 45) * 4, base = *reg(t, word >> 5 & 31);

	if ((word & 0xff000000) == 0xd8000000)
		; /* prfm */
	else if ((word & 0x3f000000) == 0x18000000)
		load(t, literal, word >> 30, word & 31);
	else if ((word & 0x3f000000) == 0x1c000000)
		load_vector(t, literal, 4U << (word >> 30), word & 31);
	else if ((word & 0xbffffc00) == 0xbd400000)
		load_vector(t, base, word >> 30 & 1 ? 8 : 4, word & 31);
	else if ((word & 0xfffffc00) == 0x3dc00000)
		load_vector(t, base, 16, word & 31);
	else
		return false;
	*reg(t, PC_WORD) = pc + 4;
	return true;
}

/* Run until control leaves the code. */
static void run(struct toy *t)
{
	const struct cpu_memory memory = { .ctx = t, .read = read_toy };
	const struct cpu *cpu = cpu_find(EM_AARCH64, 8, false);

	for (int i = 0; i < MAX_STEPS; i++) {
		u64 pc = *reg(t, PC_WORD), at = pc - t->start;
		u32 word;

		if (at >= t->len)
			return;
		assert_true(at % 4 == 0);
		memcpy(&word, t->code + at, sizeof(word));
		if (!step_load(t, word, pc))
			assert_int_equal(cpu_emulate(cpu, &t->regs, t->code + at, t->len - at, &memory), 0);
	}
	fail();
}

static void fill(struct toy *t, u32 flags, u64 start)
{
	t->regs.size = NR_REGS * 8;
	for (u32 i = 0; i < NR_REGS; i++)
		*reg(t, i) = i % 3 ? 0x1111111111111111ULL * i : 0;
	*reg(t, PC_WORD) = t->start = start;
	*reg(t, FLAGS_WORD) = (u64)flags << 28;
}

/* Do the instruction at @from, and its @len bytes at @to, the same with @flags? */
static void assert_same(u32 word, u64 from, const u8 *moved, size_t len, u64 to, u32 flags)
{
	u8 code[4];
	struct toy a = { .code = code, .len = 4 }, b = { .code = moved, .len = len };

	put_word(code, word);
	fill(&a, flags, from);
	fill(&b, flags, to);
	run(&a);
	run(&b);
	if (*reg(&a, PC_WORD) == from + 4)
		*reg(&a, PC_WORD) = to + len;
	for (u32 i = 0; i < NR_REGS; i++)
		if ((i != X16 && i != X17) || ((word & 31) == i && !(word >> 26 & 1)))
			assert_int_equal(*reg(&a, i), *reg(&b, i));
	assert_int_equal(a.vector_addr, b.vector_addr);
	assert_int_equal(a.vector_size, b.vector_size);
	assert_int_equal(a.vector, b.vector);
}

enum { ALWAYS = 63, MIB = 20, GIB = 30 };

/* Instructions that name a place by its distance, and up to which distance (a power of two) they must be moved. */
static const struct moving {
	const char *name;
	u32 word;
	u32 reach;
} moving[] = {
	{ "b", 0x14000000, MIB + 6 },
	{ "b.ne", 0x54000001, MIB + 6 },
	{ "bc.hi", 0x54000018, MIB + 6 },
	{ "cbz w3", 0x34000003, MIB + 6 },
	{ "cbnz x4", 0xb5000004, MIB + 6 },
	{ "tbz w5, #3", 0x36180005, MIB + 6 },
	{ "tbnz x7, #40", 0xb7400007, MIB + 6 },
	{ "adr x0", 0x10000000, ALWAYS },
	{ "adr x16", 0x10000010, ALWAYS },
	{ "adr xzr", 0x1000001f, ALWAYS },
	{ "adrp x1", 0x90000001, ALWAYS },
	{ "adrp x17", 0xf0000011, ALWAYS },
	{ "adrp xzr", 0x9000001f, ALWAYS },
	{ "ldr w2", 0x18000002, GIB },
	{ "ldr x2", 0x58000002, GIB },
	{ "ldr x16", 0x58000010, GIB },
	{ "ldr xzr", 0x5800001f, GIB },
	{ "ldrsw x8", 0x98000008, GIB },
	{ "ldr s1", 0x1c000001, GIB },
	{ "ldr d2", 0x5c000002, GIB },
	{ "ldr q16", 0x9c000010, GIB },
	{ "prfm", 0xd8000000, ALWAYS },
};

/* Distances are in bits 0 to 25 of b, the upper of which stay 0 here, and from bit 5 to 23, or 18, of the others. */
static u32 with_distance(u32 word, u32 random)
{
	if (word == 0x14000000)
		return word | (random & 0xffffff);
	if ((word & 0x7e000000) == 0x36000000)
		return word | (random & 0x3fff) << 5;
	return word | (random & 0x7ffff) << 5;
}

static void move_to(const struct moving *m, u32 word, u64 from, u64 to, bool must)
{
	u8 code[4], out[INSN_MAX_MOVED];
	int len;

	put_word(code, word);
	len = insn_move(EM_AARCH64, from, code, sizeof(code), to, out);
	if (len == -ERANGE && !must)
		return;
	assert_in_range(len, 4, INSN_MAX_MOVED);
	/* The emulation does not know bc.cond, which is b.cond and a hint. */
	if (m->word == 0x54000018) {
		assert_true(out[0] & 0x10);
		out[0] &= (u8)~0x10;
		word &= ~0x10U;
	}
	for (u32 flags = 0; flags < 16; flags++)
		assert_same(word, from, out, (size_t)len, to, flags);
}

/* Whatever an instruction names by its distance is the same at the other place, near or far. */
static void test_aarch64_moves(void **state)
{
	const u64 from = 0x7f1234567000 + 0x3fc;
	u32 random = 1;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(moving); i++) {
		for (u32 shift = 2; shift < 46; shift++) {
			for (int k = 0; k < 16; k++) {
				u64 by = (1ULL << shift) + ((u64)random << 2 & ((1ULL << shift) - 4));

				random = random * 1103515245 + 12345;
				move_to(&moving[i], with_distance(moving[i].word, random >> 5), from,
					k % 2 ? from + by : from - by, shift < moving[i].reach);
			}
		}
	}
}

/* Instructions that name no place are copied; calls and the like stay where they are. */
static void test_aarch64_stays(void **state)
{
	/* bti c; paciasp; stp x29, x30, [sp, #-32]!; sub sp, sp, #16; ret; retaa; br x17; braa; svc; mrs; xpaci */
	static const u32 copied[] = { 0xd503245f, 0xd503233f, 0xa9be7bfd, 0xd10043ff, 0xd65f03c0, 0xd65f0bff,
				      0xd61f0220, 0xd71f0a11, 0xd4000001, 0xd53bd041, 0xdac143e0 };
	/* bl; blr x1; blraaz x1; brk; udf; hlt; cbeq x0, x1; retaasppc; pacm; paciasppc; autiasppc; eret */
	static const u32 kept[] = { 0x97ffffc0, 0xd63f0020, 0xd63f083f, 0xd4200000, 0,		0xd4400000,
				    0xf4c10000, 0x5500001f, 0xd50324ff, 0xdac1a3fe, 0xf380001f, 0xd69f03e0 };
	u8 code[4], out[INSN_MAX_MOVED];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(copied); i++) {
		put_word(code, copied[i]);
		assert_int_equal(insn_move(EM_AARCH64, PC, code, 4, PC + (1ULL << 40), out), 4);
		assert_memory_equal(code, out, 4);
	}
	for (size_t i = 0; i < ARRAY_SIZE(kept); i++) {
		put_word(code, kept[i]);
		assert_int_equal(insn_move(EM_AARCH64, PC, code, 4, PC + 16, out), -ENOTSUP);
	}
	assert_int_equal(insn_move(EM_AARCH64, PC, code, 3, PC, out), -EINVAL);
	assert_int_equal(insn_move(EM_AARCH64, PC + 2, code, 4, PC, out), -EINVAL);
	assert_int_equal(insn_move(EM_AARCH64, PC, code, 4, PC + 2, out), -EINVAL);
	put_word(code, 0xdc000001); /* no size of a vector register */
	assert_int_equal(insn_move(EM_AARCH64, PC, code, 4, PC, out), -EINVAL);
}

#if defined(__x86_64__)
static void test_x86(void **state)
{
	static const u8 push[] = { 0x41, 0x54 }, sub[] = { 0x48, 0x83, 0xec, 0x18 };
	static const u8 stub[] = { 0xf3, 0x0f, 0x1e, 0xfa, 0xff, 0x25, 0x10, 0, 0, 0 };
	static const u8 calls[] = { 0x90, 0xe8, 0x0a, 0, 0, 0, 0xe8, 0x05, 0, 0, 0 };
	struct insn insn;

	(void)state;
	assert_int_equal(insn_decode(&insn, EM_X86_64, PC, push, sizeof(push)), 0);
	assert_true(insn.kind == INSN_PUSH && insn.is_emulated && insn.length == 2);
	assert_int_equal(insn_decode(&insn, EM_X86_64, PC, sub, sizeof(sub)), 0);
	assert_true(insn.moves_return && !insn.is_emulated);
	assert_int_equal(insn_stub_slot(EM_X86_64, PC, stub, sizeof(stub)), PC + 10 + 0x10);
	assert_int_equal(insn_next_call(EM_X86_64, PC, calls, sizeof(calls), PC + 16), 1);
	assert_int_equal(insn_next_call(EM_X86_64, PC + 2, calls + 2, sizeof(calls) - 2, PC + 16), 4);
	assert_int_equal(insn_next_call(EM_X86_64, PC, calls, 5, PC + 16), 5);
}

/* Instructions that the library leaves out, or takes for shorter than processors do. */
static void test_x86_corrected(void **state)
{
	static const u8 endbr[] = { 0xf3, 0x0f, 0x1e, 0xfa }, syscall[] = { 0x0f, 0x05 };
	static const u8 doubtful[][8] = {
		{ 0x66, 0xe9, 0x11, 0x22, 0x33, 0x44 }, /* jmp with an operand-size prefix */
		{ 0x67, 0x0f, 0xb9, 0x40, 0x02 },	/* ud1 */
		{ 0x0f, 0xff, 0xc8 },			/* ud0 */
	};
	static const u8 data16_call[] = { 0x66, 0x66, 0x48, 0xe8, 0x10, 0, 0, 0 };
	struct insn insn;

	(void)state;
	assert_int_equal(insn_decode(&insn, EM_X86_64, PC, endbr, sizeof(endbr)), 0);
	assert_true(insn.kind == INSN_OTHER && insn.length == sizeof(endbr));
	assert_int_equal(insn_decode(&insn, EM_X86_64, PC, syscall, sizeof(syscall)), 0);
	assert_int_equal(insn.writes_args, 1 << 3);
	for (size_t i = 0; i < ARRAY_SIZE(doubtful); i++)
		assert_int_equal(insn_decode(&insn, EM_X86_64, PC, doubtful[i], 8), -EINVAL);
	assert_int_equal(insn_decode(&insn, EM_X86_64, PC, data16_call, sizeof(data16_call)), 0);
	assert_true(insn.kind == INSN_CALL && insn.target == PC + sizeof(data16_call) + 0x10);
}

/* Moved instructions lead to the same place from elsewhere. */
static void test_x86_moves(void **state)
{
	static const struct {
		const char *name;
		u8 code[INSN_MAX_MOVED];
		size_t len;
		int moved_len;
		u8 opcode; /* the first byte of the moved one */
	} cases[] = {
		{ "push", { 0x41, 0x54 }, 2, 2, 0x41 },
		{ "mov rax, [rip + n]", { 0x48, 0x8b, 0x05, 0, 0x20, 0, 0 }, 7, 7, 0x48 },
		{ "movdqa xmm0, [rip + n]", { 0x66, 0x0f, 0x6f, 0x05, 0, 0x20, 0, 0 }, 8, 8, 0x66 },
		{ "jmp short", { 0xeb, 0x10 }, 2, 5, 0xe9 },
		{ "jne short", { 0x75, 0x10 }, 2, 6, 0x0f },
		{ "jne", { 0x0f, 0x85, 0, 0x20, 0, 0 }, 6, 6, 0x0f },
		{ "call", { 0xe8, 0, 0x20, 0, 0 }, 5, -ENOTSUP, 0 },
		{ "loop", { 0xe2, 0x10 }, 2, -ENOTSUP, 0 },
		{ "xbegin", { 0xc7, 0xf8, 0, 0x20, 0, 0 }, 6, -ENOTSUP, 0 },
		{ "no instruction", { 0x06 }, 1, -EINVAL, 0 },
	};
	enum { FAR = 0x1000 };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		u8 out[INSN_MAX_MOVED];
		struct insn at, moved;
		int len = insn_move(EM_X86_64, PC, cases[i].code, cases[i].len, PC + FAR, out);

		print_message("# %s\n", cases[i].name);
		assert_int_equal(len, cases[i].moved_len);
		if (len < 0)
			continue;
		assert_int_equal(out[0], cases[i].opcode);
		assert_int_equal(insn_decode(&at, EM_X86_64, PC, cases[i].code, cases[i].len), 0);
		assert_int_equal(insn_decode(&moved, EM_X86_64, PC + FAR, out, (size_t)len), 0);
		assert_true(moved.kind == at.kind && moved.target == at.target);
		if (!at.target && cases[i].len > 4) {
			s32 before, after;

			memcpy(&before, cases[i].code + cases[i].len - 4, 4);
			memcpy(&after, out + len - 4, 4);
			assert_int_equal(before - after, FAR);
		}
	}
	assert_int_equal(
		insn_move(EM_X86_64, PC, cases[1].code, cases[1].len, PC + (1ULL << 32), (u8[16]){ 0 }),
		-ERANGE);
	assert_int_equal(insn_move(EM_386, PC, cases[0].code, cases[0].len, PC, (u8[16]){ 0 }), -ENOTSUP);
}
#endif

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_aarch64),
		cmocka_unit_test(test_unknown_machines),
		cmocka_unit_test(test_aarch64_stub),
		cmocka_unit_test(test_aarch64_calls),
		cmocka_unit_test(test_aarch64_addresses),
		cmocka_unit_test(test_aarch64_moves),
		cmocka_unit_test(test_aarch64_stays),
#if defined(__x86_64__)
		cmocka_unit_test(test_x86),
		cmocka_unit_test(test_x86_corrected),
		cmocka_unit_test(test_x86_moves),
#endif
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
