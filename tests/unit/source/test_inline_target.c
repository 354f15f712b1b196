/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The records of a target as its sink gets them: many at once, in order, each with the TID of its thread. */
#include "user/source/inline_target.h"

#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "bpf/event.h"
#include "user/inject/rings.h"
#include "user/lib/proc.h"
#include "user/source/inline_waker.h"

enum { RING = 7, NR_PLACES = RING + 1, TID_WORD = 4, BEFORE_STACK = 150, NR_RECORDS = 400 };

/* This process is the target, and thread_memory is what the thread pointer of its only thread points to. */
struct world {
	struct inline_target t;
	struct injection in;
	u32 thread_memory[8] __attribute__((aligned(8)));
	u32 last_tid;
	u64 nr_seen;
};

static int note_tid(void *ctx, const struct event_header *rec, size_t len)
{
	(void)len;
	((struct world *)ctx)->last_tid = rec->tid;
	return 0;
}

/* Events come in the order of their addresses. */
static int see_many(void *ctx, struct heap_event *evs, size_t nr)
{
	struct world *w = ctx;

	for (size_t i = 0; i < nr; i++) {
		assert_int_equal(evs[i].addr, ++w->nr_seen);
		assert_int_equal(evs[i].h.kind, EVENT_FREE);
		assert_int_equal(evs[i].h.tid, 100);
	}
	return 0;
}

/* The stack comes between the events before it and those behind it. */
static int see_stack(void *ctx, const struct event_header *rec, size_t len)
{
	(void)len;
	assert_int_equal(rec->kind, EVENT_STACK);
	assert_int_equal(rec->tid, 100);
	assert_int_equal(((struct world *)ctx)->nr_seen++, BEFORE_STACK);
	return 0;
}

static void *map_zeros(size_t len)
{
	void *p = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	assert_ptr_not_equal(p, MAP_FAILED);
	return p;
}

/* Returns the places of threads. */
static struct piece_place *world_init(struct world *w)
{
	struct piece_place *places = map_zeros(NR_PLACES * sizeof(*places));

	memset(w, 0, sizeof(*w));
	w->in.region = (taddr_t)(uintptr_t)places - PIECE_PLACES_OFFSET;
	places[RING].thread.key = (u64)(uintptr_t)w->thread_memory | 1;
	w->t.pid = getpid();
	w->t.in = &w->in;
	w->t.shared = map_zeros(sizeof(*w->t.shared));
	w->t.watched = w->t.shared;
	w->t.shared->is_sequence = 1;
	w->t.shared->nr_used = NR_PLACES;
	w->t.mem = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
	w->t.threads = calloc(PIECE_MAX_THREADS, sizeof(*w->t.threads));
	w->t.tid_offset = TID_WORD * sizeof(u32);
	assert_true(w->t.mem >= 0 && w->t.threads);
	assert_int_equal(rings_new(&w->t.rings, w->t.shared), 0);
	return places;
}

static void world_fini(struct world *w, struct piece_place *places)
{
	rings_free(w->t.rings);
	close(w->t.mem);
	free(w->t.threads);
	munmap(w->t.shared, sizeof(*w->t.shared));
	munmap(places, NR_PLACES * sizeof(*places));
}

/* The thread writes a record, which is read when its memory has the TID @now. Returns the TID of the record. */
static u32 tid_read(struct world *w, u32 now)
{
	const struct sink sink = { .ctx = w, .record = note_tid };
	struct piece_ring *r = &w->t.shared->rings[RING];
	struct piece_record *rec = &r->records[r->written];

	w->thread_memory[TID_WORD] = now;
	rec->kind = EVENT_FREE;
	rec->stamp = ++w->t.shared->sequence.alone;
	__atomic_store_n(&r->written, r->written + 1, __ATOMIC_RELEASE);
	assert_int_equal(inline_target_poll(&w->t, &sink, false), 1);
	return w->last_tid;
}

