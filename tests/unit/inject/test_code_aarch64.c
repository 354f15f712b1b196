/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Functions of aarch64 that lead to the piece: they still do the same, as an emulated CPU shows, or are refused. */
#include "user/inject/code.h"

#include <elf.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "arch/cpu.h"

/* Offsets in memory that begins at BASE. */
enum { BASE = 0x10000000, ROOM = 1 << 16, FUNCTION = 4096, ISLAND = 16384, STUB = ISLAND + CODE_STUB_BYTES };
enum { PIECE = 0x7000, PIECE_CALL = 0x8000, CALLER = 0x9000, MAX_STEPS = 100 };
enum { ADD = 0x8b010000, RET = 0xd65f03c0, NOP = 0xd503201f }; /* add x0, x0, x1 */

struct place {
	u8 room[ROOM];
	u64 sum;		 /* of what visits of the piece have told */
	u32 nr_visits, nr_calls; /* calls: by the way for functions */
	struct code_hook hook;
};

static struct place *place_new(const u32 *code, size_t nr)
{
	struct place *p = calloc(1, sizeof(*p));
	struct code_ways ways = { BASE + PIECE, BASE + PIECE_CALL };

	assert_non_null(p);
	memcpy(p->room + FUNCTION, code, nr * sizeof(*code));
	memcpy(p->room + ISLAND, &ways, sizeof(ways));
	return p;
}

struct request {
	enum code_kind kind;
	size_t at, nr; /* the instruction, of so many that the function has */
	u32 indexes[17], nr_indexes;
};

static int hook(struct place *p, const struct request *q, const char **why)
{
	const size_t start = q->kind == CODE_RET ? FUNCTION : FUNCTION + q->at * 4;
	const struct code_site site = { .kind = q->kind,
					.addr = BASE + FUNCTION + q->at * 4,
					.start = BASE + start,
					.body = p->room + start,
					.len = FUNCTION + q->nr * 4 - start,
					.indexes = q->indexes,
					.nr_indexes = q->nr_indexes };
	struct code_hook *h = &p->hook;
	int err = code_aarch64.hook(h, &site, BASE + STUB, BASE + ISLAND, why);

	if (err)
		return err;
	assert_true(h->addr == site.addr);
	assert_int_equal(h->len, 4);
	assert_memory_equal(h->old, p->room + FUNCTION + q->at * 4, 4);
	assert_true(code_aarch64.jump_target(h->addr, h->new) == BASE + STUB);
	memcpy(p->room + FUNCTION + q->at * 4, h->new, 4);
	memcpy(p->room + STUB, h->stub, CODE_STUB_BYTES);
	return 0;
}

static int read_memory(void *ctx, taddr_t addr, void *buf, size_t len)
{
	const struct place *p = ctx;

	if (addr < BASE || addr + len > BASE + ROOM)
		return -EFAULT;
	memcpy(buf, p->room + (addr - BASE), len);
	return 0;
}

static int write_memory(void *ctx, taddr_t addr, const void *buf, size_t len)
{
	(void)ctx;
	(void)addr;
	(void)buf;
	(void)len;
	return -EFAULT;
}

static void set_word(struct cpu_regs *regs, u32 nr, u64 value)
{
	memcpy(regs->bytes + nr * sizeof(value), &value, sizeof(value));
}

/* The piece, which goes on behind the word that x17 names. */
static void visit(struct place *p, const struct cpu *cpu, struct cpu_regs *regs, bool is_call)
{
	taddr_t at = cpu_get_word(cpu, regs, 17);
	u32 index = 0;

	assert_int_equal(read_memory(p, at, &index, sizeof(index)), 0);
	p->sum += index;
	p->nr_visits++;
	p->nr_calls += is_call;
	set_word(regs, 16, 0x1616);
	set_word(regs, 17, 0x1717);
	cpu_set(cpu, regs, CPU_PC, at + sizeof(index));
}

