/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Passes on what a session learns, in place of keeping books, also to a client that was away. */
#include "user/session/session_forward.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "user/heap/heap_sample.h"
#include "user/heap/thread_table.h"
#include "user/lib/array.h"
#include "user/lib/clock.h"
#include "user/session/session_live.h"
#include "user/session/session_lent.h"
#include "user/session/session_losses.h"
#include "user/session/session_private.h"
#include "user/session/session_process.h"
#include "user/session/session_threads.h"
#include "user/session/session_tune.h"
#include "user/stream/stream_record.h"

enum { FLUSH_NS = 100 * 1000 * 1000, SENT_BITS = IS_AGENT ? 19 : 23 };

u64 session_forward_id(const struct session *s)
{
	return recorder_id(s->recorder);
}

const struct source_ops *session_source(const struct session *s, struct source **source)
{
	*source = s->source;
	return s->ops;
}

const struct target *session_forward_target(struct session *s, pid_t pid)
{
	const struct process *p = session_find(s, (u32)pid);

	return p ? p->target : NULL;
}

/* Count @ev as an allocation, a free or both, as a source counts lost events. */
static void session_forward_count(const struct heap_event *ev, u64 *allocs, u64 *frees)
{
	bool is_end = ev->h.kind == EVENT_REALLOC_END;

	*allocs += is_end || ev->h.kind == EVENT_ALLOC;
	*frees += ev->h.kind == EVENT_FREE || (is_end && ev->old_addr && (ev->addr || !ev->size));
}

/*
 * Is @ev a release of a block that the client cannot know, so that it need not travel? A bit that is set says nothing
 * sure: other addresses have it, too, and a child knows the blocks of its parent.
 */
static bool session_forward_keeps(struct session *s, const struct process *p, const struct heap_event *ev)
{
	const u64 nr = ev->addr * 0x9e3779b97f4a7c15ULL >> (64 - SENT_BITS);
	const u8 bit = 1 << nr % 8;

	if (!s->forward.sent || !ev->addr)
		return false;
	if (ev->h.kind != EVENT_FREE) {
		s->forward.sent[nr / 8] |= bit;
		return false;
	}
	/* In a program that was seen from its start, and whole, such a release is an error of the program. */
	if (p->target->is_started && !tuning_has_filter(&s->tuned.now))
		return false;
	return !(s->forward.sent[nr / 8] & bit) && !(ev->h.flags & ~EVENT_TEMPORARY) &&
	       alloc_fn(s->fns, ev->h.fn)->kind == ALLOC_FREE;
}

/* Heap events leave room for the records that explain them. */
int session_forward_event(struct session *s, struct process *p, const struct heap_event *ev)
{
	struct heap_event rec;

	session_lent_event(s, p, ev);
	heap_add_thread(p->heap, ev->h.tid);
	p->nr_events++;
	p->nr_reallocs += ev->h.kind == EVENT_REALLOC_BEGIN;
	p->nr_reallocs -= ev->h.kind == EVENT_REALLOC_END && p->nr_reallocs;
	if (session_forward_keeps(s, p, ev)) {
		p->tuned.nr_unseen_frees++;
		return 0;
	}
	if (recorder_filled(s->recorder) >= 6) {
		session_forward_count(ev, &p->lost.unsent.allocs, &p->lost.unsent.frees);
		return 0;
	}
	session_forward_count(ev, &p->sent_allocs, &p->sent_frees);
	if (HAS_SAMPLES) {
		rec = *ev;
		rec.h.distance = heap_sample_drawn(p->heap, ev);
		ev = &rec;
	}
	recorder_event(s->recorder, &ev->h, sizeof(*ev));
	return 0;
}

int session_forward_stack(struct session *s, struct process *p, const struct event_header *rec, size_t len)
{
	if (recorder_filled(s->recorder) < 7) {
		recorder_event(s->recorder, rec, len);
		return 0;
	}
	p->lost.unsent.stacks++;
	s->forward.misses_stacks = true;
	return 0;
}

int session_forward_note(struct session *s, struct process *p, const struct note_event *ev)
{
	if (recorder_filled(s->recorder) >= 7)
		p->lost.unsent.other++;
	else
		recorder_note(s->recorder, ev);
	return 0;
}

static void number_end(struct session *s, struct forwarded_end *e)
{
	e->number = recorder_is_open(s->recorder) ? ++s->forward.nr_told_ends : 0;
}

void session_forward_end(struct session *s, const struct process *p, int status)
{
	struct forwarding *f = &s->forward;
	struct forwarded_end e = { .pid = (u32)p->target->pid,
				   .parent = p->parent_pid,
				   .start_time = p->target->start_time,
				   .status = status,
				   .losses = p->lost.told,
				   .allocs = p->sent_allocs,
				   .frees = p->sent_frees };

	number_end(s, &e);
	/* The oldest ends have come, unless the queue holds thousands. */
	if (f->nr_ends == FORWARD_MAX_PROCESSES)
		memmove(f->ends, f->ends + 1, --f->nr_ends * sizeof(*f->ends));
	if (!array_extend(f->ends, f->nr_ends))
		f->ends[f->nr_ends++] = e;
}

static const struct forward_had *find_had(const struct forward_received *had, u32 pid, u64 start_time)
{
	for (u32 i = 0; had && i < had->nr_had; i++)
		if (had->had[i].pid == pid && had->had[i].start_time == start_time)
			return &had->had[i];
	return NULL;
}