static void test_later_thread(void **state)
{
	struct world w;
	struct piece_place *places = world_init(&w);
	u32 unknown;

	(void)state;
	unknown = tid_read(&w, 0);
	assert_true(unknown > 4 << 20); /* no thread has it */
	/* The C library writes -1 when a thread is joined, and the target may write anything. */
	assert_int_equal(tid_read(&w, UINT32_MAX), unknown);
	assert_int_equal(tid_read(&w, (4 << 20) + 1), unknown);
	assert_int_equal(tid_read(&w, 100), 100);
	assert_int_equal(tid_read(&w, 0), 100); /* it has ended */
	assert_int_equal(tid_read(&w, 200), 200);
	assert_int_equal(tid_read(&w, UINT32_MAX), 200); /* it was joined */
	world_fini(&w, places);
}

static void test_many_at_once(void **state)
{
	struct world w;
	struct piece_place *places = world_init(&w);
	const struct sink sink = { .ctx = &w, .record = see_stack, .heap_events = see_many };
	struct piece_ring *r = &w.t.shared->rings[RING];
	struct piece_stack stack = { .kind = EVENT_STACK, .epoch = 1 };
	struct stack_event same = { .h.pid = (u32)getpid(), .epoch = 1 };

	(void)state;
	w.thread_memory[TID_WORD] = 100;
	stack.id = stack_event_id(&same);
	for (u64 i = 0; i < NR_RECORDS; i++) {
		r->records[i] = (struct piece_record){ .kind = EVENT_FREE, .addr = i + 1 };
		if (i == BEFORE_STACK)
			memcpy(&r->records[i], &stack, sizeof(stack));
		r->records[i].stamp = ++w.t.shared->sequence.alone;
	}
	__atomic_store_n(&r->written, NR_RECORDS, __ATOMIC_RELEASE);
	assert_int_equal(inline_target_poll(&w.t, &sink, false), NR_RECORDS);
	assert_int_equal(w.nr_seen, NR_RECORDS);
	world_fini(&w, places);
}

/* A wake-up of the reader takes the CPU from somebody: a quarter of a ring is worth that. */
static void test_wakes(void **state)
{
	struct world w;
	struct piece_place *places = world_init(&w);
	const struct sink sink = { .ctx = &w, .record = note_tid };
	u64 nr = 0;

	(void)state;
	assert_false(inline_target_needs_poll(&w.t, &nr));
	w.t.shared->nr_parts = PIECE_RING_RECORDS / 4 / PIECE_RING_PART - 1;
	assert_false(inline_target_needs_poll(&w.t, &nr));
	w.t.shared->nr_parts++;
	nr = 7;
	assert_true(inline_target_needs_poll(&w.t, &nr));
	assert_int_equal(nr, 7 + PIECE_RING_RECORDS / 4 / PIECE_RING_PART);
	assert_int_equal(inline_target_poll(&w.t, &sink, false), 0);
	assert_false(inline_target_needs_poll(&w.t, &nr));
	/* Somebody waits for more than room. */
	w.t.shared->end = PIECE_ENDS;
	assert_int_equal(inline_target_needs_poll(&w.t, &nr), INLINE_NEEDS_POLL);
	/* A thread spins. One that left by a jump does not. */
	w.t.shared->nr_waiting = 1;
	assert_int_equal(inline_target_needs_poll(&w.t, &nr), INLINE_NEEDS_POLL);
	w.t.shared->waited += 64;
	assert_int_equal(inline_target_needs_poll(&w.t, &nr), INLINE_NEEDS_HURRY);
	assert_int_equal(inline_target_needs_poll(&w.t, &nr), INLINE_NEEDS_POLL);
	world_fini(&w, places);
}

static u64 test_pause_after(struct inline_pace *p, int nr_looks, u64 nr_parts)
{
	for (int i = 1; i < nr_looks; i++)
		inline_waker_pause(p, nr_parts, 1);
	return inline_waker_pause(p, nr_parts, 1);
}

/*
 * The waker looks once a millisecond beside a busy server, more often only where rings fill between two looks, and
 * less often where a second would fit in a ring.
 */
