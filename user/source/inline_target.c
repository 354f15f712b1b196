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
#include <sys/syscall.h>
#include <unistd.h>

#include "user/inject/counter.h"
#include "user/inject/rings.h"
#include "user/lib/cleanup.h"
#include "user/lib/log.h"
#include "user/lib/proc.h"
#include "user/lib/random.h"
#include "user/source/inline_replaced.h"
#include "user/source/inline_room.h"
#include "user/source/inline_stacks.h"

/* A thread without a known TID gets a number that no thread has: Linux has none above MAX_TID (PID_MAX_LIMIT). */
enum { UNKNOWN_TID = 1 << 30, MAX_TID = 1 << 22, TID_SEARCH_BYTES = 2048 };

/*
 * Stamps by a sequence that all threads share, where the counter cannot order records, or where a few CPUs share the
 * sequence: a stamp then takes 2 ns. By the counter, which must wait for earlier loads, it takes 19 ns on a virtual
 * machine.
 */
enum { FEW_CPUS = 4 };
/*
 * Threads that are looked at, at an end. Children of vfork() that end so, and wait for us: after that many the end of
 * the process is not seen for a second, and then some more of them.
 */
enum { MAX_LOOKED_AT = 512, MAX_ENDED = 256, MORE_ENDED = 16 };
/* Parts of a ring, which has eight, or of several. The first one may have begun long ago. */
enum { ENOUGH_PARTS = 2 };
#define MAX_WAIT_NS (500ULL * 1000 * 1000)
#define OWN_WAIT_NS (5ULL * 1000 * 1000 * 1000)
#define END_WAIT_NS (100ULL * 1000 * 1000)

static bool wants_sequence(void)
{
	return code_native()->reorders || sysconf(_SC_NPROCESSORS_ONLN) <= FEW_CPUS ||
	       !counter_is_reliable(COUNTER_CLOCKSOURCE, COUNTER_CPUINFO);
}

/*
 * How long a thread waits for room while nothing is read, in rounds. With 100 ms, records were lost where 8 threads at
 * full speed shared two CPUs with a load of 25: heaptap sometimes does not run for so long. Where it is the ptracer it
 * also reads nothing while it puts code into a program that begins.
 */
static u64 max_wait_rounds(const struct source_options *o)
{
	return o->drops_when_full ? 0 : counter_rounds(o->stops_at_maps ? OWN_WAIT_NS : MAX_WAIT_NS);
}

/* @in, NULL = there is no room for it, is the new target's also after an error. */
static int new_target(struct inline_target **out, struct guard *g, struct injection *in, pid_t pid)
{
	struct inline_target *t = calloc(1, sizeof(*t));

	if (t)
		*t = (struct inline_target){ .pid = pid, .mem = -1, .guard = g, .in = in };
	else if (in)
		guard_drop(in);
	if (t && in)
		t->threads = calloc(PIECE_MAX_THREADS, sizeof(*t->threads));
	if (!t || !t->threads) {
		inline_target_free(t);
		return in ? -ENOMEM : -ENOSPC;
	}
	*out = t;
	return 0;
}

int inline_target_new(struct inline_target **out, struct guard *g, pid_t pid, u64 start_time)
{
	return new_target(out, g, guard_add(g, pid, start_time), pid);
}

int inline_target_copy(struct inline_target **out, struct guard *g, const struct inline_target *parent,
		       pid_t pid, u64 start_time)
{
	struct inline_target *t;
	int err;

	if (parent->sight >= INLINE_AWAITS_CODE) {
		err = inline_target_new(out, g, pid, start_time);
		if (!err)
			(*out)->sight = parent->sight;
		return err;
	}
	err = new_target(&t, g, guard_copy(g, parent->in, pid, start_time), pid);
	if (err)
		return err;
	t->tid_offset = parent->tid_offset;
	t->unborn = malloc(sizeof(parent->shared->probes));
	if (!t->unborn) {
		inline_target_free(t);
		return -ENOMEM;
	}
	memcpy(t->unborn, parent->shared->probes, sizeof(parent->shared->probes));
	*out = t;
	return 0;
}

