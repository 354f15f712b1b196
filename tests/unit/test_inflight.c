/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Calls in flight: a thread of no process walks through its allocator, and the events must be those of its requests. */
#include "fallback/inflight.h"

#include <elf.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

enum { MAX_EVENTS = 32, STACK = 0x10000, CODE = 0x400000, LIBRARY = 0x700000, LIBRARY_BYTES = 0x10000 };
enum { MALLOC, CALLOC, REALLOC, OUT, FREE, NEW, DELETE, NR_FNS };

/* A library of allocators, each function 256 bytes from the last one. */
static const struct call_probe probes[NR_FNS] = {
#define OWN(fn) .own_before = (fn)*256, .own_after = LIBRARY_BYTES - (fn)*256
	[MALLOC] = { .fn = 1, .kind = CALL_MALLOC, .flags = CALL_RETURNS, .size_arg = 1, OWN(MALLOC) },
	[CALLOC] = { .fn = 2,
		     .kind = CALL_MALLOC,
		     .flags = CALL_RETURNS,
		     .size_arg = 2,
		     .count_arg = 1,
		     OWN(CALLOC) },
	[REALLOC] = { .fn = 3,
		      .kind = CALL_REALLOC,
		      .flags = CALL_RETURNS,
		      .size_arg = 2,
		      .old_arg = 1,
		      OWN(REALLOC) },
	[OUT] = { .fn = 4, .kind = CALL_OUT, .flags = CALL_RETURNS, .size_arg = 3, .out_arg = 1, OWN(OUT) },
	[FREE] = { .fn = 5, .kind = CALL_FREE, .old_arg = 1, OWN(FREE) },
	/* Delegates have their own body only. */
	[NEW] = { .fn = 6,
		  .kind = CALL_MALLOC,
		  .flags = CALL_DELEGATES | CALL_THROWS,
		  .size_arg = 1,
		  .own_after = 256 },
	[DELETE] = { .fn = 7, .kind = CALL_FREE, .flags = CALL_DELEGATES, .old_arg = 1, .own_after = 256 },
#undef OWN
};

struct world {
	struct inflight thread;
	struct cpu_regs regs;
	struct call_losses losses;
	struct heap_event events[MAX_EVENTS];
	size_t nr_events;
	u64 words[64]; /* of stack, from STACK - sizeof(words) on */
	u64 out;       /* at address 8 */
	bool is_full;
};

