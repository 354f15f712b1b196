/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Merges the rings of a target. */
#include "user/inject/rings.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "bpf/event.h"
#include "user/inject/counter.h"
#include "user/lib/clock.h"

/* Records are fetched some time before they are read, because they are in the cache of the target's CPU. */
enum { MASK = PIECE_RING_RECORDS - 1, PUBLISH_EVERY = 1024, FETCH_AHEAD = 10 };

static const u64 ANY_STAMP = UINT64_MAX;

struct ring_reader {
	struct piece_ring *from; /* borrowed; of the target */
	bool is_bad;		 /* what it said made no sense: it is read no more */
	u64 read;		 /* records */
	u64 published;		 /* of these, what the target knows of */
	u64 end;		 /* of the records that this poll reads */
	u64 stamp;		 /* of the next record */
};

struct rings {
	struct piece_shared *shared; /* borrowed */
	bool is_sequence;
	struct ring_reader *readers; /* owned; PIECE_MAX_THREADS */
	u32 nr_readers;
	u32 *heap; /* owned; readers with records, that of the smallest stamp first */
	u32 nr_heap;
	u64 first_stamp, first_ns; /* for the time of records */
	double ns_per_tick;
	u64 last_ns;
	u64 from_stamp, from_ns, to_stamp; /* of a sequence: at the last poll, and its end at this one */
	double ns_per_number;
	u64 nr_bad;
	u32 nr_parts; /* that were written before the last poll */
};

/*
 * The counter and, in @ns, the clock at one moment. Between its two readings a thread may lose its CPU: of three pairs
 * the closest one is taken.
 */
static u64 rings_read_both(u64 *ns)
{
	u64 least = UINT64_MAX, stamp = 0;

	for (int i = 0; i < 3; i++) {
		u64 before = counter_now(), now_ns = clock_now_ns(), took = counter_now() - before;

		if (took >= least)
			continue;
		least = took;
		stamp = before + took / 2;
		*ns = now_ns;
	}
	return stamp;
}

static u64 now_stamp(const struct rings *r)
{
	return r->is_sequence ? sequence_last(&r->shared->sequence) : counter_now();
}

int rings_new(struct rings **out, struct piece_shared *shared)
{
	struct rings *r = calloc(1, sizeof(*r));

	if (!r)
		return -ENOMEM;
	r->shared = shared;
	r->is_sequence = shared->is_sequence;
	r->readers = calloc(PIECE_MAX_THREADS, sizeof(*r->readers));
	r->heap = calloc(PIECE_MAX_THREADS, sizeof(*r->heap));
	if (!r->readers || !r->heap) {
		rings_free(r);
		return -ENOMEM;
	}
	r->first_stamp = rings_read_both(&r->first_ns);
	r->last_ns = r->first_ns;
	*out = r;
	return 0;
}

void rings_free(struct rings *r)
{
	if (!r)
		return;
	free(r->readers);
	free(r->heap);
	free(r);
}

/* ---- time ---- */

/* The speed of the counter, better with each poll; that of a sequence, new with each poll, which is at @stamp. */
static void measure_counter(struct rings *r, u64 stamp)
{
	u64 now = clock_now_ns(), ticks = counter_now() - r->first_stamp;

	r->from_stamp = r->to_stamp;
	r->from_ns = r->last_ns;
	r->to_stamp = stamp;
	r->ns_per_number =
		stamp != r->from_stamp ? (double)(now - r->from_ns) / (double)(stamp - r->from_stamp) : 0;
	r->ns_per_tick = ticks ? (double)(now - r->first_ns) / (double)ticks : 0;
	r->last_ns = now;
}

/* The time of a number of the sequence: they are taken to come evenly between two polls. */
static u64 time_in_sequence(const struct rings *r, u64 stamp)
{
	u64 nr = r->to_stamp - r->from_stamp, at = stamp - r->from_stamp;

	if ((s64)at <= 0)
		return r->from_ns;
	if (at >= nr)
		return r->last_ns;
	return r->from_ns + (u64)((double)at * r->ns_per_number);
}

/* The time of a stamp: never before the trace, nor in the future. */
static u64 time_of(const struct rings *r, u64 stamp)
{
	s64 ticks = (s64)(stamp - r->first_stamp);

	if (r->is_sequence)
		return time_in_sequence(r, stamp);
	if (ticks < 0)
		return r->first_ns;
	if (stamp >= r->to_stamp)
		return r->last_ns;
	/* Of a signed number, because the conversion of an unsigned one takes several instructions. */
	return r->first_ns + (u64)(s64)((double)ticks * r->ns_per_tick);
}