static void inline_target_unmap(struct inline_target *t)
{
	rings_free(t->rings);
	t->rings = NULL;
	inline_stacks_free(t->stacks);
	t->stacks = NULL;
	if (t->tables)
		munmap(t->tables, PIECE_TABLES_BYTES);
	t->tables = NULL;
	if (t->watched)
		munmap((void *)(uintptr_t)t->watched, PIECE_PAGE);
	if (t->shared)
		munmap(t->shared, PIECE_SHARED_BYTES);
	t->watched = t->shared = NULL;
	if (t->mem >= 0)
		close(t->mem);
	t->mem = -1;
}

void inline_target_free(struct inline_target *t)
{
	if (!t)
		return;
	inline_target_unmap(t);
	if (t->in && !t->is_left)
		guard_drop(t->in);
	free(t->threads);
	free(t->unborn);
	free(t);
}

/* Open the memory that the target shares with us: it was left open, or has a name that the kernel gives its mapping. */
static int open_shared(const struct inline_target *t)
{
	taddr_t start = t->in->region + PIECE_SHARED_OFFSET;
	char path[80];
	int fd = guard_take_file(t->guard);

	if (fd >= 0)
		return fd;

	snprintf(path, sizeof(path), "/proc/%d/map_files/%" PRIx64 "-%" PRIx64, t->pid, start,
		 start + PIECE_SHARED_MAPPED(t->in->nr_places));
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd >= 0)
		return fd;
	fd = -errno;
	if (fd == -EPERM)
		snprintf(t->in->why, sizeof(t->in->why),
			 "its memory cannot be shared without CAP_CHECKPOINT_RESTORE or CAP_SYS_ADMIN");
	return fd;
}

/* Map @bytes of the file behind @fd. NULL: no room. */
static void *map_part(int fd, u64 bytes, u64 offset)
{
	void *mem = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, (off_t)offset);

	return mem == MAP_FAILED ? NULL : mem;
}

/* Addresses of heaptap's own are missing, of which it takes as many as the target may ever need. */
static int no_room(const struct inline_target *t, u64 bytes)
{
	snprintf(t->in->why, sizeof(t->in->why),
		 "heaptap itself may not map %.1f GB of addresses (ulimit -v)", (double)bytes / 1e9);
	return -ENOMEM;
}

static int map_tables(struct inline_target *t, int fd, const struct source_options *o)
{
	const struct inline_room room = { .ctx = t, .reach = inline_room_shards };

	t->tables = map_part(fd, PIECE_TABLES_BYTES, PIECE_FILE_TABLES);
	if (!t->tables)
		return no_room(t, PIECE_TABLES_BYTES);
	t->tables->max_wait = t->max_wait = max_wait_rounds(o);
	t->tables->nr_cpus = (u32)sysconf(_SC_NPROCESSORS_ONLN);
	/* A followed process is traced by ptrace. A thread that waits has one CPU, and heaptap needs another one. */
	if (o->wants_end && !o->max_followed && t->tables->nr_cpus > 1)
		t->shared->end = PIECE_END_WATCHED;
	return o->depth ? inline_stacks_new(&t->stacks, t->pid, t->shared, t->tables, &room) : 0;
}

/* Room for the sampled blocks of a heap that is as large as nearly all. Its memory is used as it fills. */
u32 inline_target_buckets(const struct source_options *o)
{
	const u64 largest_heap = 32ULL << 30, least = 1 << 13, changing = 1 << 14;
	u64 nr = o->adapts_samples ? changing : least;

	/* Of distances that change sample_pace_next() bounds the blocks. */
	while (o->sample_bytes && nr * PIECE_BUCKET_BLOCKS * o->sample_bytes < largest_heap &&
	       nr < PIECE_MAX_BUCKETS && !o->adapts_samples)
		nr *= 2;
	return o->sample_bytes ? (u32)nr : 0;
}