static void test_pauses(void **state)
{
	enum { RING_PARTS = PIECE_RING_RECORDS / PIECE_RING_PART };
	const u64 look = 1000000;
	struct inline_pace p = { .look_ns = look, .pause_ns = look };
	u64 pause;

	(void)state;
	for (int i = 0; i < 9; i++)
		pause = inline_waker_pause(&p, (u64)i % 3, 1);
	assert_int_equal(pause, look);
	pause = test_pause_after(&p, 9, 3);
	assert_true(pause > 0 && pause < look / 4);
	assert_int_equal(inline_waker_pause(&p, 2, 1), pause);
	assert_int_equal(test_pause_after(&p, 9, 1), look);
	/* The rest of this second, and a calm one. */
	assert_int_equal(test_pause_after(&p, 2100, 0), 5 * look);
	/* A burst ends the calm, and a calm second must follow it. */
	assert_true(inline_waker_pause(&p, RING_PARTS, 1) < 5 * look);
	assert_int_equal(test_pause_after(&p, 900, 0), look);
	assert_int_equal(test_pause_after(&p, 200, 0), 5 * look);
	/* A second with more parts than a ring is not calm. */
	assert_int_equal(test_pause_after(&p, RING_PARTS + 9, 1), look);
}

/* Sampled targets are looked at less often, the more there are, but for a burst. */
static void test_pauses_of_many(void **state)
{
	enum { RING_PARTS = PIECE_RING_RECORDS / PIECE_RING_PART, NR = 200, NR_LOOKS = 250 };
	const u64 look = 5000000;
	struct inline_pace p = { .look_ns = look, .pause_ns = look };

	(void)state;
	for (int i = 0; i < NR_LOOKS; i++)
		inline_waker_pause(&p, 0, NR);
	assert_int_equal(inline_waker_pause(&p, 0, NR), 20 * look);
	assert_int_equal(inline_waker_pause(&p, 0, 3 * NR / 4), 15 * look);
	assert_int_equal(inline_waker_pause(&p, 0, 1), 10 * look);
	assert_true(inline_waker_pause(&p, RING_PARTS, NR) <= look);
	for (int i = 0; i < NR_LOOKS / 5; i++)
		assert_true(inline_waker_pause(&p, 0, NR) <= look);
}

/* A process that sleeps in vfork() until it is killed. */
static pid_t start_parent(void)
{
	struct proc_stat stat = { 0 };
	pid_t pid = fork();

	if (!pid && !vfork()) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		pause();
		_exit(0);
	}
	while (stat.state != 'D')
		assert_int_equal(proc_read_stat(&stat, pid), 0);
	return pid;
}

/* The word of heaptap for the target, after a look at its end. */
static u32 look_at_end(struct world *w)
{
	const struct sink sink = { .ctx = w, .record = note_tid };

	w->t.shared->end = PIECE_ENDS;
	assert_int_equal(inline_target_poll_begun(&w->t, &sink), 0);
	assert_int_equal(w->last_tid, 0);
	return w->t.shared->end;
}

/* After many children of vfork() the end of their parent is not seen for a while only (A20). */
static void test_children_that_end(void **state)
{
	enum { MANY = 256 };
	struct world w;
	struct piece_place *places = world_init(&w);
	const struct sink sink = { .ctx = &w, .record = note_tid };

	(void)state;
	w.t.pid = start_parent();
	for (int i = 1; i < MANY; i++)
		assert_int_equal(look_at_end(&w), PIECE_END_WATCHED);
	assert_int_equal(look_at_end(&w), PIECE_MAY_END);
	assert_int_equal(inline_target_poll_begun(&w.t, &sink), 0);
	assert_int_equal(w.t.shared->end, PIECE_MAY_END);
	w.t.unseen_ns = 1;
	assert_int_equal(inline_target_poll_begun(&w.t, &sink), 0);
	assert_int_equal(w.t.shared->end, PIECE_END_WATCHED);
	assert_int_equal(look_at_end(&w), PIECE_END_WATCHED);
	kill(w.t.pid, SIGKILL);
	waitpid(w.t.pid, NULL, 0);
	world_fini(&w, places);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_later_thread), cmocka_unit_test(test_children_that_end),
		cmocka_unit_test(test_many_at_once), cmocka_unit_test(test_wakes),
		cmocka_unit_test(test_pauses),	     cmocka_unit_test(test_pauses_of_many)
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
