/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reads the rings of a target that has the piece of code inside, as records of bpf/event.h. */
#include "user/source/inline_target.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "user/inject/counter.h"
#include "user/inject/rings.h"
#include "user/lib/cleanup.h"
#include "user/lib/log.h"
#include "user/lib/proc.h"

/* A thread without a known TID gets a number that no thread has. */
enum { UNKNOWN_TID = 1 << 30, TID_SEARCH_BYTES = 2048 };

/*
 * How long a thread waits for room while nothing is read, in ticks: 500 ms of a counter of 3 GHz. On a machine where 17
 * threads wanted two CPUs heaptap sometimes did not run for 100 ms.
 */
static const u64 max_wait_ticks = 1500 * 1000 * 1000;

int inline_target_new(struct inline_target **out, struct guard *g, pid_t pid, u64 start_time)
{
	struct inline_target *t = calloc(1, sizeof(*t));

	if (!t)
		return -ENOMEM;
	t->pid = pid;
	t->mem = -1;
	t->in = guard_add(g, pid, start_time);
	t->threads = calloc(PIECE_MAX_THREADS, sizeof(*t->threads));
	if (!t->in || !t->threads) {
		int err = t->in ? -ENOMEM : -ENOSPC;

		inline_target_free(t);
		return err;
	}
	*out = t;
	return 0;
}

static void unmap(struct inline_target *t)
{
	rings_free(t->rings);
	t->rings = NULL;
	if (t->shared)
		munmap(t->shared, PIECE_SHARED_BYTES);
	t->shared = NULL;
	if (t->mem >= 0)
		close(t->mem);
	t->mem = -1;
}

void inline_target_free(struct inline_target *t)
{
	if (!t)
		return;
	unmap(t);
	if (t->in)
		guard_drop(t->in);
	free(t->threads);
	free(t);
}

/* Open the memory that the target shares with us, by the name that the kernel gives its mapping. */
static int open_shared(const struct inline_target *t)
{
	taddr_t start = t->in->region + PIECE_SHARED_OFFSET;
	char path[80];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/map_files/%" PRIx64 "-%" PRIx64, t->pid, start,
		 start + PIECE_SHARED_BYTES);
	fd = open(path, O_RDWR | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

int inline_target_map(struct inline_target *t, const struct source_options *o)
{
	auto_close int fd = -1;
	char path[32];
	void *mem;
	int err;

	if (t->shared)
		return 0;
	fd = open_shared(t);
	if (fd < 0)
		return fd;
	mem = mmap(NULL, PIECE_SHARED_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd,
		   (off_t)PIECE_PRIVATE_BYTES);
	if (mem == MAP_FAILED)
		return -errno;
	t->shared = mem;
	t->shared->max_wait = max_wait_ticks;
	t->shared->is_sequence = !counter_is_reliable(COUNTER_CLOCKSOURCE, COUNTER_CPUINFO);
	t->shared->has_free_stacks = o->want_free_stacks;
	snprintf(path, sizeof(path), "/proc/%d/mem", t->pid);
	t->mem = open(path, O_RDONLY | O_CLOEXEC);
	err = rings_new(&t->rings, t->shared);
	if (err)
		unmap(t);
	return err;
}

void inline_target_lose(struct inline_target *t)
{
	t->past = inline_target_losses(t);
	unmap(t);
	memset(t->threads, 0, PIECE_MAX_THREADS * sizeof(*t->threads));
	t->tid_offset = 0;
	/* Nothing is in the new program. */
	*t->in = (struct injection){ .state = INJECT_NOTHING,
				     .pid = t->in->pid,
				     .start_time = t->in->start_time };
}

/* ---- TIDs ---- */

static bool is_among(const pid_t *tids, size_t nr, u32 tid)
{
	for (size_t i = 0; i < nr; i++)
		if ((u32)tids[i] == tid)
			return true;
	return false;
}

/* Where behind the thread pointer @tp is the TID of a thread of the process? 0 = nowhere. */
static u32 search_tid(const struct inline_target *t, u64 tp)
{
	auto_free u32 *words = malloc(TID_SEARCH_BYTES);
	auto_free pid_t *tids = NULL;
	size_t nr = 0;
	ssize_t got = words ? pread(t->mem, words, TID_SEARCH_BYTES, (off_t)tp) : -1;

	if (got <= 0 || proc_threads(t->pid, &tids, &nr))
		return 0;
	for (size_t i = 1; i < (size_t)got / sizeof(*words); i++)
		if (is_among(tids, nr, words[i]))
			return (u32)(i * sizeof(*words));
	return 0;
}

/* The TID of the thread that writes to ring @ring. The C library keeps it near the thread pointer. */
static u32 find_tid(struct inline_target *t, u32 ring)
{
	const u64 at =
		t->in->region + PIECE_PRIVATE_OFFSET + offsetof(struct piece_private, keys) + ring * 8ULL;
	u64 tp = 0;
	u32 tid = 0;

	if (t->mem < 0 || pread(t->mem, &tp, sizeof(tp), (off_t)at) != sizeof(tp))
		return 0;
	tp &= ~7ULL;
	if (!t->tid_offset)
		t->tid_offset = search_tid(t, tp);
	if (!t->tid_offset || pread(t->mem, &tid, sizeof(tid), (off_t)(tp + t->tid_offset)) != sizeof(tid))
		return 0;
	return tid;
}

/*
 * A new thread may have the thread pointer, and so the ring, of an earlier one: there is one look in each poll. A
 * thread that has ended keeps the TID that it had.
 */
static u32 tid_of(struct inline_target *t, u32 ring)
{
	struct ring_thread *thread = &t->threads[ring];
	u32 tid;

	if (thread->nr_poll == t->nr_polls)
		return thread->tid;
	thread->nr_poll = t->nr_polls;
	tid = find_tid(t, ring);
	if (tid || !thread->tid)
		thread->tid = tid ? tid : UNKNOWN_TID + ring;
	return thread->tid;
}

/* ---- records ---- */

struct delivery {
	struct inline_target *target;
	const struct sink *sink;
};

static int deliver(void *ctx, u32 ring, u64 time_ns, const struct piece_record *rec)
{
	struct delivery *d = ctx;
	struct heap_event ev = { .h = { .kind = rec->kind, .flags = rec->flags, .pid = (u32)d->target->pid },
				 .time_ns = time_ns,
				 .addr = rec->addr,
				 .old_addr = rec->old_addr,
				 .size = rec->size,
				 .stack = rec->stack };

	ev.h.fn = rec->fn < ALLOC_MAX_FNS ? rec->fn : 0;
	ev.h.tid = tid_of(d->target, ring);
	return d->sink->record(d->sink->ctx, &ev.h, sizeof(ev));
}

int inline_target_poll(struct inline_target *t, const struct sink *sink, bool is_over)
{
	struct delivery d = { .target = t, .sink = sink };
	const struct rings_sink to = { .ctx = &d, .record = deliver };

	if (!t->rings)
		return 0;
	t->nr_polls++;
	return rings_poll(t->rings, &to, is_over);
}

struct losses inline_target_losses(const struct inline_target *t)
{
	struct losses sum = t->past;
	struct rings_losses l = t->rings ? rings_losses(t->rings) : (struct rings_losses){ 0 };

	sum.allocs += l.allocs;
	sum.frees += l.frees;
	sum.other += l.abandoned;
	sum.abandoned += l.abandoned;
	return sum;
}
