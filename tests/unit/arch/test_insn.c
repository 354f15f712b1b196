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
#endif

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_aarch64),
		cmocka_unit_test(test_unknown_machines),
		cmocka_unit_test(test_aarch64_stub),
		cmocka_unit_test(test_aarch64_calls),
		cmocka_unit_test(test_aarch64_addresses),
#if defined(__x86_64__)
		cmocka_unit_test(test_x86),
#endif
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
