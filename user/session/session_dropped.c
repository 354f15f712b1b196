/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Processes that have ended leave the books of a session that runs for long: sums of them stay. */
#include "user/session/session_dropped.h"

#include <stdlib.h>

#include "user/heap/heap.h"
#include "user/lib/cleanup.h"
#include "user/session/session_forgotten.h"
#include "user/session/session_live.h"
#include "user/session/session_private.h"
#include "user/session/session_process.h"
#include "user/session/session_told.h"

/* A process by its number in the session, from 1 on; the new number, or 0 = it is dropped. */
struct number {
	u32 now;
	bool is_dropped;
};

static void session_dropped_add(struct dropped *to, const struct dropped *d)
{
	to->nr += d->nr;
	to->allocs += d->allocs;
	to->frees += d->frees;
	to->live_bytes += d->live_bytes;
	to->live_blocks += d->live_blocks;
	to->lost += d->lost;
	to->unfollowed += d->unfollowed;
}

/* @p and all that it had taken over. */
static struct dropped session_dropped_sum_of(const struct process *p)
{
	struct heap_totals t = heap_totals(p->heap);
	struct dropped d = { .nr = !p->is_hidden,
			     .allocs = t.allocs,
			     .frees = t.frees + t.unknown_frees,
			     .live_bytes = t.live_bytes,
			     .live_blocks = t.live_blocks,
			     .lost = p->lost.now.allocs + p->lost.now.frees + p->lost.now.stacks +
				     p->lost.now.other + heap_lost(p->heap),
			     .unfollowed = p->lost.now.unfollowed };

	session_dropped_add(&d, &p->dropped);
	return d;
}

/* The last report on @p would have had findings. */
static void keep_findings(struct session *s, struct process *p)
{
	if (p->is_hidden)
		return;
	/* Names are searched only where there is something to suppress, which the agent does not. */
	if (!IS_AGENT && fail_rules_any(&s->options->fail) && p->leaks &&
	    p->leaks->result.sums.of[SCAN_DEFINITE].blocks &&
	    (session_make_symbolizer(s) || session_suppress(s, p)))
		s->has_failed = true;
	session_count_findings(p, &s->dropped_found);
}

/* The nearest one of the parents of @p that stays, by its number. */
static size_t parent_left(const struct session *s, const struct process *p, const struct number *numbers)
{
	size_t parent = p->parent;

	while (parent && numbers[parent].is_dropped)
		parent = s->processes[parent - 1]->parent;
	return parent;
}

/* Give what is known of @p to that one. */
static void session_dropped_hand_over(struct session *s, struct process *p, const struct number *numbers)
{
	struct dropped d = session_dropped_sum_of(p);
	size_t parent = parent_left(s, p, numbers);

	session_dropped_add(parent ? &s->processes[parent - 1]->dropped : &s->dropped, &d);
	if (parent)
		s->processes[parent - 1]->nr_unlisted += p->nr_unlisted;
	keep_findings(s, p);
	s->has_dropped_losses |= p->lost.now.allocs || p->lost.now.frees || p->lost.now.overwritten ||
				 p->lost.nr_unplaced || heap_lost(p->heap);
}

/* May @p be dropped? */
static bool is_droppable(const struct process *p, bool keeps_targets)
{
	return process_is_over(p) && !(keeps_targets && !p->parent);
}

/* Choose the @nr processes that ended first, and all that reports do not have. */
static void session_dropped_choose(const struct session *s, size_t nr, bool keeps_targets,
				   struct number *numbers)
{
	for (size_t i = 0; i < s->nr_processes; i++) {
		const struct process *p = s->processes[i];

		if (!is_droppable(p, keeps_targets) || (!nr && !p->is_hidden))
			continue;
		numbers[i + 1].is_dropped = true;
		nr -= !p->is_hidden;
	}
}

/* Take the chosen processes out. */
static void session_dropped_take_out(struct session *s, struct number *numbers)
{
	u32 nr = 0;

	for (size_t i = 0; i < s->nr_processes; i++)
		numbers[i + 1].now = numbers[i + 1].is_dropped ? 0 : ++nr;
	for (size_t i = 0; i < s->nr_processes; i++)
		if (!numbers[i + 1].is_dropped)
			s->processes[i]->new_parent = numbers[parent_left(s, s->processes[i], numbers)].now;
	for (size_t i = 0; i < s->nr_processes; i++) {
		struct process *p = s->processes[i];

		if (numbers[i + 1].is_dropped) {
			session_free_process(p);
			continue;
		}
		p->parent = p->new_parent;
		s->processes[numbers[i + 1].now - 1] = p;
	}
	s->nr_processes = nr;
	s->latest = NULL;
}

size_t session_drop_ended(struct session *s, size_t keep, bool keeps_targets)
{
	auto_free struct number *numbers = NULL;
	size_t nr_listed = 0, nr_hidden = 0, nr;

	/* The agent keeps no stacks, and its files have numbers on the other side. */
	if (!IS_AGENT)
		session_forget_unused(s);
	for (size_t i = 0; i < s->nr_processes; i++) {
		bool is_over = is_droppable(s->processes[i], keeps_targets);

		nr_hidden += is_over && s->processes[i]->is_hidden;
		nr_listed += is_over && !s->processes[i]->is_hidden;
	}
	if (nr_listed <= keep && nr_hidden <= keep)
		return 0;
	numbers = calloc(s->nr_processes + 1, sizeof(*numbers));
	if (!numbers)
		return 0;
	nr = nr_listed > keep ? nr_listed - keep : 0;
	session_dropped_choose(s, nr, keeps_targets, numbers);
	for (size_t i = 0; i < s->nr_processes; i++)
		if (numbers[i + 1].is_dropped && !session_forwards(s))
			session_dropped_hand_over(s, s->processes[i], numbers);
	session_dropped_take_out(s, numbers);
	return nr;
}

void session_bound_ended(struct session *s)
{
	u32 keep = s->options->source.max_followed;

	if (!s->is_replayed)
		session_drop_ended(s, keep ? keep : SIZE_MAX, true);
}