/* ldr of a literal is not emulated. False: the instruction at pc is another one. */
static bool load_literal(struct place *p, const struct cpu *cpu, struct cpu_regs *regs, u32 insn)
{
	taddr_t pc = cpu_get(cpu, regs, CPU_PC);
	u64 value = 0;

	if (insn >> 24 != 0x58)
		return false;
	assert_int_equal(read_memory(p, pc + (insn >> 5 & 0x7ffff) * 4 - (insn >> 23 & 1) * (1 << 21), &value,
				     sizeof(value)),
			 0);
	set_word(regs, insn & 31, value);
	cpu_set(cpu, regs, CPU_PC, pc + 4);
	return true;
}

/* Call the function with @a and @b. Returns its result. */
static u64 run(struct place *p, u64 a, u64 b)
{
	const struct cpu_memory memory = { p, read_memory, write_memory };
	const struct cpu *cpu = cpu_find(EM_AARCH64, 8, false);
	struct cpu_regs regs = { .size = cpu->regs_size };

	cpu_set(cpu, &regs, CPU_PC, BASE + FUNCTION);
	cpu_set(cpu, &regs, CPU_LINK, BASE + CALLER);
	cpu_set(cpu, &regs, CPU_ARG1, a);
	cpu_set(cpu, &regs, CPU_ARG2, b);
	for (u32 i = 0; i < MAX_STEPS && cpu_get(cpu, &regs, CPU_PC) != BASE + CALLER; i++) {
		taddr_t pc = cpu_get(cpu, &regs, CPU_PC);
		u8 code[4];
		u32 insn;

		if (pc == BASE + PIECE || pc == BASE + PIECE_CALL) {
			visit(p, cpu, &regs, pc == BASE + PIECE_CALL);
			continue;
		}
		assert_int_equal(read_memory(p, pc, code, sizeof(code)), 0);
		memcpy(&insn, code, sizeof(insn));
		if (!load_literal(p, cpu, &regs, insn))
			assert_int_equal(cpu_emulate(cpu, &regs, code, sizeof(code), &memory), 0);
	}
	assert_true(cpu_get(cpu, &regs, CPU_PC) == BASE + CALLER);
	return cpu_get(cpu, &regs, CPU_RESULT);
}

/* The first instruction of a function is moved, here also a branch, which leads to where it did. */
static void test_entry(void **state)
{
	static const u32 codes[][4] = { { ADD, RET }, { 0xb4000060 /* cbz x0, 12 */, ADD, RET, RET } };
	const struct request q = { CODE_ENTRY, 0, 4, { 5 }, 1 };
	const char *why;

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct place *p = place_new(codes[i], 4);

		assert_int_equal(hook(p, &q, &why), 0);
		assert_int_equal(run(p, 3, 4), 7);
		assert_int_equal(run(p, 0, 4), i ? 0 : 4);
		assert_int_equal(p->sum, 10);
		assert_int_equal(p->nr_calls, 2);
		free(p);
	}
}

/* Several functions return at one instruction: the piece hears of each of them. */
static void test_ret(void **state)
{
	static const u32 code[] = { ADD, RET };
	const struct request q = { CODE_RET, 1, 2, { 3, 50, 0x30700 }, 3 };
	const char *why;
	struct place *p = place_new(code, 2);

	(void)state;
	assert_int_equal(hook(p, &q, &why), 0);
	assert_int_equal(run(p, 3, 4), 7);
	assert_int_equal(p->sum, 0x30735);
	assert_int_equal(p->nr_visits, 3);
	assert_int_equal(p->nr_calls, 0);
	free(p);
}

/* A call leads to the stub, which goes on to the function that was meant: it returns behind the call. */
static void test_call(void **state)
{
	/* mov x2, x30; bl 12; mov x30, x2; ret; add x0, x0, x1; ret */
	static const u32 code[] = { 0xaa1e03e2, 0x94000003, 0xaa0203fe, RET, ADD, RET };
	const struct request q = { CODE_CALL, 1, 2, { 9 }, 1 };
	const char *why;
	struct place *p = place_new(code, 6);

	(void)state;
	assert_int_equal(hook(p, &q, &why), 0);
	assert_int_equal(run(p, 3, 4), 7);
	assert_int_equal(p->sum, 9);
	assert_int_equal(p->nr_calls, 0);
	free(p);
}