/* ---- readers ---- */

/* Rings that threads have begun since the last poll. */
static void find_new(struct rings *r)
{
	u32 nr = __atomic_load_n(&r->shared->nr_used, __ATOMIC_ACQUIRE);

	for (; r->nr_readers < nr && r->nr_readers < PIECE_MAX_THREADS; r->nr_readers++)
		r->readers[r->nr_readers] = (struct ring_reader){ .from = &r->shared->rings[r->nr_readers] };
}

/* The number of the ring of @reader. */
static u32 ring_of(const struct rings *r, const struct ring_reader *reader)
{
	return (u32)(reader - r->readers);
}

static const struct piece_record *rings_record_at(const struct ring_reader *reader, u64 at)
{
	return &reader->from->records[at & MASK];
}

/* Has the reader another record? Sets its stamp. */
static bool rings_peek(struct ring_reader *reader)
{
	if (reader->read == reader->end)
		return false;
	reader->stamp = *(volatile const u64 *)&rings_record_at(reader, reader->read)->stamp;
	return true;
}

static void rings_publish(const struct rings *r, struct ring_reader *reader)
{
	reader->published = reader->read;
	__atomic_store_n(&reader->from->read, reader->read, __ATOMIC_RELEASE);
	__atomic_fetch_add(&r->shared->progress, 1, __ATOMIC_RELAXED);
}

/* ---- the heap of readers ---- */

static bool rings_is_before(const struct rings *r, u32 a, u32 b)
{
	return r->readers[a].stamp < r->readers[b].stamp;
}

static void rings_sift_down(struct rings *r, u32 at)
{
	for (;;) {
		u32 best = at, left = 2 * at + 1, tmp;

		for (u32 child = left; child < left + 2 && child < r->nr_heap; child++)
			if (rings_is_before(r, r->heap[child], r->heap[best]))
				best = child;
		if (best == at)
			return;
		tmp = r->heap[at];
		r->heap[at] = r->heap[best];
		r->heap[best] = tmp;
		at = best;
	}
}

static void rings_begin(struct rings *r)
{
	r->nr_heap = 0;
	for (u32 i = 0; i < r->nr_readers; i++) {
		struct ring_reader *reader = &r->readers[i];

		if (reader->is_bad)
			continue;
		/* Where the target has overwritten it, its thread may wait for ever. */
		if (__atomic_load_n(&reader->from->read, __ATOMIC_RELAXED) != reader->published)
			rings_publish(r, reader);
		reader->end = __atomic_load_n(&reader->from->written, __ATOMIC_ACQUIRE);
		if (reader->end - reader->read > PIECE_RING_RECORDS) {
			reader->is_bad = true;
			r->nr_bad++;
		} else if (rings_peek(reader)) {
			r->heap[r->nr_heap++] = i;
		}
	}
	for (u32 i = r->nr_heap / 2; i-- > 0;)
		rings_sift_down(r, i);
}

/* ---- records ---- */

static bool is_known_kind(u8 kind)
{
	return kind >= EVENT_ALLOC && kind <= EVENT_REALLOC_END;
}

/* Nothing in the ring of @reader can be believed. */
static int rings_refuse(struct rings *r, struct ring_reader *reader)
{
	reader->is_bad = true;
	r->nr_bad++;
	return 0;
}

/* Take the stack whose first record is @rec. */
static int rings_take_stack(struct rings *r, struct ring_reader *reader, const struct rings_sink *sink,
			    const struct piece_record *rec)
{
	u64 ips[STACK_MAX_FRAMES + PIECE_STACK_FRAMES];
	struct piece_stack stack;
	u64 nr;

	memcpy(&stack, rec, sizeof(stack));
	nr = (stack.nr_frames + PIECE_STACK_FRAMES - 1) / PIECE_STACK_FRAMES;
	if (stack.nr_frames > STACK_MAX_FRAMES || nr > reader->end - reader->read)
		return rings_refuse(r, reader);
	for (u64 i = 0; i < nr; i++)
		memcpy(&ips[i * PIECE_STACK_FRAMES], rings_record_at(reader, reader->read + i),
		       sizeof(struct piece_record));
	reader->read += nr;
	return sink->stack(sink->ctx, ring_of(r, reader), &stack, ips);
}