static void inline_target_begin_samples(struct inline_target *t, const struct source_options *o)
{
	u64 seed = (uintptr_t)t;

	if (o->sample_bytes && random_fill(&seed, sizeof(seed)))
		debug("inline: samples: a seed that can be guessed");
	t->shared->sample_seed = seed;
	t->shared->nr_buckets = t->in->nr_buckets;
	t->shared->sample_bytes = o->sample_bytes;
	t->pace = (struct sample_pace){ .is_on = o->adapts_samples, .log = SAMPLE_FIRST_LOG };
}

int inline_target_map(struct inline_target *t, const struct source_options *o)
{
	auto_close int fd = -1;
	char path[32];
	int err;

	if (t->shared)
		return 0;
	fd = open_shared(t);
	if (fd < 0)
		return fd;
	t->shared = map_part(fd, PIECE_SHARED_BYTES, PIECE_FILE_SHARED);
	t->watched = map_part(fd, PIECE_PAGE, PIECE_FILE_SHARED);
	if (!t->shared || !t->watched) {
		inline_target_unmap(t);
		return no_room(t, PIECE_SHARED_BYTES);
	}
	t->is_quiet = o->is_auto;
	t->shared->nr_places = t->in->nr_places;
	t->shared->is_sequence = wants_sequence() || t->in->has_no_counter;
	/* A record of BPF that has 0 does not know the number. */
	t->shared->sequence.alone = 1;
	/* No thread counts alone where others may see too late that it does. */
	if (code_native()->reorders)
		t->shared->sequence.all = t->shared->sequence.alone;
	/* A forked child has places for all threads of its parent: a new thread may get one of them. */
	for (u32 i = 0; i < t->shared->nr_used && i < 2; i++)
		sequence_join(&t->shared->sequence);
	t->shared->has_free_stacks = o->want_free_stacks;
	t->shared->pid = (u32)t->pid;
	t->shared->depth = o->depth;
	t->shared->is_paused = t->is_paused;
	inline_target_begin_samples(t, o);
	snprintf(path, sizeof(path), "/proc/%d/mem", t->pid);
	t->mem = open(path, O_RDONLY | O_CLOEXEC);
	err = map_tables(t, fd, o);
	if (!err)
		err = rings_new(&t->rings, t->shared);
	if (err)
		inline_target_unmap(t);
	return err;
}

int inline_target_born(struct inline_target *t, const struct source_options *o)
{
	auto_free struct piece_probe *probes = take_ptr(t->unborn);
	int err = guard_renew(t->guard, t->in);

	if (!err)
		err = inline_target_map(t, o);
	if (!err)
		memcpy(t->shared->probes, probes, sizeof(t->shared->probes));
	return err;
}

int inline_target_update(struct inline_target *t, const struct target *target, struct cfi_ahead *ahead)
{
	return t->stacks ? inline_stacks_set(t->stacks, target, ahead) : 0;
}

void inline_target_take_out(struct inline_target *t)
{
	int err = guard_take_out(t->guard, t->in);

	if (err == -EBUSY && !*t->in->why)
		info("inline: PID %d: its functions are as before, but some of our memory stays in it: a thread may "
		     "still return through it",
		     t->pid);
	else if (err && err != -ESRCH)
		warn("inline: PID %d: the probes stay in it, without effect: %s%s", t->pid,
		     *t->in->why ? t->in->why : strerror(-err),
		     err == -ETIME ? ": a process of heaptap stays, and takes them out when they do" : "");
	t->is_left = err == -ETIME;
	if (t->rings)
		log_line(
			t->is_quiet ? LOG_DEBUG : LOG_INFO,
			"inline: PID %d: stopped for %.1f ms to put the code in, and for %.1f ms to take it out; "
			"up to %.1f MiB of its memory were ours",
			t->pid, (double)t->in->put_in_ns / 1e6, (double)t->in->take_out_ns / 1e6,
			(double)inline_target_bytes(t) / (1 << 20));
}