/* A call whose target is too far from the stub for a jump: its address is in the stub. */
static void test_far_call(void **state)
{
	/* bl of 127 MiB further */
	static const u32 code[] = { 0x94000000 | 127 << 18 };
	const struct code_site site = { .kind = CODE_CALL,
					.addr = BASE,
					.start = BASE,
					.body = (const u8 *)code,
					.len = sizeof(code),
					.indexes = (const u32[]){ 9 },
					.nr_indexes = 1 };
	const u32 load = 0x58000050, jump = 0xd61f0200;
	struct code_hook h;
	const char *why;
	u64 target;

	(void)state;
	assert_int_equal(code_aarch64.hook(&h, &site, BASE - (100 << 20), BASE - (100 << 20) - 256, &why), 0);
	assert_memory_equal(h.stub + 16, &load, sizeof(load));
	assert_memory_equal(h.stub + 20, &jump, sizeof(jump));
	memcpy(&target, h.stub + 24, sizeof(target));
	assert_true(target == BASE + (127 << 20));
	assert_int_equal(code_aarch64.hook(&h, &site, BASE - (129 << 20), BASE - (129 << 20) - 256, &why),
			 -ENOTSUP);
	assert_string_equal(why, "no room for code is near it");
}

static void refused(const struct request *q, u32 insn, const char *reason)
{
	struct place *p = place_new(&insn, 1);
	const char *why = "";

	assert_int_equal(hook(p, q, &why), -ENOTSUP);
	assert_string_equal(why, reason);
	free(p);
}

static void test_refused(void **state)
{
	struct request q = { CODE_ENTRY, 0, 1, { 1 }, 1 };
	const u32 bl = 0x94000010, brk = 0xd4200000;

	(void)state;
	refused(&q, bl, "its first instruction cannot be moved");
	refused(&q, brk, "its first instruction cannot be moved");
	q.kind = CODE_CALL;
	refused(&q, NOP, "it is no call");
	q.kind = CODE_RET;
	refused(&q, NOP, "it does not return there");
	q.nr_indexes = 17;
	refused(&q, RET, "too many functions return there");
	q.nr = 0;
	refused(&q, RET, "its code cannot be decoded");
}

/* A breakpoint of a debugger, or of the kernel; and one on a jump of ours. */
static void test_breakpoints(void **state)
{
	const u8 debugger[] = { 0x00, 0x00, 0x20, 0xd4 }, kernel[] = { 0xa0, 0x00, 0x20, 0xd4 };
	const u8 svc[] = { 0x01, 0x00, 0x00, 0xd4 }, jump[] = { 0x05, 0x00, 0x00, 0x14 };

	(void)state;
	assert_true(code_aarch64.is_breakpoint(debugger) && code_aarch64.is_breakpoint(kernel));
	assert_false(code_aarch64.is_breakpoint(svc) || code_aarch64.is_breakpoint(jump));
	assert_true(code_aarch64.is_under_breakpoint(kernel, jump, 4));
	assert_false(code_aarch64.is_under_breakpoint(svc, jump, 4));
}

/* Jumps and calls, also backwards. */
static void test_targets(void **state)
{
	const u8 jump[] = { 0x05, 0x00, 0x00, 0x14 }, call[] = { 0xff, 0xff, 0xff, 0x97 };
	const u8 other[] = { 0x1f, 0x20, 0x03, 0xd5 };

	(void)state;
	assert_true(code_aarch64.jump_target(0x1000, jump) == 0x1014);
	assert_true(code_aarch64.jump_target(0x1000, call) == 0xffc);
	assert_true(code_aarch64.jump_target(0x1000, other) == 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_entry),	    cmocka_unit_test(test_ret),
		cmocka_unit_test(test_call),	    cmocka_unit_test(test_far_call),
		cmocka_unit_test(test_refused),	    cmocka_unit_test(test_targets),
		cmocka_unit_test(test_breakpoints),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
