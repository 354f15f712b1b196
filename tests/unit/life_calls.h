/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Samples of the thread of tests/unit/life_world.h, and calls that it makes. */
#pragma once

#include "tests/unit/life_world.h"

static bool sample_is_on(const struct call *c)
{
	return c->w->mean;
}

static u64 sample_mean(const struct call *c)
{
	return c->w->mean;
}

static u64 sample_number(const struct call *c)
{
	return c->w->next_number;
}

static bool sampled_exchange(struct world *w, u64 from, u64 to)
{
	for (size_t i = 0; i < sizeof(w->sampled) / sizeof(*w->sampled); i++) {
		if (w->sampled[i] != from)
			continue;
		w->sampled[i] = to;
		return true;
	}
	return false;
}

static bool sample_add(const struct call *c, const struct inflight *t, u64 addr)
{
	(void)t;
	return sampled_exchange(c->w, addr, addr) || sampled_exchange(c->w, 0, addr);
}

static bool sample_take(const struct call *c, const struct inflight *t, u64 addr)
{
	(void)t;
	return sampled_exchange(c->w, addr, 0);
}

static u8 call_choose(const struct call *c, struct inflight *t, const struct call_probe *p)
{
	return sample_choose(c, t, p);
}

static bool call_is_followed(const struct call_probe *p)
{
	return sample_is_followed(p);
}

static bool call_chooses_free(const struct call *c, struct inflight *t, const struct call_probe *p, u64 addr)
{
	return sample_chooses_free(c, t, p, addr);
}

static struct world new_world(void **state)
{
	return (struct world){ .has_trampolines = *(bool *)*state };
}

/* The first instruction of function @fn, the return address at @sp. */
static void jump(struct world *w, u32 fn, u64 sp, u64 arg1, u64 arg2)
{
	const struct call c = { w };
	const struct call_probe *p = &probes[fn];

	w->sp = sp;
	w->ip = LIBRARY + fn * 256;
	w->args[0] = arg1;
	w->args[1] = arg2;
	w->args[2] = 300;
	if (life_is_release(p))
		life_enter_free(&c, &w->thread, fn, p, 0);
	else
		life_enter_alloc(&c, &w->thread, fn, p, 1);
	if (w->has_trampolines && p->flags & PROBE_RETURNS)
		*word_at(w, sp) = TRAMPOLINE;
}

/* A call, whose return address is @ret. */
static void enter(struct world *w, u32 fn, u64 sp, u64 ret, u64 arg1, u64 arg2)
{
	*word_at(w, sp) = ret;
	jump(w, fn, sp, arg1, arg2);
}

static void leave(struct world *w, u32 fn, u64 sp, u64 result)
{
	const struct call c = { w };

	w->result = result;
	life_leave(&c, &w->thread, fn, &probes[fn], sp);
}

static void check(const struct world *w, size_t i, u8 kind, u16 fn, u64 addr, u64 size)
{
	assert_true(i < w->nr_events);
	assert_int_equal(w->events[i].h.kind, kind);
	assert_int_equal(w->events[i].h.fn, fn);
	assert_int_equal(w->events[i].addr, addr);
	assert_int_equal(w->events[i].size, size);
}

static const u64 top = STACK - 64;
