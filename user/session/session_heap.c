/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Heap events enter the books of their process, and reach all who listen. For user/session/session*.c only. */
#include "user/session/session_heap.h"

#include <errno.h>

#include "user/heap/heap.h"
#include "user/heap/heap_sample.h"
#include "user/heap/stacks.h"
#include "user/lib/log.h"
#include "user/session/session_forward.h"
#include "user/session/session_live.h"
#include "user/session/session_private.h"
#include "user/session/session_process.h"
#include "user/session/session_record.h"
#include "user/session/session_told.h"
#include "user/source/source.h"

/*
 * The end of counting that --stop-after names. Events come in by whole rings, and more of them until the probes are
 * out: these are left out. Only where a verdict is to be found later, releases of counted blocks are still entered,
 * because a block that was freed meanwhile is no leak.
 */

bool session_is_enough(const struct session *s)
{
	return s->options->stop_after && s->nr_allocs >= s->options->stop_after;
}

/* The realloc @ev of a counted block: the block that it returns is not counted, so this is a release. */
static void make_release(const struct heap_event *ev, struct heap_event *release)
{
	*release = *ev;
	release->h.kind = EVENT_FREE;
	release->h.flags = 0;
	release->addr = ev->old_addr;
	release->old_addr = release->size = 0;
}

/*
 * Counting is over (session_is_enough()). Is the heap event @ev of @p to be entered nevertheless, because it ends the
 * life of a block that was counted? In place of a realloc of such a block *@release is to be entered if its kind is
 * set.
 */
static bool session_enough_takes(struct session *s, struct process *p, const struct heap_event *ev,
				 struct heap_event *release)
{
	bool is_mremap = alloc_fn(s->fns, ev->h.fn)->kind == ALLOC_MREMAP;
	struct heap_block block;

	release->h.kind = 0;
	/* The report shows the heap as it was with the last allocation. */
	if (s->options->scan == SCAN_NEVER)
		return false;
	switch (ev->h.kind) {
	case EVENT_FREE:
		return ev->h.flags & EVENT_UNMAP || heap_find(p->heap, ev->addr, &block);
	case EVENT_REALLOC_BEGIN:
		if (!heap_find(p->heap, ev->old_addr, &block))
			return false;
		if (!is_mremap)
			make_release(ev, release);
		return true;
	case EVENT_REALLOC_END:
		/* The call began before the end. */
		if (ev->old_addr && heap_is_pending(p->heap, ev->h.tid, ev->old_addr))
			return true;
		break;
	default:
		break;
	}
	p->tuned.has_unseen = true;
	return false;
}

enum { PREFETCH_AHEAD = 8 };

/* Was the release with the stack @id called by an allocator, of memory that it may have taken unseen? */
static bool session_heap_is_own(const void *ctx, u64 id)
{
	const struct process *p = ctx;
	const struct stack *stack = stack_get(p->stacks, id);

	return stack && stack->nr_frames && target_is_allocator(p->target, stack->frames[0].module);
}

void session_heap_check_own(const struct session *s, struct process *p)
{
	p->stacks = s->stacks;
	heap_check_own(p->heap, session_heap_is_own, p);
}

/* Is the heap event @ev of @p to be counted? */
static bool session_heap_takes(const struct session *s, struct process *p, const struct heap_event *ev)
{
	if (p->notes.is_paused && session_note_leaves_out(p, ev))
		return false;
	/* The other machine has filtered already. */
	if (session_told(s) || s->is_replayed)
		return true;
	/* A child that was born during the pause may not be paused yet. */
	if (p->tuned.pauses.begin_ns)
		return false;
	if (tuning_takes(&s->tuned.now, ev))
		return true;
	p->tuned.nr_left_out++;
	return false;
}

/* Enter @ev, whose stack is a canonical one, into the books of @p. */
static inline void enter_books(struct session *s, struct process *p, const struct heap_event *ev)
{
	p->nr_events++;
	s->nr_allocs += ev->addr && (ev->h.kind == EVENT_ALLOC || ev->h.kind == EVENT_REALLOC_END);
	if (heap_event(p->heap, ev) == -EINVAL)
		debug("heap: event of kind %u is not for the books", ev->h.kind);
	trend_add(&p->trend, ev->time_ns, heap_live_bytes(p->heap));
}

/* A recording knows nothing of folded stacks: it gets @ev with @stack, as long as it has that one. */
static void record_event(struct session *s, const struct process *p, const struct heap_event *ev, u64 stack)
{
	struct heap_event rec = *ev;

	if (ev->stack != STACK_LOST)
		rec.stack = stack;
	if (HAS_SAMPLES)
		rec.h.distance = heap_sample_drawn(p->heap, ev);
	if (!recorder_has_stack(s->recorder, rec.stack))
		session_record_stack(s, p, rec.stack);
	recorder_event(s->recorder, &rec.h, sizeof(rec));
}

int session_heap_event(struct session *s, struct process *p, const struct event_header *rec)
{
	const struct heap_event *ev = (const struct heap_event *)rec;
	struct heap_event changed, release;
	u64 recorded = s->recorder ? stack_recorded(s->stacks, ev->stack) : 0;
	u64 stack = stack_canonical(s->stacks, ev->stack);

	if (session_forwards(s))
		return session_heap_takes(s, p, ev) ? session_forward_event(s, p, ev) : 0;
	if (s->options->stop_after && session_is_enough(s)) {
		if (!session_enough_takes(s, p, ev, &release))
			return 0;
		ev = release.h.kind ? &release : ev;
	}
	if (!session_heap_takes(s, p, ev))
		return 0;
	if (s->has_lost_stacks && stack >= STACK_FIRST_ID && !stack_get(s->stacks, stack))
		stack = STACK_LOST;
	if (stack != ev->stack) {
		changed = *ev;
		changed.stack = stack;
		ev = &changed;
		p->lost.nr_false_stacks += stack == STACK_LOST;
	}
	if (s->recorder) {
		record_event(s, p, ev, recorded);
	}
	enter_books(s, p, ev);
	if (p->notes.nr_disabled)
		session_note_heap(s, p, ev);
	if (s->scanning)
		session_scan_event(s, p, ev);
	for (struct session_listener *l = s->listeners; l; l = l->next)
		l->event(l, ev);
	return 0;
}

/* Do all heap events of @p go into its books, and nowhere else? */
static bool wants_books_only(const struct session *s, const struct process *p)
{
	return !s->options->stop_after && !s->recorder && !s->scanning && !s->listeners && !s->span.span &&
	       !s->has_lost_stacks && !p->notes.is_paused && !p->notes.nr_disabled &&
	       !p->tuned.pauses.begin_ns && !tuning_has_filter(&s->tuned.now);
}

int session_heap_events(void *ctx, struct heap_event *evs, size_t nr)
{
	struct session *s = ctx;
	struct process *p = session_find(s, evs->h.pid);
	int err = 0;

	if (!p || session_forwards(s) || !wants_books_only(s, p)) {
		for (size_t i = 0; i < nr && !err; i++)
			err = session_enter(s, &evs[i].h, sizeof(*evs));
		return err;
	}
	for (size_t i = 0; i < nr; i++) {
		u64 stack = stack_canonical(s->stacks, evs[i].stack);

		if (i + PREFETCH_AHEAD < nr)
			heap_prefetch(p->heap, &evs[i + PREFETCH_AHEAD]);
		p->lost.nr_false_stacks += stack != evs[i].stack && stack == STACK_LOST;
		evs[i].stack = stack;
		enter_books(s, p, &evs[i]);
	}
	return 0;
}