int inline_target_leave(struct inline_target *t)
{
	int err = guard_take_out(t->guard, t->in);

	if (err == -EINPROGRESS)
		return err;
	t->sight = t->in->state == INJECT_NOTHING ? INLINE_DECLINED : INLINE_SEES;
	if (t->sight == INLINE_DECLINED)
		return 0;
	warn("inline: PID %d: BPF cannot see its calls, because code of ours stays in it: %s", t->pid,
	     *t->in->why ? t->in->why : strerror(-err));
	return -EOPNOTSUPP;
}

/* Has a thread of it spun since the last look? Their number is no sign: a jump out of a handler leaves one in it. */
static bool inline_target_has_spun(struct inline_target *t)
{
	u64 waited = __atomic_load_n(&t->watched->waited, __ATOMIC_RELAXED);
	bool has_spun = waited != t->waited;

	t->waited = waited;
	return has_spun;
}

enum inline_need inline_target_needs_poll(struct inline_target *t, u64 *nr_parts)
{
	const struct piece_shared *s = t->watched;

	if (!t->rings)
		return INLINE_NEEDS_NOTHING;
	*nr_parts += __atomic_load_n(&s->nr_parts, __ATOMIC_RELAXED);
	if (inline_target_has_spun(t))
		return INLINE_NEEDS_HURRY;
	if (rings_filled(t->rings, s) >= ENOUGH_PARTS || s->end == PIECE_ENDS || inline_room_wants(t) ||
	    (t->stacks && inline_stacks_wants_look(t->stacks, s)))
		return INLINE_NEEDS_POLL;
	return INLINE_NEEDS_NOTHING;
}

void inline_target_sleep(struct inline_target *t, bool is_asleep)
{
	if (t->tables)
		__atomic_store_n(&t->tables->max_wait, is_asleep ? 0 : t->max_wait, __ATOMIC_RELAXED);
}

int inline_target_set_depth(struct inline_target *t, u32 depth)
{
	if (!t->stacks)
		return depth ? -EOPNOTSUPP : 0;
	t->shared->depth = depth;
	inline_stacks_renew(t->stacks);
	return 0;
}

void inline_target_forget_stacks(struct inline_target *t)
{
	if (!t->stacks)
		return;
	memset(t->shared->seen, 0, sizeof(t->shared->seen));
	inline_stacks_renew(t->stacks);
}

u64 inline_target_bytes(const struct inline_target *t)
{
	u64 per_thread = sizeof(struct piece_ring) +
			 (t->stacks ? sizeof(struct piece_place) : sizeof(struct piece_thread));

	if (!t->rings)
		return 0;
	return PIECE_CODE_BYTES + rings_nr(t->rings) * per_thread +
	       (t->stacks ? sizeof(((struct piece_private *)NULL)->rules) + inline_stacks_bytes(t->stacks)
			  : 0);
}

void inline_target_lose(struct inline_target *t)
{
	t->past = inline_target_losses(t);
	t->nr_replaced = 0;
	inline_target_unmap(t);
	memset(t->threads, 0, PIECE_MAX_THREADS * sizeof(*t->threads));
	t->tid_offset = 0;
	t->poll_stamp = t->next_room_ns = t->end_ns = 0;
	t->nr_ended = 0;
	free(take_ptr(t->unborn));
	t->wants_update = t->is_paused = false;
	t->has_twins = t->is_leaving = t->is_open = false;
	t->sight = INLINE_SEES;
	/* Nothing is in the new program. */
	*t->in = (struct injection){ .state = INJECT_NOTHING,
				     .pid = t->in->pid,
				     .owner = t->in->owner,
				     .owner_start = t->in->owner_start,
				     .keeps_file = t->in->keeps_file,
				     .file = -1,
				     .start_time = t->in->start_time };
}

