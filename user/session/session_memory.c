/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Limits the books of a session to --max-memory, and to what its cgroup has left: lost events are better than a dead
 * heaptap.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "user/heap/fold.h"
#include "user/heap/heap.h"
#include "user/heap/stacks.h"
#include "user/lib/clock.h"
#include "user/lib/human.h"
#include "user/lib/log.h"
#include "user/scan/snapshot_price.h"
#include "user/session/session_private.h"
#include "user/session/session_process.h"
#include "user/session/session_told.h"

/* Looks, in ns, and bytes: what stays free for the report; what cannot be used up in one period. */
static const u64 PERIOD = 250000000, FOR_REPORT = 4 << 20, PLENTY = 128 << 20;
/* Of --max-memory, for names and all that is no book, at most a half. */
static const u64 DEFAULT_MAX = 2ULL << 30, FOR_ALL_ELSE = 64 << 20, MAX_STEP = 32 << 20;
enum { MAX_PERIODS = 8, FOLD_PARTS = 8, MAX_YOUNG = 1 << 15 };

static void say_short(struct session *s, u64 room)
{
	bool has_lost = false;

	for (size_t i = 0; i < s->nr_processes && !s->bound.is_short_told; i++)
		has_lost |= heap_lost(s->processes[i]->heap) > 0;
	if (!has_lost)
		return;
	s->bound.is_short_told = true;
	warn("%s: only %s of memory are left for heaptap: events that need more are lost, and counted",
	     s->options->command, human_bytes(room).text);
}

/* Each look reads all cgroups above heaptap: with more room the next one is later. */
static u64 until_next_look(u64 room)
{
	u64 periods = room / PLENTY;

	if (periods > MAX_PERIODS)
		periods = MAX_PERIODS;
	return (periods ? periods : 1) * PERIOD;
}

/* Limit the books, if little memory is left on the machine or in the cgroup. */
static void look_at_room(struct session *s)
{
	u64 now_ns = clock_now_ns(), room;

	if (s->is_replayed || now_ns < s->bound.next_look_ns)
		return;
	room = snapshot_price_room(getpid());
	s->bound.next_look_ns = now_ns + until_next_look(room);
	s->bound.is_short = room < PLENTY;
	s->bound.room = room > FOR_REPORT ? (room - FOR_REPORT) / 2 : 0;
	if (s->bound.is_short)
		say_short(s, room);
}

/* ---- --max-memory ---- */

u64 session_default_memory(void)
{
	u64 half = snapshot_price_room(getpid()) / 2;

	return half < DEFAULT_MAX ? half : DEFAULT_MAX;
}

/* The books, and a report of them. */
static u64 books_of(const struct session *s)
{
	u64 bytes = session_memory(s);

	for (size_t i = 0; i < s->nr_processes; i++)
		bytes += heap_row_count(s->processes[i]->heap) * REPORT_ROW_BYTES;
	return bytes;
}

static u64 books_limit(const struct session *s)
{
	return s->bound.max - (s->bound.max / 2 < FOR_ALL_ELSE ? s->bound.max / 2 : FOR_ALL_ELSE);
}

u64 session_memory_left(const struct session *s)
{
	u64 bytes = session_memory(s);

	return bytes < s->bound.max ? s->bound.max - bytes : 1;
}

/* The rows of a process have new numbers. */
static void session_memory_follow_rows(void *ctx, size_t i, const u32 *to, size_t nr)
{
	struct session *s = ctx;
	struct process *p = s->processes[i];

	for (size_t row = 0; row < p->nr_reported && row < nr; row++) {
		u64 bytes = p->reported[row];

		p->reported[row] = 0;
		p->reported[to[row]] += bytes;
	}
	if (p->leaks)
		leaks_fold(p->leaks, to, nr);
}

/* Bytes that become free below the limit: folding takes some 100 ms at most, and is seldom needed. */
static u64 fold_step(u64 limit)
{
	return limit / FOLD_PARTS < MAX_STEP ? limit / FOLD_PARTS : MAX_STEP;
}

/* Fold callers, all or the young ones, until a step is free. */
static int fold_books(struct session *s, struct heap *const *heaps, bool is_full)
{
	u64 bytes = books_of(s), wanted = books_limit(s) - fold_step(books_limit(s));
	const struct fold_wish wish = { .bytes = bytes - wanted, .is_full = is_full };

	if (bytes <= wanted)
		return 0;
	return fold_callers(s->stacks, heaps, s->nr_processes, &wish, session_memory_follow_rows, s);
}

static void say_fold(struct session *s)
{
	if (!s->bound.is_fold_told)
		log_line(
			s->is_replayed ? LOG_INFO : LOG_WARN,
			"%s: callers without live blocks are counted for the functions that called them from now "
			"on: the books have reached --max-memory %s",
			s->options->command, human_bytes(s->bound.max).text);
	s->bound.is_fold_told = true;
}

/* Fold what is young, and if that is not enough, all. */
static void session_memory_fold(struct session *s)
{
	struct heap **heaps = calloc(s->nr_processes + 1, sizeof(struct heap *));
	int err = -ENOMEM;

	for (size_t i = 0; heaps && i < s->nr_processes; i++)
		heaps[i] = s->processes[i]->heap;
	if (heaps)
		err = fold_books(s, heaps, false);
	if (!err && books_of(s) > books_limit(s) - fold_step(books_limit(s)) / 2)
		err = fold_books(s, heaps, true);
	if (err)
		debug("memory: callers cannot be folded: %s", strerror(-err));
	free(heaps);
	s->bound.fold_at_bytes = books_of(s) + fold_step(books_limit(s)) / 4;
	say_fold(s);
}

/* Blocks cannot be folded: if they are too much, events are lost. */
static void limit_heaps(struct session *s, u64 bytes)
{
	u64 max = books_limit(s) + fold_step(books_limit(s)), more = max > bytes ? max - bytes : 0;
	bool is_full = bytes > books_limit(s);

	if (s->bound.is_short && s->bound.room < more)
		more = s->bound.room;
	for (size_t i = 0; i < s->nr_processes; i++) {
		struct process *p = s->processes[i];

		if (!process_is_over(p))
			heap_set_limit(p->heap,
				       s->bound.is_short || is_full ? heap_memory(p->heap) + more : 0);
	}
}

void session_bound_memory(struct session *s)
{
	u64 bytes, limit;

	/* The books are the client's. */
	if (session_forwards(s))
		return;
	bytes = books_of(s);
	limit = books_limit(s);
	look_at_room(s);
	/* The agent is too small for that: calls with more stacks than there is room for are counted without theirs. */
	if (!IS_AGENT && bytes > limit && bytes >= s->bound.fold_at_bytes && !s->scanning) {
		session_memory_fold(s);
		bytes = books_of(s);
	} else if (!IS_AGENT && stack_table_young(s->stacks) > MAX_YOUNG) {
		stack_table_age(s->stacks);
		for (size_t i = 0; i < s->nr_processes; i++)
			heap_age(s->processes[i]->heap);
	}
	limit_heaps(s, bytes);
	/* Events come in between two of these looks. */
	stack_table_set_limit(s->stacks, stack_table_memory(s->stacks) + limit / FOLD_PARTS +
						 (bytes < limit ? limit - bytes : 0));
}

void session_begin_bound(struct session *s, u64 max)
{
	s->bound.max = max ? max : session_default_memory();
	session_bound_memory(s);
}

bool session_make_room(struct session *s)
{
	u64 before = stack_table_memory(s->stacks);

	if (!IS_AGENT && !s->scanning)
		session_memory_fold(s);
	return stack_table_memory(s->stacks) < before;
}
