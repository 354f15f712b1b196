/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The tracer's adaptor of call/life.h: registers and words of different CPUs. tests/unit/call/ has the rules. */
#include "fallback/inflight.h"

#include <elf.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

enum { MAX_EVENTS = 16, STACK = 0x10000, CODE = 0x400000, LIBRARY = 0x700000, LIBRARY_BYTES = 0x10000 };
enum { MALLOC, REALLOC, OUT, FREE, MAP, NR_FNS };

#define OWN .own_after = LIBRARY_BYTES
static const struct call_probe probes[NR_FNS] = {
	[MALLOC] = { .fn = 1, .kind = ALLOC_MALLOC, .flags = PROBE_RETURNS, .size_arg = 1, OWN },
	[REALLOC] = { .fn = 2,
		      .kind = ALLOC_REALLOC,
		      .flags = PROBE_RETURNS,
		      .size_arg = 2,
		      .old_arg = 1,
		      OWN },
	[OUT] = { .fn = 3, .kind = ALLOC_OUT, .flags = PROBE_RETURNS, .size_arg = 3, .out_arg = 1, OWN },
	[FREE] = { .fn = 4, .kind = ALLOC_FREE, .old_arg = 1, OWN },
	[MAP] = { .fn = 5, .kind = ALLOC_MMAP, .flags = PROBE_RETURNS | PROBE_32BIT, .size_arg = 2, OWN },
};

struct world {
	struct inflight thread;
	const struct cpu *cpu;
	struct cpu_regs regs;
	struct call_losses losses;
	struct heap_event events[MAX_EVENTS];
	size_t nr_events;
	u8 bytes[512]; /* of stack, below STACK */
	bool is_full;
};

static u8 *byte_at(struct world *w, taddr_t addr)
{
	taddr_t bottom = STACK - sizeof(w->bytes);

	return addr >= bottom && addr < STACK ? w->bytes + (addr - bottom) : NULL;
}

static int read_memory(void *ctx, taddr_t addr, void *buf, size_t len)
{
	const u8 *bytes = byte_at(ctx, addr);

	if (!bytes)
		return -EFAULT;
	memcpy(buf, bytes, len);
	return 0;
}

static bool send(void *ctx, struct heap_event *ev)
{
	struct world *w = ctx;

	if (w->is_full)
		return false;
	assert_true(w->nr_events < MAX_EVENTS);
	w->events[w->nr_events++] = *ev;
	return true;
}

static u64 take_stack(void *ctx)
{
	(void)ctx;
	return 77;
}

static struct call at(struct world *w, struct cpu_memory *memory, u32 probe)
{
	*memory = (struct cpu_memory){ .ctx = w, .read = read_memory };
	return (struct call){ .thread = &w->thread,
			      .probes = probes,
			      .nr_probes = NR_FNS,
			      .probe = probe,
			      .cpu = w->cpu,
			      .regs = &w->regs,
			      .memory = memory,
			      .losses = &w->losses,
			      .ctx = w,
			      .send = send,
			      .take_stack = take_stack };
}

static void put_word(struct world *w, taddr_t addr, u64 word)
{
	memcpy(byte_at(w, addr), &word, w->cpu->word_size);
}

static void enter(struct world *w, u32 probe, taddr_t sp, taddr_t ret, const u64 args[3])
{
	struct cpu_memory memory;
	struct call c = at(w, &memory, probe);

	put_word(w, sp, ret);
	cpu_set(w->cpu, &w->regs, CPU_PC, LIBRARY + probe * 256);
	cpu_set(w->cpu, &w->regs, CPU_SP, sp);
	for (u32 i = 0; i < 3; i++)
		if (w->cpu->args_on_stack)
			put_word(w, sp + (i + 1) * w->cpu->word_size, args[i]);
		else
			cpu_set(w->cpu, &w->regs, CPU_ARG1 + i, args[i]);
	if (probe == FREE)
		inflight_enter_free(&c);
	else
		inflight_enter_alloc(&c);
}

static void leave(struct world *w, u32 probe, taddr_t sp, u64 result)
{
	struct cpu_memory memory;
	struct call c = at(w, &memory, probe);

	cpu_set(w->cpu, &w->regs, CPU_RESULT, result);
	inflight_leave(&c, sp);
}