/* Count what was sent and has not come as unsent; @had: what has come, NULL = nothing. */
static void session_forward_settle(struct losses *unsent, u64 *allocs, u64 *frees,
				   const struct forward_had *had)
{
	u64 had_allocs = had ? had->allocs : 0, had_frees = had ? had->frees : 0;

	unsent->allocs += *allocs > had_allocs ? *allocs - had_allocs : 0;
	unsent->frees += *frees > had_frees ? *frees - had_frees : 0;
	*allocs = had_allocs;
	*frees = had_frees;
}

/* A process of whose end the client does not know, or of which it will never know. */
static void tell_end_again(struct session *s, struct forwarded_end *e, const struct forward_received *had)
{
	const struct process_event end = { .h = { .kind = EVENT_EXIT, .pid = e->pid, .tid = e->pid },
					   .time_ns = clock_now_ns(),
					   .exit_status = (u32)e->status };
	const struct forward_had *h = find_had(had, e->pid, e->start_time);
	struct process *parent = session_find(s, e->parent);

	if (!h) {
		if (parent)
			parent->lost.unsent.unfollowed++;
		return;
	}
	session_forward_settle(&e->losses, &e->allocs, &e->frees, h);
	recorder_losses(s->recorder, (pid_t)e->pid, &e->losses, STREAM_TAINT | STREAM_GAPS);
	recorder_event(s->recorder, &end.h, sizeof(end));
	number_end(s, e);
}

/* The ends that the client has seen need not be kept. */
static void tell_ends_again(struct session *s, const struct forward_received *had)
{
	struct forwarding *f = &s->forward;
	size_t nr = 0;

	f->nr_told_ends = had ? had->nr_ends : 0;
	for (size_t i = 0; had && i < f->nr_ends; i++) {
		struct forwarded_end *e = &f->ends[i];

		if (e->number && e->number <= had->nr_ends)
			continue;
		tell_end_again(s, e, had);
		if (e->number)
			f->ends[nr++] = *e;
	}
	f->nr_ends = nr;
}

/* A child that the client has not heard of is a copy of its parent, as far as the client knows that one. */
static void session_forward_tell_birth(struct session *s, const struct process *p)
{
	const struct process_event birth = { .h = { .kind = EVENT_FORK,
						    .flags = p->origin == PROCESS_COPY ? 0 : EVENT_NO_COPY,
						    .pid = p->parent_pid,
						    .tid = p->parent_pid },
					     .time_ns = clock_now_ns(),
					     .child_pid = (u32)p->target->pid };

	if (p->parent_pid && session_find(s, p->parent_pid))
		recorder_event(s->recorder, &birth.h, sizeof(birth));
}

static void tell_again(struct session *s, struct process *p, const struct forward_received *had)
{
	const struct forward_had *h = find_had(had, (u32)p->target->pid, p->target->start_time);

	if (had)
		session_forward_settle(&p->lost.unsent, &p->sent_allocs, &p->sent_frees, h);
	if (had && !h)
		session_forward_tell_birth(s, p);
	recorder_process(s->recorder, p->target, s->start_ns);
	session_threads_tell(s, p);
	/* Blocks that are live for the client may have been freed meanwhile. */
	p->lost.told = (struct losses){ 0 };
	p->lost.has_gaps = false;
	p->lost.nr_unseen = 0;
	if (p->tuned.pauses.begin_ns || tuning_has_filter(&s->tuned.now))
		session_expect_gaps(s, p);
	session_taint_if_unseen(s, p, session_count_unseen(s, p));
	session_read_losses(s, p);
}

static int session_forward_result(const struct session *s)
{
	return recorder_has_failed(s->recorder) ? -EIO : 0;
}

bool session_forward_lacks_memory(const struct session *s)
{
	return s->tuned.now.is_thin && !s->forward.sent;
}

int session_forward_connect(struct session *s, const struct forward_received *had)
{
	if (!s->forward.lending)
		session_drop_ended(s, 0, false);
	if (session_forward_lacks_memory(s))
		s->forward.sent = calloc(1, 1U << (SENT_BITS - 3));
	recorder_connect(s->recorder, session_backend(s), s->start_ns, clock_now_ns());
	tell_ends_again(s, had);
	for (size_t i = 0; i < s->nr_processes; i++)
		if (!process_is_over(s->processes[i]))
			tell_again(s, s->processes[i], had);
	if (s->nr_processes && s->ops->forget_stacks)
		s->ops->forget_stacks(s->source);
	return session_forward_result(s);
}

void session_forward_disconnect(struct session *s)
{
	recorder_disconnect(s->recorder);
}

int session_forward_poll(struct session *s)
{
	int err;

	if (!s->forward.lending)
		session_drop_ended(s, 0, false);
	if (s->forward.misses_stacks && recorder_filled(s->recorder) < 1 && s->ops->forget_stacks) {
		s->forward.misses_stacks = false;
		s->ops->forget_stacks(s->source);
	}
	err = session_poll(s);
	if (err && err != -ENODATA)
		return err;
	return clock_now_ns() - s->forward.flushed_ns >= FLUSH_NS ? session_forward_flush(s)
								  : session_forward_result(s);
}

int session_forward_flush(struct session *s)
{
	s->forward.flushed_ns = clock_now_ns();
	for (size_t i = 0; i < s->nr_processes; i++)
		session_read_losses(s, s->processes[i]);
	recorder_flush(s->recorder);
	return session_forward_result(s);
}
