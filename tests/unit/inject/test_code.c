/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Functions whose first bytes become a jump: they still do the same, or are refused. */
#include "user/inject/code.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "inline/layout.h"

enum { ROOM = 4096, FUNCTION = 0, STUB = 2048, WAYS = 3072, PIECE = 3200, PIECE_CALL = PIECE + 64 };

#if defined(__x86_64__)

/* Adds up what stubs push: push %rax; mov 16(%rsp),%rax; add %rax,0xf3(%rip), the sum at PIECE + 256; pop %rax; ret */
static const u8 piece[] = { 0x50, 0x48, 0x8b, 0x44, 0x24, 0x10, 0x48, 0x01,
			    0x05, 0xf3, 0x00, 0x00, 0x00, 0x58, 0xc3 };
/* Adds up what stubs push that jump here, at PIECE_CALL: ...; pop %rax; lea 16(%rsp),%rsp; jmp *-16(%rsp) */
static const u8 piece_call[] = { 0x50, 0x48, 0x8b, 0x44, 0x24, 0x10, 0x48, 0x01, 0x05, 0xb3, 0x00, 0x00,
				 0x00, 0x58, 0x48, 0x8d, 0x64, 0x24, 0x10, 0xff, 0x64, 0x24, 0xf0 };

struct place {
	u8 *room; /* executable */
	u64 *sum;
};