static void check(const struct world *w, size_t i, u8 kind, u16 fn, u64 addr, u64 size)
{
	assert_true(i < w->nr_events);
	assert_int_equal(w->events[i].h.kind, kind);
	assert_int_equal(w->events[i].h.fn, fn);
	assert_int_equal(w->events[i].addr, addr);
	assert_int_equal(w->events[i].size, size);
}

static const taddr_t top = STACK - 64, stored = STACK - 128;

/* Where arguments, results and words in memory are. */
static void check_cpu(struct world *w)
{
	enter(w, MALLOC, top, CODE, (u64[]){ 40, 1, 2 });
	leave(w, MALLOC, top, 0x1000);
	enter(w, REALLOC, top, CODE, (u64[]){ 0x1000, 50, 2 });
	leave(w, REALLOC, top, 0x2000);
	enter(w, OUT, top, CODE, (u64[]){ stored, 64, 70 });
	put_word(w, stored, 0x3000);
	leave(w, OUT, top, 0);
	enter(w, FREE, top, CODE, (u64[]){ 0x3000, 1, 2 });
	assert_int_equal(w->nr_events, 5);
	check(w, 0, EVENT_ALLOC, 1, 0x1000, 40);
	check(w, 1, EVENT_REALLOC_BEGIN, 2, 0, 50);
	check(w, 2, EVENT_REALLOC_END, 2, 0x2000, 50);
	check(w, 3, EVENT_ALLOC, 3, 0x3000, 70);
	check(w, 4, EVENT_FREE, 4, 0x3000, 0);
	assert_int_equal(w->events[0].stack, 77);
	assert_int_equal(w->events[4].stack, STACK_NONE);
	assert_int_equal(w->thread.nr, 0);
}

static void reads_registers(void **state)
{
	struct world w = { .cpu = cpu_find(EM_X86_64, 8, false) };

	(void)state;
	check_cpu(&w);
}

/* i386 has its arguments on the stack, and words of 4 bytes. */
static void reads_stack(void **state)
{
	struct world w = { .cpu = cpu_find(EM_386, 4, false) };

	(void)state;
	check_cpu(&w);
	enter(&w, MAP, top, CODE, (u64[]){ 0, 4096, 0 });
	leave(&w, MAP, top, 0xffffffff);
	check(&w, 5, EVENT_ALLOC, 5, 0, 4096);
}

/* At a call instruction, one word above the stack pointer of the called function. */
static void knows_internal_calls(void **state)
{
	struct world w = { .cpu = cpu_find(EM_X86_64, 8, false) };
	struct cpu_memory memory;
	struct call c = at(&w, &memory, FREE);

	(void)state;
	cpu_set(w.cpu, &w.regs, CPU_SP, top + 8);
	inflight_internal_call(&c);
	enter(&w, FREE, top, LIBRARY + 9, (u64[]){ 0x1000, 0, 0 });
	assert_int_equal(w.nr_events, 0);
	enter(&w, FREE, top, CODE, (u64[]){ 0x1000, 0, 0 });
	assert_int_equal(w.nr_events, 1);
}

/* No room for events, calls that never end, unreadable memory, probes that do not exist. */
static void counts_losses(void **state)
{
	struct world w = { .cpu = cpu_find(EM_X86_64, 8, false), .is_full = true };
	struct cpu_memory memory;
	struct call c = at(&w, &memory, NR_FNS);

	(void)state;
	inflight_enter_alloc(&c);
	inflight_enter_free(&c);
	inflight_internal_call(&c);
	inflight_leave(&c, top);
	assert_int_equal(w.thread.nr, 0);
	enter(&w, OUT, top, CODE, (u64[]){ 8, 64, 70 });
	leave(&w, OUT, top, 0);
	enter(&w, FREE, top, CODE, (u64[]){ 0x1000, 0, 0 });
	enter(&w, MALLOC, top, CODE, (u64[]){ 40, 0, 0 });
	inflight_end(&c);
	assert_int_equal(w.thread.nr, 0);
	assert_int_equal(w.losses.allocs, 1);
	assert_int_equal(w.losses.frees, 1);
	assert_int_equal(w.losses.abandoned, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_registers),
		cmocka_unit_test(reads_stack),
		cmocka_unit_test(knows_internal_calls),
		cmocka_unit_test(counts_losses),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