void inline_target_note_late(struct inline_target *t, const char *advice)
{
	t->past.allocs++;
	t->past.late++;
	if (!t->has_told_late)
		warn("inline: PID %d has executed a program: its first calls are missing, or all if it soon ends, "
		     "which counts as one loss%s",
		     t->pid, advice);
	t->has_told_late = true;
}

bool inline_target_is_intact(const struct inline_target *t, taddr_t start, taddr_t end)
{
	bool is_any = false;

	for (u32 i = 0; i < t->in->nr_patches && t->mem >= 0; i++) {
		const struct inject_patch *p = &t->in->patches[i];
		u8 now[sizeof(p->old)];

		if (p->addr < start || p->addr >= end)
			continue;
		is_any = true;
		if (pread(t->mem, now, p->len, (off_t)p->addr) != p->len || memcmp(now, p->old, p->len))
			return true;
	}
	return !is_any;
}

/* ---- TIDs ---- */

static bool inline_target_is_among(const pid_t *tids, size_t nr, u32 tid)
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
		if (inline_target_is_among(tids, nr, words[i]))
			return (u32)(i * sizeof(*words));
	return 0;
}

/*
 * The TID of the thread that writes to ring @ring, 0 = not known. The C library keeps it near the thread pointer. It
 * writes 0 there when the thread ends and -1 when the thread is joined, and the target may write anything.
 */
static u32 find_tid(struct inline_target *t, u32 ring)
{
	const u64 at = t->in->region + PIECE_PLACES_OFFSET + ring * sizeof(struct piece_place) +
		       offsetof(struct piece_place, thread.key);
	u64 tp = 0;
	u32 tid = 0;

	if (t->mem < 0 || pread(t->mem, &tp, sizeof(tp), (off_t)at) != sizeof(tp))
		return 0;
	tp &= ~7ULL;
	if (!t->tid_offset)
		t->tid_offset = search_tid(t, tp);
	if (!t->tid_offset || pread(t->mem, &tid, sizeof(tid), (off_t)(tp + t->tid_offset)) != sizeof(tid))
		return 0;
	return tid <= MAX_TID ? tid : 0;
}

/*
 * A new thread may have the thread pointer, and so the ring, of an earlier one: there is one look in each poll. A
 * thread that has ended keeps the TID that it had.
 */
static __attribute__((noinline)) void look_for_tid(struct inline_target *t, u32 ring)
{
	struct ring_thread *thread = &t->threads[ring];
	u32 tid = find_tid(t, ring);

	thread->nr_poll = t->nr_polls;
	if (tid || !thread->tid)
		thread->tid = tid ? tid : UNKNOWN_TID + ring;
}

u32 inline_target_tid(struct inline_target *t, u32 ring)
{
	return t->rings && ring < rings_nr(t->rings) ? find_tid(t, ring) : 0;
}

static u32 inline_target_tid_of(struct inline_target *t, u32 ring)
{
	if (t->threads[ring].nr_poll != t->nr_polls)
		look_for_tid(t, ring);
	return t->threads[ring].tid;
}

/* ---- records ---- */

enum { NR_AT_ONCE = 64 };

struct delivery {
	struct inline_target *target;
	const struct sink *sink;
	size_t nr; /* events that the sink does not have yet */
	struct heap_event events[NR_AT_ONCE];
};

static int inline_target_flush(struct delivery *d)
{
	size_t nr = d->nr;
	int err = 0;

	d->nr = 0;
	for (size_t i = 0; i < nr; i++)
		d->events[i].h.tid = inline_target_tid_of(d->target, d->events[i].h.tid);
	if (d->sink->heap_events && nr)
		return d->sink->heap_events(d->sink->ctx, d->events, nr);
	for (size_t i = 0; i < nr && !err; i++)
		err = d->sink->record(d->sink->ctx, &d->events[i].h, sizeof(d->events[i]));
	return err;
}

