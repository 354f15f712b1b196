/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A thread of no process that goes through an allocator: for tests/unit/call/. */
#pragma once

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "call/sample.h"
#include "tests/unit/life_probes.h"

enum { MAX_EVENTS = 256, STACK = 0x10000, STACK_WORDS = 512 };
enum { STACK_ID = 77 };

/* The thread, its registers and memory, and what was reported of it. */
struct world {
	struct inflight thread;
	bool has_trampolines, is_full;
	u64 sp, ip, args[3], result;
	u64 words[STACK_WORDS]; /* below STACK */
	u64 out;		/* at address 8 */
	struct heap_event events[MAX_EVENTS];
	size_t nr_events;
	u32 losses[3]; /* by enum call_loss */
	/* Samples: 0 = there are none. */
	u64 mean, next_number, sampled[4];
};

struct call {
	struct world *w;
};

static u64 *word_at(const struct world *w, u64 addr)
{
	u64 at = STACK_WORDS - (STACK - addr) / 8;

	return at < STACK_WORDS ? (u64 *)&w->words[at] : NULL;
}

static u64 call_sp(const struct call *c)
{
	return c->w->sp;
}

static u64 call_ip(const struct call *c)
{
	return c->w->ip;
}

static u64 call_return_address(const struct call *c, const struct call_probe *p)
{
	const u64 *word = word_at(c->w, c->w->sp);

	(void)p;
	return word ? *word : 0;
}

static u64 call_arg(const struct call *c, const struct call_probe *p, u8 n)
{
	(void)p;
	return c->w->args[n - 1];
}

static u64 call_result(const struct call *c, const struct call_probe *p)
{
	(void)p;
	return c->w->result;
}

static u64 call_sp_inside(const struct call *c, const struct call_probe *p)
{
	(void)p;
	return c->w->sp - 8;
}

static u64 call_read_word(const struct call *c, const struct call_probe *p, u64 addr)
{
	(void)p;
	return addr == 8 ? c->w->out : 0;
}

static bool call_has_trampolines(const struct call *c)
{
	return c->w->has_trampolines;
}

static bool call_is_trampoline(const struct call *c, u64 ret)
{
	(void)c;
	return ret == TRAMPOLINE;
}

static const struct call_probe *call_probe_at(const struct call *c, u32 index)
{
	(void)c;
	return index < NR_FNS ? &probes[index] : NULL;
}

static bool call_send(const struct call *c, const struct inflight *t, const struct heap_event *ev)
{
	struct world *w = c->w;

	assert_ptr_equal(t, &w->thread);
	if (w->is_full || !sample_note(c, t, ev))
		return false;
	assert_true(w->nr_events < MAX_EVENTS);
	w->events[w->nr_events++] = *ev;
	return true;
}

static u64 call_take_stack(const struct call *c, const struct inflight *t, const struct call_probe *p,
			   u32 how)
{
	(void)c;
	(void)t;
	(void)p;
	return STACK_ID + how;
}

static void call_count_loss(const struct call *c, const struct inflight *t, enum call_loss loss, u32 nr)
{
	(void)t;
	c->w->losses[loss] += nr;
}