/* Take the next record of @reader. */
static int rings_take(struct rings *r, struct ring_reader *reader, const struct rings_sink *sink)
{
	struct piece_record rec;

	__builtin_prefetch(rings_record_at(reader, reader->read + FETCH_AHEAD));
	memcpy(&rec, rings_record_at(reader, reader->read++), sizeof(rec));
	if (rec.kind == EVENT_STACK)
		return rings_take_stack(r, reader, sink, &rec);
	if (!is_known_kind(rec.kind))
		return rings_refuse(r, reader);
	return sink->record(sink->ctx, ring_of(r, reader), time_of(r, reader->stamp), &rec);
}

/* The records of the first reader up to this stamp come next: then those of another one, or none of this poll. */
static u64 end_of_run(const struct rings *r, u64 last)
{
	for (u32 child = 1; child < 3 && child < r->nr_heap; child++)
		if (r->readers[r->heap[child]].stamp < last)
			last = r->readers[r->heap[child]].stamp;
	return last;
}

/* Take the records of @reader up to the stamp @end, the first one in any case. *@is_over: it has no more. */
static int take_run(struct rings *r, struct ring_reader *reader, const struct rings_sink *sink, u64 end,
		    bool *is_over, int *nr)
{
	int err;

	do {
		err = rings_take(r, reader, sink);
		++*nr;
		*is_over = reader->is_bad || !rings_peek(reader);
		/* A stack is several records. */
		if (!reader->is_bad && (*is_over || reader->read - reader->published >= PUBLISH_EVERY))
			rings_publish(r, reader);
	} while (!err && !*is_over && reader->stamp <= end);
	return err;
}

/*
 * A record that depends on another one (the block that it names was released, or handed out, by another thread) has its
 * stamp after that other one is in its ring. So all that a record before @last depends on is there when the rings are
 * looked at after @last was taken.
 */
static int poll_until(struct rings *r, const struct rings_sink *sink, u64 stamp)
{
	u64 now = now_stamp(r), last = stamp == ANY_STAMP || stamp < now ? stamp : now;
	int nr = 0, err = 0;

	measure_counter(r, now);
	__atomic_store_n(&r->nr_parts, __atomic_load_n(&r->shared->nr_parts, __ATOMIC_RELAXED),
			 __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	find_new(r);
	rings_begin(r);
	while (!err && r->nr_heap) {
		struct ring_reader *reader = &r->readers[r->heap[0]];
		bool is_over;

		if (reader->stamp > last)
			break;
		err = take_run(r, reader, sink, end_of_run(r, last), &is_over, &nr);
		if (is_over)
			r->heap[0] = r->heap[--r->nr_heap];
		rings_sift_down(r, 0);
	}
	for (u32 i = 0; i < r->nr_heap; i++)
		rings_publish(r, &r->readers[r->heap[i]]);
	/* A bad ring is not read again: its thread must not wait for room there. */
	if (r->nr_bad)
		__atomic_store_n(&r->shared->is_dropping, 1, __ATOMIC_RELAXED);
	return err ? err : nr;
}

int rings_poll(struct rings *r, const struct rings_sink *sink, bool is_over)
{
	return poll_until(r, sink, is_over ? ANY_STAMP : ANY_STAMP - 1);
}

int rings_poll_until(struct rings *r, const struct rings_sink *sink, u64 stamp)
{
	return poll_until(r, sink, stamp < ANY_STAMP ? stamp : ANY_STAMP - 1);
}

u64 rings_stamp(const struct rings *r, u64 time_ns, u32 number)
{
	u64 now_ns, now = r->is_sequence ? now_stamp(r) : rings_read_both(&now_ns);
	double ns_per_tick;

	if (r->is_sequence)
		return number ? now - (u32)((u32)now - number) : now;
	ns_per_tick = (double)(now_ns - r->first_ns) / (double)(now - r->first_stamp);
	return time_ns < now_ns && ns_per_tick > 0 ? now - (u64)((double)(now_ns - time_ns) / ns_per_tick)
						   : now;
}

u64 rings_now(const struct rings *r)
{
	return now_stamp(r);
}

struct rings_losses rings_losses(const struct rings *r)
{
	const struct piece_shared *s = r->shared;

	return (struct rings_losses){ .allocs = s->lost_allocs + r->nr_bad,
				      .frees = s->lost_frees + r->nr_bad,
				      .stacks = s->lost_stacks,
				      .abandoned = s->abandoned };
}

u32 rings_nr(const struct rings *r)
{
	return r->nr_readers;
}

u32 rings_filled(const struct rings *r, const struct piece_shared *s)
{
	return __atomic_load_n(&s->nr_parts, __ATOMIC_RELAXED) -
	       __atomic_load_n(&r->nr_parts, __ATOMIC_RELAXED);
}