static int inline_target_deliver(void *ctx, u32 ring, u64 time_ns, const struct piece_record *rec)
{
	struct delivery *d = ctx;
	struct heap_event *ev = &d->events[d->nr++];

	ev->h.kind = rec->kind;
	ev->h.flags = rec->flags;
	ev->h.fn = rec->fn < ALLOC_MAX_FNS ? rec->fn : 0;
	ev->h.pid = (u32)d->target->pid;
	ev->h.tid = ring; /* until inline_target_flush() */
	ev->h.distance = rec->distance;
	ev->time_ns = time_ns;
	ev->addr = rec->addr;
	ev->old_addr = rec->old_addr;
	ev->size = rec->size;
	ev->stack = rec->stack;
	if (d->target->pace.is_on)
		sample_pace_count(&d->target->pace, ev);
	return d->nr == NR_AT_ONCE ? inline_target_flush(d) : 0;
}

/* The id must be that of the stack: another stack may have it already. */
static int deliver_stack(void *ctx, u32 ring, const struct piece_stack *stack, const u64 *ips)
{
	struct delivery *d = ctx;
	struct stack_event ev = { .h = { .kind = EVENT_STACK, .pid = (u32)d->target->pid },
				  .id = stack->id,
				  .epoch = stack->epoch,
				  .nr_frames = stack->nr_frames,
				  .end = stack->end };
	int err = inline_target_flush(d);

	if (err)
		return err;
	ev.h.tid = inline_target_tid_of(d->target, ring);
	memcpy(ev.ips, ips, stack->nr_frames * sizeof(*ips));
	if (ev.end >= NR_STACK_ENDS || stack_event_id(&ev) != ev.id) {
		d->target->past.stacks++;
		return 0;
	}
	return d->sink->record(d->sink->ctx, &ev.h, offsetof(struct stack_event, ips) + ev.nr_frames * 8);
}

enum { POLL_ALL, POLL_NOW, POLL_UNTIL };

static int poll_rings(struct inline_target *t, const struct sink *sink, int how, u64 stamp)
{
	struct delivery d;
	const struct rings_sink to = { .ctx = &d, .record = inline_target_deliver, .stack = deliver_stack };
	int nr, err;

	d.target = t;
	d.sink = sink;
	d.nr = 0;
	t->nr_polls++;
	if (t->stacks)
		inline_stacks_look(t->stacks);
	nr = how == POLL_UNTIL ? rings_poll_until(t->rings, &to, stamp)
			       : rings_poll(t->rings, &to, how == POLL_ALL);
	err = inline_target_flush(&d);
	if (t->pace.is_on && nr >= 0)
		__atomic_store_n(&t->shared->sample_bytes,
				 sample_pace_next(&t->pace, (u64)nr, clock_now_ns()), __ATOMIC_RELAXED);
	return nr < 0 || !err ? nr : err;
}

int inline_target_poll(struct inline_target *t, const struct sink *sink, bool is_over)
{
	return t->rings ? poll_rings(t, sink, is_over ? POLL_ALL : POLL_NOW, 0) : 0;
}

int inline_target_poll_until(struct inline_target *t, const struct sink *sink, u64 time_ns, u32 number)
{
	/* Breakpoints saw it before all calls in the rings. */
	if (!t->rings || time_ns < t->open_ns)
		return 0;
	return poll_rings(t, sink, POLL_UNTIL, rings_stamp(t->rings, time_ns, number));
}

void inline_target_begin_poll(struct inline_target *t, u32 sample_sum)
{
	t->pace.sum = sample_sum;
	t->poll_stamp = t->rings ? rings_now(t->rings) : 0;
}

