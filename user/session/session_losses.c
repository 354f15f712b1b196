/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Losses of a process, from the source to its books and into the recording. */
#include "user/session/session_losses.h"

#include <string.h>

#include "user/heap/heap.h"
#include "user/session/session_process.h"
#include "user/session/session_told.h"
#include "user/stream/recorder.h"
#include "user/stream/stream_record.h"

struct losses session_source_losses(struct session *s, struct process *p)
{
	/* Before the losses themselves: what is counted between is asked for again. */
	u64 nr = s->ops->nr_losses ? s->ops->nr_losses(s->source) + 1 : 0;
	struct losses l;

	if (!nr || p->lost.of_source_at != nr)
		p->lost.of_source = s->ops->losses(s->source, p->target->pid);
	p->lost.of_source_at = nr;
	l = p->lost.of_source;
	losses_add(&l, &p->lost.unsent);
	return l;
}

/* @now of @p with what heaptap itself did not see or enter, as the stream counts it: for all images of the PID. */
static struct losses session_losses_whole(const struct session *s, const struct process *p,
					  const struct losses *now)
{
	struct losses l = *now;

	l.stacks += p->lost.own_before.stacks + p->lost.nr_false_stacks;
	l.other += p->lost.own_before.other + s->backlog.nr_dropped + p->lost.nr_unplaced;
	if (!session_told(s) && !s->is_replayed)
		l.left_out = p->lost.own_before.left_out + p->tuned.nr_left_out;
	if (s->forward.sent)
		l.unseen_frees = p->lost.own_before.unseen_frees + p->tuned.nr_unseen_frees;
	return l;
}

void session_carry_losses(const struct session *s, const struct process *old, struct process *image)
{
	const struct losses none = { 0 };

	image->lost.unsent = old->lost.unsent;
	image->sent_allocs = old->sent_allocs;
	image->sent_frees = old->sent_frees;
	image->lost.own_before = session_losses_whole(s, old, &none);
	image->lost.own_before.other -= s->backlog.nr_dropped;
}

/* Record losses that are new, and @flags: their consequences for the heap. */
static void tell_losses(struct session *s, struct process *p, const struct losses *now, u8 flags)
{
	struct losses l = session_losses_whole(s, p, now);

	if (!s->recorder)
		return;
	if (!flags && !memcmp(&l, &p->lost.told, sizeof(l)))
		return;
	p->lost.told = l;
	recorder_losses(s->recorder, p->target->pid, &l, flags);
}

u64 session_lost_calls(struct session *s, struct process *p)
{
	struct losses now = session_source_losses(s, p);

	losses_sub(&now, &p->lost.before);
	return now.allocs + now.frees;
}

void session_read_losses(struct session *s, struct process *p)
{
	struct losses now;
	struct heap_totals totals = heap_totals(p->heap);
	u64 repaired = totals.collisions + totals.lost_ends;

	if (process_is_over(p))
		return;
	now = session_source_losses(s, p);
	tell_losses(s, p, &now, 0);
	if (session_told(s) || s->is_replayed) {
		p->tuned.nr_left_out = now.left_out - p->lost.before.left_out;
		heap_set_unseen_frees(p->heap, now.unseen_frees - p->lost.before.unseen_frees);
	}
	p->lost.now = now;
	losses_sub(&p->lost.now, &p->lost.before);
	/* The heap has repaired lost frees that later events proved. */
	p->lost.now.frees -= repaired < p->lost.now.frees ? repaired : p->lost.now.frees;
	p->lost.now.stacks += p->lost.nr_false_stacks;
	p->lost.now.other += s->backlog.nr_dropped + p->lost.nr_unplaced;
	p->lost.now.tracers = now.tracers;
}

void session_taint(struct session *s, struct process *p)
{
	struct losses now = session_source_losses(s, p);

	p->lost.nr_taints++;
	heap_taint(p->heap);
	tell_losses(s, p, &now, STREAM_TAINT);
}

void session_taint_if_unseen(struct session *s, struct process *p, u64 unseen)
{
	u64 unentered = heap_lost(p->heap);

	if (unseen <= p->lost.nr_unseen && unentered == p->lost.nr_unentered)
		return;
	if (unseen > p->lost.nr_unseen)
		p->lost.nr_unseen = unseen;
	p->lost.nr_unentered = unentered;
	session_taint(s, p);
}

void session_expect_gaps(struct session *s, struct process *p)
{
	struct losses now = session_source_losses(s, p);

	heap_expect_gaps(p->heap);
	if (!p->lost.has_gaps)
		tell_losses(s, p, &now, STREAM_GAPS);
	p->lost.has_gaps = true;
}

u64 session_count_unseen(struct session *s, struct process *p)
{
	struct losses lost = session_source_losses(s, p);

	if (lost.allocs > p->lost.before.allocs || lost.overwritten > p->lost.before.overwritten ||
	    p->lost.nr_unplaced)
		session_expect_gaps(s, p);
	if (lost.other > p->lost.before.other || lost.sharers)
		heap_check_gaps(p->heap);
	/* A process that shares its memory may free blocks, too. */
	return lost.frees + lost.other - lost.abandoned + lost.sharers + s->backlog.nr_dropped +
	       p->lost.nr_unplaced;
}

int session_enter_losses(struct session *s, struct process *p, const struct event_header *rec)
{
	u64 unseen = session_count_unseen(s, p);
	struct losses now = session_source_losses(s, p);

	/* Where the recording has it, too: errors from here on may be none. */
	tell_losses(s, p, &now, 0);
	if (rec->flags & EVENT_TAINT && unseen <= p->lost.nr_unseen)
		session_taint(s, p);
	session_taint_if_unseen(s, p, unseen);
	return 0;
}

void session_look(struct session *s, struct process *p)
{
	if (!s->ops->look || s->stop_ns || process_is_over(p) || p->is_gone)
		return;
	s->ops->look(s->source, p->target);
	session_taint_if_unseen(s, p, session_count_unseen(s, p));
}
