/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Which calls count where blocks are sampled by BPF or ptrace: those that the stubs in a target (inline/sample.h) would
 * record. Each byte that a thread asks for, and one more for each block, may be a sample, by chance. Part of the
 * adaptors of call/life.h, which comes before.
 */
#pragma once

#include "call/distance.h"
#include "call/life.h"

/* The adaptor, too: the mean distance now; a random number; are there samples at all? */
LIFE_STEP u64 sample_mean(const struct call *c);
LIFE_STEP u64 sample_number(const struct call *c);
LIFE_STEP bool sample_is_on(const struct call *c);
/* The sampled blocks of the process: add one, false if there is no room; take one out, false if it is not there. */
LIFE_STEP bool sample_add(const struct call *c, const struct inflight *t, u64 addr);
LIFE_STEP bool sample_take(const struct call *c, const struct inflight *t, u64 addr);

/* A size that no call gets: each is recorded. */
#define SAMPLE_TOO_LARGE (1ULL << 47)

LIFE_CALL void sample_draw(const struct call *c, struct inflight *t)
{
	if (!t)
		return;
	t->mean = sample_mean(c);
	t->left = sample_distance(sample_number(c), t->mean);
}

/* Count the bytes of a call. True: a sample is due. */
LIFE_STEP bool sample_is_due(const struct call *c, struct inflight *t, u64 size)
{
	const u64 none_left = 1ULL << 63;

	if (!t->mean)
		sample_draw(c, t);
	if (size < SAMPLE_TOO_LARGE) {
		t->left -= size + 1;
		if (t->left < none_left)
			return false;
	}
	t->distance = sample_mean_log(t->mean);
	sample_draw(c, t);
	return true;
}

/* As call_choose(). */
LIFE_STEP u8 sample_choose(const struct call *c, struct inflight *t, const struct call_probe *p)
{
	u64 old = p->old_arg ? call_arg(c, p, p->old_arg) : 0;
	bool is_due, has_old;

	if (!sample_is_on(c))
		return CALL_COUNTS;
	if (p->kind == ALLOC_RESIZE)
		return sample_take(c, t, old) ? CALL_COUNTS : CALL_NONE;
	if (p->kind > ALLOC_OUT)
		return CALL_COUNTS;
	is_due = sample_is_due(c, t, life_size(c, p));
	has_old = old && sample_take(c, t, old);
	if (is_due)
		return has_old || !old ? CALL_COUNTS : CALL_NEW;
	t->last_alloc = 0;
	return has_old ? CALL_OLD : CALL_NONE;
}

/* As call_is_followed(). Calls inside such a call would count twice. */
LIFE_STEP bool sample_is_followed(const struct call_probe *p)
{
	return p->count_arg || p->old_arg || p->out_arg || p->align_arg || p->flags & PROBE_DELEGATES;
}

/* As call_chooses_free(). */
LIFE_STEP bool sample_chooses_free(const struct call *c, struct inflight *t, const struct call_probe *p,
				   u64 addr)
{
	if (!sample_is_on(c) || p->kind != ALLOC_FREE || sample_take(c, t, addr))
		return true;
	t->last_alloc = 0;
	return false;
}

/* A call ends: note the sampled block that it leaves, before the program has that. False: there is no room for it. */
LIFE_STEP bool sample_note(const struct call *c, const struct inflight *t, const struct heap_event *ev)
{
	bool ends = ev->h.kind == EVENT_ALLOC || ev->h.kind == EVENT_REALLOC_END;
	u64 addr = ev->h.flags & EVENT_UNSAMPLED ? 0 : ev->addr;

	if (!ends || !sample_is_on(c))
		return true;
	/* A realloc that fails leaves the old block. */
	if (ev->h.kind == EVENT_REALLOC_END && !ev->addr && ev->size)
		addr = ev->old_addr;
	return !addr || sample_add(c, t, addr);
}