/* Is thread @tid in a system call that makes a child? */
static bool inline_target_makes_child(pid_t tid)
{
	static const long calls[] = {
#ifdef SYS_vfork
		SYS_vfork,
#endif
		SYS_clone, SYS_clone3
	};
	auto_fclose FILE *f = NULL;
	char path[32], text[32] = "";
	bool is_one = false;

	snprintf(path, sizeof(path), "/proc/%d/syscall", tid);
	f = fopen(path, "re");
	if (f && fgets(text, sizeof(text), f) && *text >= '0' && *text <= '9')
		for (size_t i = 0; i < ARRAY_SIZE(calls); i++)
			is_one |= strtol(text, NULL, 10) == calls[i];
	return is_one;
}

/* Does a thread sleep in vfork()? Then it is the child, in the same memory, that calls _exit(). */
static bool inline_target_awaits_child(pid_t pid)
{
	auto_free pid_t *tids = NULL;
	struct proc_stat stat;
	size_t nr = 0;
	bool awaits = false;

	if (proc_threads(pid, &tids, &nr))
		return false;
	for (size_t i = 0; i < nr && i < MAX_LOOKED_AT && !awaits; i++)
		awaits = !proc_read_stat(&stat, tids[i]) && stat.state == 'D' &&
			 inline_target_makes_child(tids[i]);
	return awaits;
}

/*
 * If the process is about to end, and a thread waits for us, tell it by a record, once. The thread goes on when we
 * trace it by ptrace, or some time later.
 */
static int inline_target_look_at_end(struct inline_target *t, const struct sink *sink)
{
	const struct process_event ev = {
		.h = { .kind = EVENT_MAPS, .flags = EVENT_ENDING, .pid = (u32)t->pid, .tid = (u32)t->pid },
		.time_ns = clock_now_ns()
	};

	if (t->unseen_ns && ev.time_ns >= t->unseen_ns) {
		t->unseen_ns = 0;
		t->nr_ended = MAX_ENDED - MORE_ENDED;
		__atomic_store_n(&t->shared->end, PIECE_END_WATCHED, __ATOMIC_RELEASE);
	}
	if (__atomic_load_n(&t->shared->end, __ATOMIC_ACQUIRE) != PIECE_ENDS)
		return 0;
	if (!t->end_ns && inline_target_awaits_child(t->pid)) {
		t->unseen_ns = ++t->nr_ended < MAX_ENDED ? 0 : ev.time_ns + SECOND_NS;
		__atomic_store_n(&t->shared->end, t->unseen_ns ? PIECE_MAY_END : PIECE_END_WATCHED,
				 __ATOMIC_RELEASE);
		return 0;
	}
	if (!t->end_ns)
		t->end_ns = ev.time_ns + END_WAIT_NS;
	else if (!proc_is_our_tracee(t->pid) && ev.time_ns < t->end_ns)
		return 0;
	else
		__atomic_store_n(&t->shared->end, PIECE_MAY_END, __ATOMIC_RELEASE);
	return t->shared->end == PIECE_ENDS ? sink->record(sink->ctx, &ev.h, sizeof(ev)) : 0;
}

int inline_target_poll_begun(struct inline_target *t, const struct sink *sink)
{
	int nr = t->rings ? poll_rings(t, sink, POLL_UNTIL, t->poll_stamp) : 0;
	int err = t->rings && nr >= 0 ? inline_target_look_at_end(t, sink) : 0;

	inline_replaced_poll(t);
	return err ? err : nr;
}

struct losses inline_target_losses(const struct inline_target *t)
{
	struct losses sum = t->past;
	struct rings_losses l = t->rings ? rings_losses(t->rings) : (struct rings_losses){ 0 };

	sum.allocs += l.allocs;
	sum.frees += l.frees;
	sum.stacks += l.stacks;
	sum.other += l.abandoned + t->nr_replaced;
	sum.overwritten += t->nr_replaced;
	sum.abandoned += l.abandoned;
	sum.by_probes += t->sight == INLINE_DECLINED;
	return sum;
}