static void place_init(struct place *p, const u8 *code, size_t len)
{
	struct code_ways ways;

	p->room = mmap(NULL, ROOM, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(p->room, MAP_FAILED);
	memcpy(p->room + FUNCTION, code, len);
	memcpy(p->room + PIECE, piece, sizeof(piece));
	memcpy(p->room + PIECE_CALL, piece_call, sizeof(piece_call));
	ways.enter = (u64)(uintptr_t)(p->room + PIECE);
	ways.enter_call = (u64)(uintptr_t)(p->room + PIECE_CALL);
	memcpy(p->room + WAYS, &ways, sizeof(ways));
	p->sum = (u64 *)(uintptr_t)(p->room + PIECE + 256);
}

struct request {
	enum code_kind kind;
	size_t at, len, padding, hop;
	u32 indexes[3], nr_indexes;
	const struct call_probe *sampled;
};

static int hook_as(struct place *p, const struct request *q, const char **why)
{
	const taddr_t base = (u64)(uintptr_t)p->room;
	const struct code_site site = { .kind = q->kind,
					.addr = base + q->at,
					.start = q->kind == CODE_RET ? base : base + q->at,
					.body = p->room + (q->kind == CODE_RET ? 0 : q->at),
					.len = q->len,
					.padding = q->padding,
					.hop = q->hop ? base + q->hop : 0,
					.sampled = q->sampled,
					.indexes = q->indexes,
					.nr_indexes = q->nr_indexes };
	struct code_hook h;
	int err = code_hook(&h, &site, base + STUB, base + WAYS, why);

	if (err)
		return err;
	memcpy(p->room + STUB, h.stub, sizeof(h.stub));
	memcpy((u8 *)(uintptr_t)h.addr, h.new, h.len);
	if (q->hop)
		memcpy(p->room + q->hop, h.from_hop, sizeof(h.from_hop));
	return 0;
}

static int hook(struct place *p, enum code_kind kind, size_t at, size_t len, u32 index, const char **why)
{
	const struct request q = {
		.kind = kind, .at = at, .len = len, .indexes = { index }, .nr_indexes = 1
	};

	return hook_as(p, &q, why);
}

typedef u64 function(u64 a, u64 b);
typedef u64 function3(u64 a, u64 b, u64 c);

static u64 run(const struct place *p, u64 a, u64 b)
{
	function *f = (function *)(uintptr_t)p->room;

	return f(a, b);
}

/* endbr64; test %rdi,%rdi; je +4; lea (%rdi,%rsi),%rax; ret; mov 8(%rip),%eax; ret; ...: 7 */
static const u8 branching[] = {
	0xf3, 0x0f, 0x1e, 0xfa, 0x48, 0x85, 0xff, 0x74, 0x05, 0x48, 0x8d, 0x04, 0x37,
	0xc3, 0x8b, 0x05, 0x02, 0x00, 0x00, 0x00, 0xc3, 0x90, 0x07, 0x00, 0x00, 0x00
};

static void test_entry(void **state)
{
	struct place p;
	const char *why;

	(void)state;
	place_init(&p, branching, sizeof(branching));
	assert_int_equal(hook(&p, CODE_ENTRY, 0, 21, 5, &why), 0);
	assert_int_equal(run(&p, 3, 4), 7);
	assert_int_equal(run(&p, 40, 2), 42);
	assert_int_equal(run(&p, 0, 4), 7);
	assert_int_equal(*p.sum, 15);
}

/* A branch and a memory operand relative to the instruction are among the first bytes. */
static void test_moved(void **state)
{
	/* test %edi,%edi; je +7; mov 8(%rip),%eax; ret; mov $9,%eax; ret; 7 */
	static const u8 code[] = { 0x85, 0xff, 0x74, 0x07, 0x8b, 0x05, 0x07, 0x00, 0x00, 0x00, 0xc3,
				   0xb8, 0x09, 0x00, 0x00, 0x00, 0xc3, 0x07, 0x00, 0x00, 0x00 };
	struct place p;
	const char *why;

	(void)state;
	place_init(&p, code, sizeof(code));
	assert_int_equal(hook(&p, CODE_ENTRY, 0, 17, 3, &why), 0);
	assert_int_equal(run(&p, 1, 0), 7);
	assert_int_equal(run(&p, 0, 0), 9);
	assert_int_equal(*p.sum, 6);
}

static void refused(const u8 *code, size_t len, const char *reason)
{
	struct place p;
	const char *why = "";

	place_init(&p, code, len);
	assert_int_equal(hook(&p, CODE_ENTRY, 0, len, 1, &why), -ENOTSUP);
	assert_string_equal(why, reason);
}

static void test_refused(void **state)
{
	static const u8 too_short[] = { 0x31, 0xc0, 0xc3, 0x90, 0x90, 0x90 };
	/* call *%rax; nop; nop; nop; ret */
	static const u8 calls[] = { 0xff, 0xd0, 0x90, 0x90, 0x90, 0xc3 };
	/* dec %edi (2 bytes); jne -4 + 2: to the second instruction; ... */
	static const u8 loops[] = { 0x31, 0xc0, 0xff, 0xcf, 0x85, 0xff, 0x75, 0xfa, 0xc3 };
	/* jrcxz +0; ret */
	static const u8 odd[] = { 0xe3, 0x00, 0x90, 0x90, 0x90, 0xc3 };

	(void)state;
	refused(too_short, sizeof(too_short), "it is too short");
	refused(calls, sizeof(calls), "its first instructions cannot be moved");
	refused(loops, sizeof(loops), "it jumps to its first instructions");
	refused(odd, sizeof(odd), "its first instructions cannot be moved");
}

/* A call that is moved returns to where it did: the called function returns its return address. */
static void test_moved_call(void **state)
{
	/* push %rcx; call 0x10; pop %rcx; add $2,%rax; ret; padding; 0x10: mov (%rsp),%rax; ret */
	static const u8 direct[] = { 0x51, 0xe8, 0x0a, 0x00, 0x00, 0x00, 0x59, 0x48, 0x83, 0xc0, 0x02,
				     0xc3, 0x90, 0x90, 0x90, 0x90, 0x48, 0x8b, 0x04, 0x24, 0xc3 };
	/* push %rcx; call *9(%rip): of 0x10; pop %rcx; add $2,%rax; ret; padding; 0x10: address of 0x18 */
	static const u8 through[] = { 0x51, 0xff, 0x15, 0x09, 0x00, 0x00, 0x00, 0x59, 0x48, 0x83,
				      0xc0, 0x02, 0xc3, 0x90, 0x90, 0x90, 0,	0,    0,    0,
				      0,    0,	  0,	0,    0x48, 0x8b, 0x04, 0x24, 0xc3 };
	struct place p;
	const char *why;
	u64 base, callee;

	(void)state;
	place_init(&p, direct, sizeof(direct));
	base = (u64)(uintptr_t)p.room;
	assert_int_equal(hook(&p, CODE_ENTRY, 0, 12, 5, &why), 0);
	assert_int_equal(run(&p, 0, 0), base + 6 + 2);
	assert_int_equal(*p.sum, 5);
	place_init(&p, through, sizeof(through));
	base = (u64)(uintptr_t)p.room;
	callee = base + 0x18;
	memcpy(p.room + 0x10, &callee, sizeof(callee));
	assert_int_equal(hook(&p, CODE_ENTRY, 0, 13, 5, &why), 0);
	assert_int_equal(run(&p, 0, 0), base + 7 + 2);
	assert_int_equal(*p.sum, 5);
}

/* The jump reaches into the padding behind a function that is too short, but not behind one that goes on there. */
static void test_padding(void **state)
{
	/* xor %eax,%eax; ret; padding */
	static const u8 code[] = { 0x31, 0xc0, 0xc3, 0xcc, 0xcc };
	const struct request entry = { CODE_ENTRY, .len = 3, .padding = 2, .indexes = { 4 },
				       .nr_indexes = 1 };
	const struct request little = { CODE_ENTRY, .len = 3, .padding = 1, .indexes = { 4 },
					.nr_indexes = 1 };
	const struct request inside = { CODE_ENTRY, .len = 4, .padding = 1, .indexes = { 4 },
					.nr_indexes = 1 };
	const struct request ret = { CODE_RET,	   .at = 2,	     .len = 3,
				     .padding = 2, .indexes = { 4 }, .nr_indexes = 1 };
	struct place p;
	const char *why;

	(void)state;
	place_init(&p, code, sizeof(code));
	assert_int_equal(hook_as(&p, &little, &why), -ENOTSUP);
	assert_string_equal(why, "it is too short");
	assert_int_equal(hook_as(&p, &inside, &why), -ENOTSUP);
	assert_int_equal(hook_as(&p, &entry, &why), 0);
	assert_int_equal(run(&p, 1, 2), 0);
	assert_int_equal(*p.sum, 4);
	place_init(&p, code, sizeof(code));
	assert_int_equal(hook_as(&p, &ret, &why), 0);
	assert_int_equal(run(&p, 1, 2), 0);
	assert_int_equal(*p.sum, 4);
}

/* A function of two bytes leads to the piece by way of padding near it. */
static void test_hop(void **state)
{
	/* jmp +2; another function: ret; nop; lea (%rdi,%rsi),%rax; ret */
	static const u8 code[] = { 0xeb, 0x02, 0xc3, 0x90, 0x48, 0x8d, 0x04, 0x37, 0xc3 };
	struct request q = { CODE_ENTRY, .len = 2, .hop = 100, .indexes = { 6 }, .nr_indexes = 1 };
	struct place p;
	const char *why;

	(void)state;
	place_init(&p, code, sizeof(code));
	assert_int_equal(hook_as(&p, &q, &why), 0);
	assert_memory_equal(p.room + 2, code + 2, sizeof(code) - 2);
	assert_int_equal(run(&p, 3, 4), 7);
	assert_int_equal(*p.sum, 6);
	place_init(&p, code, sizeof(code));
	q.hop = 2 + 128;
	assert_int_equal(hook_as(&p, &q, &why), -ENOTSUP);
	assert_string_equal(why, "no room for code is near it");
}

/* A ret that is jumped to has room for a hop where one byte of padding is behind it. */
static void test_hop_at_ret(void **state)
{
	/* lea (%rdi,%rsi),%rax; test %edi,%edi; je to the ret; inc %rax; ret; padding */
	static const u8 code[] = { 0x48, 0x8d, 0x04, 0x37, 0x85, 0xff, 0x74,
				   0x03, 0x48, 0xff, 0xc0, 0xc3, 0x90 };
	struct request q = { CODE_RET, .at = 11, .len = 12, .hop = 64, .indexes = { 8 }, .nr_indexes = 1 };
	struct place p;
	const char *why;

	(void)state;
	place_init(&p, code, sizeof(code));
	assert_int_equal(hook_as(&p, &q, &why), -ENOTSUP);
	q.padding = 1;
	assert_int_equal(hook_as(&p, &q, &why), 0);
	assert_int_equal(run(&p, 3, 4), 8);
	assert_int_equal(run(&p, 0, 4), 4);
	assert_int_equal(*p.sum, 16);
}

/* Several functions return at one instruction: the piece hears of each of them. */
static void test_shared_ret(void **state)
{
	/* lea (%rdi,%rsi),%rax; xor %edx,%edx; ret */
	static const u8 code[] = { 0x48, 0x8d, 0x04, 0x37, 0x31, 0xd2, 0xc3 };
	const struct request q = { CODE_RET, .at = 6, .len = sizeof(code), .indexes = { 3, 50, 700 },
				   .nr_indexes = 3 };
	struct place p;
	const char *why;

	(void)state;
	place_init(&p, code, sizeof(code));
	assert_int_equal(hook_as(&p, &q, &why), 0);
	assert_int_equal(run(&p, 3, 4), 7);
	assert_int_equal(*p.sum, 753);
}

/* The ret and what is before it are moved; both ways out are seen. */
static void test_ret(void **state)
{
	/* push %rbx; push %rbp; mov %rdi,%rax; add %rsi,%rax; pop %rbp; pop %rbx; ret */
	static const u8 code[] = { 0x53, 0x55, 0x48, 0x89, 0xf8, 0x48, 0x01, 0xf0, 0x5d, 0x5b, 0xc3 };
	/* test; je to the ret; ...: the ret has no room before it that is not jumped into */
	static const u8 jumped[] = { 0x85, 0xff, 0x74, 0x04, 0x31, 0xc0, 0x31, 0xd2,
				     0xc3, 0xb8, 0,    0,    0,	   0,	 0xc3 };
	struct place p;
	const char *why;

	(void)state;
	place_init(&p, code, sizeof(code));
	assert_int_equal(hook(&p, CODE_RET, 10, sizeof(code), 7, &why), 0);
	assert_int_equal(run(&p, 3, 4), 7);
	assert_int_equal(*p.sum, 7);
	place_init(&p, jumped, sizeof(jumped));
	assert_int_equal(hook(&p, CODE_RET, 8, sizeof(jumped), 7, &why), -ENOTSUP);
}

/* A call instruction leads to the stub, which goes on to the function that was meant. */
static void test_call(void **state)
{
	/* sub $8,%rsp; call +5; add $8,%rsp; ret; mov $5,%eax; ret */
	static const u8 code[] = { 0x48, 0x83, 0xec, 0x08, 0xe8, 0x05, 0x00, 0x00, 0x00, 0x48,
				   0x83, 0xc4, 0x08, 0xc3, 0xb8, 0x05, 0x00, 0x00, 0x00, 0xc3 };
	struct place p;
	const char *why;

	(void)state;
	place_init(&p, code, sizeof(code));
	assert_int_equal(hook(&p, CODE_CALL, 4, 5, 9, &why), 0);
	assert_int_equal(run(&p, 0, 0), 5);
	assert_int_equal(*p.sum, 9);
}

/* A function with an old block, a number and a size counts the bytes, and is seen if the block may be sampled. */
static void test_sampled(void **state)
{
	/* lea (%rdi,%rsi),%rax; nop; ret */
	static const u8 code[] = { 0x48, 0x8d, 0x04, 0x37, 0x90, 0xc3 };
	static const struct call_probe probe = {
		.kind = ALLOC_REALLOC, .old_arg = 1, .count_arg = 2, .size_arg = 3
	};
	const struct request q = {
		.len = sizeof(code), .indexes = { 7 }, .nr_indexes = 1, .sampled = &probe
	};
	u8 *counters = calloc(PIECE_FILTER_BYTES, 1);
	struct piece_key *keys = calloc(PIECE_MAX_THREADS, sizeof(*keys)), *own;
	struct place p;
	struct code_ways *ways;
	const char *why;
	u64 self;

	(void)state;
	assert_true(counters && keys);
	__asm__("mov %%fs:0, %0" : "=r"(self));
	own = &keys[(u32)(self * PIECE_HASH >> PIECE_HASH_SHIFT) % PIECE_MAX_THREADS];
	*own = (struct piece_key){ .key = self | 1, .left = 1000 };
	place_init(&p, code, sizeof(code));
	ways = (struct code_ways *)(p.room + WAYS);
	ways->keys = (uintptr_t)keys;
	ways->counters = (uintptr_t)counters;
	assert_int_equal(hook_as(&p, &q, &why), 0);
	assert_int_equal(((function3 *)(uintptr_t)p.room)(0x1000, 3, 5), 0x1003);
	assert_int_equal(*p.sum, 0);
	assert_int_equal(own->left, 1000 - 3 * 5 - 1);
	counters[0x1000 >> PIECE_GRAIN_BITS] = 1;
	assert_int_equal(((function3 *)(uintptr_t)p.room)(0x1000, 3, 5), 0x1003);
	assert_int_equal(*p.sum, 7);
	free(counters);
	free(keys);
}

#else

static void test_entry(void **state)
{
	(void)state;
	print_message("skipped: code of x86_64\n");
}
#define test_moved	test_entry
#define test_refused	test_entry
#define test_ret	test_entry
#define test_call	test_entry
#define test_moved_call test_entry
#define test_padding	test_entry
#define test_shared_ret test_entry
#define test_hop	test_entry
#define test_hop_at_ret test_entry
#define test_sampled	test_entry

#endif

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_entry),	cmocka_unit_test(test_moved),
		cmocka_unit_test(test_refused), cmocka_unit_test(test_ret),
		cmocka_unit_test(test_call),	cmocka_unit_test(test_moved_call),
		cmocka_unit_test(test_padding), cmocka_unit_test(test_shared_ret),
		cmocka_unit_test(test_hop),	cmocka_unit_test(test_hop_at_ret),
		cmocka_unit_test(test_sampled),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