static int read_memory(void *ctx, taddr_t addr, void *buf, size_t len)
{
	struct world *w = ctx;
	taddr_t bottom = STACK - sizeof(w->words);

	if (addr == 8)
		memcpy(buf, &w->out, len);
	else if (addr >= bottom && addr + len <= STACK)
		memcpy(buf, (const u8 *)w->words + (addr - bottom), len);
	else
		return -EFAULT;
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

static struct inflight_call at(struct world *w, struct cpu_memory *memory, u32 probe)
{
	*memory = (struct cpu_memory){ .ctx = w, .read = read_memory };
	return (struct inflight_call){ .thread = &w->thread,
				       .probes = probes,
				       .nr_probes = NR_FNS,
				       .probe = probe,
				       .cpu = cpu_find(EM_X86_64, 8, false),
				       .regs = &w->regs,
				       .memory = memory,
				       .losses = &w->losses,
				       .ctx = w,
				       .send = send,
				       .take_stack = take_stack };
}

/* A call with @args, its return address @ret at @sp. */
static void enter(struct world *w, u32 probe, taddr_t sp, taddr_t ret, u64 arg1, u64 arg2)
{
	const struct cpu *cpu = cpu_find(EM_X86_64, 8, false);
	struct cpu_memory memory;
	struct inflight_call c = at(w, &memory, probe);

	w->words[(sp - (STACK - sizeof(w->words))) / 8] = ret;
	cpu->set(&w->regs, CPU_PC, LIBRARY + probe * 256);
	cpu->set(&w->regs, CPU_SP, sp);
	cpu->set(&w->regs, CPU_ARG1, arg1);
	cpu->set(&w->regs, CPU_ARG2, arg2);
	cpu->set(&w->regs, CPU_ARG3, 300);
	if (probe == FREE || probe == DELETE)
		inflight_enter_free(&c);
	else
		inflight_enter_alloc(&c);
}

static void leave(struct world *w, u32 probe, taddr_t sp, u64 result)
{
	struct cpu_memory memory;
	struct inflight_call c = at(w, &memory, probe);

	cpu_find(EM_X86_64, 8, false)->set(&w->regs, CPU_RESULT, result);
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

static const taddr_t top = STACK - 64;

static void calls_malloc_free(void **state)
{
	struct world w = { .nr_events = 0 };

	(void)state;
	enter(&w, MALLOC, top, CODE, 40, 0);
	leave(&w, MALLOC, top, 0x1000);
	enter(&w, FREE, top, CODE + 9, 0x1000, 0);
	enter(&w, FREE, top, CODE + 18, 0, 0);
	assert_int_equal(w.nr_events, 2);
	check(&w, 0, EVENT_ALLOC, 1, 0x1000, 40);
	assert_int_equal(w.events[0].stack, 77);
	check(&w, 1, EVENT_FREE, 5, 0x1000, 0);
	assert_int_equal(w.events[1].h.flags, EVENT_TEMPORARY);
	assert_int_equal(w.thread.nr, 0);
}

/* Overflow of nmemb * size; a malloc called by calloc, and one that it jumps to. */
static void calls_calloc(void **state)
{
	struct world w = { .nr_events = 0 };

	(void)state;
	enter(&w, CALLOC, top, CODE, 10, 6);
	enter(&w, MALLOC, top - 32, LIBRARY + CALLOC * 256 + 20, 60, 0);
	leave(&w, MALLOC, top - 32, 0x1000);
	leave(&w, CALLOC, top, 0x1000);
	enter(&w, CALLOC, top, CODE, 1ULL << 40, 1ULL << 40);
	leave(&w, CALLOC, top, 0);
	enter(&w, CALLOC, top, CODE, 2, 8);
	enter(&w, MALLOC, top, CODE, 16, 0);
	leave(&w, MALLOC, top, 0x2000);
	leave(&w, CALLOC, top, 0x2000);
	assert_int_equal(w.nr_events, 3);
	check(&w, 0, EVENT_ALLOC, 2, 0x1000, 60);
	check(&w, 1, EVENT_ALLOC, 2, 0, ~0ULL);
	check(&w, 2, EVENT_ALLOC, 2, 0x2000, 16);
}

static void calls_realloc(void **state)
{
	struct world w = { .nr_events = 0 };

	(void)state;
	enter(&w, REALLOC, top, CODE, 0x1000, 50);
	enter(&w, MALLOC, top - 16, LIBRARY + 5000, 50, 0);
	leave(&w, MALLOC, top - 16, 0x2000);
	enter(&w, FREE, top - 16, LIBRARY + 5010, 0x1000, 0);
	leave(&w, REALLOC, top, 0x2000);
	assert_int_equal(w.nr_events, 2);
	check(&w, 0, EVENT_REALLOC_BEGIN, 3, 0, 50);
	check(&w, 1, EVENT_REALLOC_END, 3, 0x2000, 50);
	assert_int_equal(w.events[1].old_addr, 0x1000);
	/* Its end does not fit: the old block's free is lost. */
	enter(&w, REALLOC, top, CODE, 0x2000, 60);
	w.is_full = true;
	leave(&w, REALLOC, top, 0x3000);
	assert_int_equal(w.losses.frees, 1);
}

static void calls_out(void **state)
{
	struct world w = { .out = 0x4000 };

	(void)state;
	enter(&w, OUT, top, CODE, 8, 64);
	leave(&w, OUT, top, 0);
	enter(&w, OUT, top, CODE, 8, 64);
	leave(&w, OUT, top, ENOMEM);
	check(&w, 0, EVENT_ALLOC, 4, 0x4000, 300);
	check(&w, 1, EVENT_ALLOC, 4, 0, 300);
}

/* The malloc inside tells the result; one that fails may be tried again, as new_handler does. */
static void calls_new(void **state)
{
	const taddr_t body = LIBRARY + NEW * 256 + 10;
	struct world w = { .nr_events = 0 };

	(void)state;
	enter(&w, NEW, top, CODE, 24, 0);
	enter(&w, MALLOC, top - 24, body, 24, 0);
	leave(&w, MALLOC, top - 24, 0);
	enter(&w, MALLOC, top - 24, body, 24, 0);
	leave(&w, MALLOC, top - 24, 0x5000);
	assert_int_equal(w.nr_events, 2);
	check(&w, 0, EVENT_ALLOC, 6, 0, 24);
	check(&w, 1, EVENT_ALLOC, 6, 0x5000, 24);
	assert_int_equal(w.events[1].h.flags, EVENT_RETRY);
	assert_int_equal(w.thread.nr, 0);
	enter(&w, DELETE, top, CODE, 0x5000, 0);
	enter(&w, FREE, top - 24, LIBRARY + DELETE * 256 + 10, 0x5000, 0);
	assert_int_equal(w.nr_events, 3);
	check(&w, 2, EVENT_FREE, 7, 0x5000, 0);
	assert_int_equal(w.thread.nr, 0);
}

/* longjmp out of malloc, an exception out of new: the next call from above shows it. */
static void calls_jumps(void **state)
{
	struct world w = { .nr_events = 0 };

	(void)state;
	enter(&w, MALLOC, top - 128, CODE, 10, 0);
	enter(&w, MALLOC, top, CODE + 50, 20, 0);
	leave(&w, MALLOC, top, 0x6000);
	assert_int_equal(w.losses.abandoned, 1);
	enter(&w, NEW, top - 128, CODE, 30, 0);
	enter(&w, MALLOC, top, CODE + 50, 20, 0);
	leave(&w, MALLOC, top, 0x7000);
	assert_int_equal(w.losses.abandoned, 1);
	check(&w, 1, EVENT_ALLOC, 6, 0, 30);
	assert_int_equal(w.nr_events, 3);
}

/* A signal handler's malloc inside a malloc is a request of its own. */
static void calls_handler(void **state)
{
	struct world w = { .nr_events = 0 };

	(void)state;
	enter(&w, MALLOC, top, CODE, 10, 0);
	enter(&w, MALLOC, top - 200, CODE + 500, 20, 0);
	leave(&w, MALLOC, top - 200, 0x1000);
	leave(&w, MALLOC, top, 0x2000);
	check(&w, 0, EVENT_ALLOC, 1, 0x1000, 20);
	check(&w, 1, EVENT_ALLOC, 1, 0x2000, 10);
	assert_int_equal(w.losses.abandoned, 0);
}

/* More at once than there is room for, unreadable memory, probes that do not exist: all within bounds. */
static void calls_odd(void **state)
{
	struct world w = { .nr_events = 0 };
	struct cpu_memory memory;
	struct inflight_call c;

	(void)state;
	for (taddr_t sp = top; sp > top - 400; sp -= 40)
		enter(&w, MALLOC, sp, CODE + sp, 10, 0);
	assert_true(w.thread.nr <= INFLIGHT_LEVELS);
	c = at(&w, &memory, NR_FNS);
	inflight_enter_alloc(&c);
	inflight_enter_free(&c);
	inflight_leave(&c, top);
	c = at(&w, &memory, MALLOC);
	inflight_end(&c);
	assert_int_equal(w.thread.nr, 0);
	assert_int_equal(w.losses.abandoned, 10);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(calls_malloc_free), cmocka_unit_test(calls_calloc),
		cmocka_unit_test(calls_realloc),     cmocka_unit_test(calls_out),
		cmocka_unit_test(calls_new),	     cmocka_unit_test(calls_jumps),
		cmocka_unit_test(calls_handler),     cmocka_unit_test(calls_odd),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
