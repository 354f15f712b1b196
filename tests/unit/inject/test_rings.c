/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Records of many threads in one order, and rings that a hostile target has filled. */
#include "user/inject/rings.h"

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "bpf/event.h"
#include "user/lib/clock.h"
#include "tests/unit/rounds.h"

enum { NR_THREADS = 4, NR_BLOCKS = 16, NR_ROUNDS = 2000 };

struct world {
	struct piece_shared *shared;
	struct rings *rings;
	u64 seen;
	bool is_live[NR_BLOCKS];
	u64 nr_wrong;
};

static void world_init(struct world *w)
{
	memset(w, 0, sizeof(*w));
	w->shared = mmap(NULL, sizeof(*w->shared), PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	assert_ptr_not_equal(w->shared, MAP_FAILED);
	w->shared->is_sequence = 1;
	assert_int_equal(rings_new(&w->rings, w->shared), 0);
}

static void world_fini(struct world *w)
{
	rings_free(w->rings);
	munmap(w->shared, sizeof(*w->shared));
}

/* Rings up to this one are used. */
static void use_ring(struct piece_shared *s, u32 ring)
{
	if (s->nr_used <= ring)
		s->nr_used = ring + 1;
}

/* As the piece does. */
static void put(struct piece_shared *s, u32 ring, u8 kind, u64 addr)
{
	struct piece_ring *r = &s->rings[ring];
	struct piece_record *rec = &r->records[r->written % PIECE_RING_RECORDS];

	while (r->written - __atomic_load_n(&r->read, __ATOMIC_ACQUIRE) >= PIECE_RING_RECORDS)
		;
	memset(rec, 0, sizeof(*rec));
	rec->kind = kind;
	rec->addr = addr;
	rec->stamp = sequence_next(&s->sequence);
	__atomic_store_n(&r->written, r->written + 1, __ATOMIC_RELEASE);
}

/* A block that is handed out must have been released, and the other way round. */
static int check(void *ctx, u32 ring, u64 time_ns, const struct piece_record *rec)
{
	struct world *w = ctx;
	bool is_alloc = rec->kind == EVENT_ALLOC;

	(void)ring;
	(void)time_ns;
	w->seen++;
	w->nr_wrong += w->is_live[rec->addr % NR_BLOCKS] == is_alloc;
	w->is_live[rec->addr % NR_BLOCKS] = is_alloc;
	return 0;
}

static int poll_all(struct world *w)
{
	const struct rings_sink sink = { .ctx = w, .record = check };

	return rings_poll(w->rings, &sink, false);
}

struct worker {
	struct piece_shared *shared;
	u32 ring;
	u8 *owners;   /* shared; 1 = somebody has the block */
	u32 *nr_busy; /* shared; of the other threads than the first */
};

/* Take free blocks and release them: the next owner is mostly another thread. */
static void *work(void *ctx)
{
	const struct worker *me = ctx;

	/* The first thread to come begins alone. The thread of ring 0 goes on until the others have ended. */
	sequence_join(&me->shared->sequence);
	for (u32 i = 0; me->ring ? i < NR_ROUNDS : __atomic_load_n(me->nr_busy, __ATOMIC_RELAXED); i++) {
		u32 block = (i * 7 + me->ring) % NR_BLOCKS;

		if (__atomic_exchange_n(&me->owners[block], 1, __ATOMIC_SEQ_CST))
			continue;
		put(me->shared, me->ring, EVENT_ALLOC, block);
		put(me->shared, me->ring, EVENT_FREE, block);
		__atomic_store_n(&me->owners[block], 0, __ATOMIC_SEQ_CST);
	}
	if (me->ring)
		__atomic_fetch_sub(me->nr_busy, 1, __ATOMIC_SEQ_CST);
	return NULL;
}

static void hand_over(void)
{
	struct world w;
	pthread_t threads[NR_THREADS];
	struct worker workers[NR_THREADS];
	u8 owners[NR_BLOCKS] = { 0 };
	u32 nr_busy = NR_THREADS - 1;
	u64 written = 0;

	world_init(&w);
	for (u32 i = 0; i < NR_THREADS; i++) {
		use_ring(w.shared, 100 * i);
		workers[i] = (struct worker){ w.shared, 100 * i, owners, &nr_busy };
		assert_int_equal(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
	}
	while (w.seen < NR_ROUNDS)
		assert_true(poll_all(&w) >= 0);
	/* Whoever waits for room goes on while we read. */
	for (u32 i = 0; i < NR_THREADS; i++)
		while (pthread_tryjoin_np(threads[i], NULL))
			assert_true(poll_all(&w) >= 0);
	assert_true(poll_all(&w) >= 0);
	for (u32 i = 0; i < NR_THREADS; i++)
		written += w.shared->rings[100 * i].written;
	assert_int_equal(w.seen, written);
	assert_int_equal(w.nr_wrong, 0);
	world_fini(&w);
}

/* Threads that begin while the first one is at full speed, and hand blocks over: the order is that of the blocks. */
static void test_order(void **state)
{
	(void)state;
	for (int i = 0; i < 4 * rounds(); i++)
		hand_over();
}

#if defined(__x86_64__)

/*
 * The first thread goes on for a while without seeing that it is not alone any more: its numbers stay below those of
 * the others, and the lower half of a number tells which one it is.
 */
static void test_alone(void **state)
{
	struct world w;
	struct piece_sequence *s;
	u64 first, late;

	(void)state;
	world_init(&w);
	s = &w.shared->sequence;
	s->alone = 0xfffffff0;
	sequence_join(s);
	first = sequence_next(s);
	assert_true(sequence_last(s) == first && first == 0xfffffff1);
	sequence_join(s);
	s->alone += 1000000;
	late = s->alone;
	assert_true(sequence_last(s) > late);
	sequence_join(s);
	assert_true(sequence_next(s) == first + SEQUENCE_STEP + 1);
	assert_true(sequence_last(s) == first + SEQUENCE_STEP + 1);
	assert_true(rings_stamp(w.rings, 0, (u32)first) == first);
	assert_true(rings_stamp(w.rings, 0, (u32)late) == late);
	world_fini(&w);
}

#else

/* All threads count up the same number from the start, here from 1 as heaptap sets it. */
static void test_alone(void **state)
{
	struct piece_sequence s = { .alone = 1, .all = 1 };

	(void)state;
	assert_true(sequence_last(&s) == 1);
	sequence_join(&s);
	assert_true(sequence_next(&s) == 2 && sequence_last(&s) == 2);
	sequence_join(&s);
	assert_true(sequence_next(&s) == 3 && sequence_last(&s) == 3);
	assert_true(s.alone == 1);
}

#endif

static int count_one(void *ctx, u32 ring, u64 time_ns, const struct piece_record *rec)
{
	(void)ring;
	(void)time_ns;
	assert_true(rec->kind <= EVENT_REALLOC_END);
	++*(u64 *)ctx;
	return 0;
}

/* Positions, numbers of rings, and kinds that make no sense. */
static void test_hostile(void **state)
{
	struct world w;
	u64 nr = 0;
	const struct rings_sink sink = { .ctx = &nr, .record = count_one };

	(void)state;
	world_init(&w);
	w.shared->nr_used = 4;
	w.shared->rings[0].written = 1ULL << 40;
	put(w.shared, 1, 200, 1);
	put(w.shared, 2, 99, 1);
	put(w.shared, 3, EVENT_ALLOC, 1);
	w.shared->nr_used = 0xffffffff;
	assert_true(rings_poll(w.rings, &sink, true) >= 0);
	assert_int_equal(nr, 1);
	assert_int_equal(rings_losses(w.rings).allocs, 3);
	/* Threads must not wait for room in rings that nobody reads. (T5) */
	assert_true(w.shared->is_dropping);
	/* A lost call is counted once, as what it is. (T5) */
	w.shared->lost_allocs = 5;
	w.shared->lost_frees = 7;
	assert_int_equal(rings_losses(w.rings).allocs, 3 + 5);
	assert_int_equal(rings_losses(w.rings).frees, 3 + 7);
	assert_int_equal(rings_nr(w.rings), PIECE_MAX_THREADS);
	w.shared->nr_parts++;
	assert_int_equal(rings_filled(w.rings, w.shared), 1);
	put(w.shared, 3, EVENT_ALLOC, 1);
	assert_int_equal(rings_poll(w.rings, &sink, false), 1);
	assert_int_equal(rings_filled(w.rings, w.shared), 0);
	/* A thread that takes its ring for full goes on. (T5) */
	w.shared->rings[3].read = 1ULL << 50;
	assert_int_equal(rings_poll(w.rings, &sink, false), 0);
	assert_int_equal(w.shared->rings[3].read, 2);
	world_fini(&w);
}

/* Begin a stack as the piece does. Its frames follow, if there are any. */
static void put_stack(struct piece_shared *s, u32 ring, u16 nr_frames, u16 nr_written)
{
	struct piece_ring *r = &s->rings[ring];
	struct piece_stack *head = (void *)&r->records[r->written % PIECE_RING_RECORDS];

	*head = (struct piece_stack){ .kind = EVENT_STACK, .nr_frames = nr_frames, .id = 77, .epoch = 3 };
	for (u64 i = 0; i < nr_written; i++) {
		u64 at = r->written + 1 + i / PIECE_STACK_FRAMES;

		((u64 *)&r->records[at % PIECE_RING_RECORDS])[i % PIECE_STACK_FRAMES] = 1000 + i;
	}
	head->stamp = sequence_next(&s->sequence);
	r->written += 1 + (nr_written + PIECE_STACK_FRAMES - 1u) / PIECE_STACK_FRAMES;
}

struct stacks_seen {
	u64 nr, nr_frames, nr_records;
};

static int check_stack(void *ctx, u32 ring, const struct piece_stack *stack, const u64 *ips)
{
	struct stacks_seen *seen = ctx;

	(void)ring;
	assert_int_equal(stack->id, 77);
	assert_int_equal(stack->epoch, 3);
	assert_true(stack->nr_frames <= STACK_MAX_FRAMES);
	for (u64 i = 0; i < stack->nr_frames; i++)
		assert_int_equal(ips[i], 1000 + i);
	seen->nr++;
	seen->nr_frames += stack->nr_frames;
	return 0;
}

static int count_record(void *ctx, u32 ring, u64 time_ns, const struct piece_record *rec)
{
	struct stacks_seen *seen = ctx;

	(void)ring;
	(void)time_ns;
	assert_int_equal(rec->kind, EVENT_ALLOC);
	seen->nr_records++;
	return 0;
}

/* Stacks of all sizes, also over the end of the ring, are read with the records between them. */
static void test_stacks(void **state)
{
	struct stacks_seen seen = { 0 };
	const struct rings_sink sink = { .ctx = &seen, .record = count_record, .stack = check_stack };
	u64 nr_stacks = 0, nr_frames = 0;
	struct world w;

	(void)state;
	world_init(&w);
	use_ring(w.shared, 7);
	for (u16 i = 0; i < 2000; i++) {
		u16 nr = (u16)(i * 13 % (STACK_MAX_FRAMES + 1));

		put_stack(w.shared, 7, nr, nr);
		put(w.shared, 7, EVENT_ALLOC, 1);
		nr_stacks++;
		nr_frames += nr;
		if (i % 50 == 0)
			assert_true(rings_poll(w.rings, &sink, false) > 0);
	}
	assert_true(rings_poll(w.rings, &sink, true) > 0);
	assert_int_equal(seen.nr, nr_stacks);
	assert_int_equal(seen.nr_frames, nr_frames);
	assert_int_equal(seen.nr_records, nr_stacks);
	assert_int_equal(rings_losses(w.rings).allocs, 0);
	world_fini(&w);
}

/* Stacks with more frames than there may be, or than were written. */
static void test_hostile_stacks(void **state)
{
	struct stacks_seen seen = { 0 };
	const struct rings_sink sink = { .ctx = &seen, .record = count_record, .stack = check_stack };
	struct world w;

	(void)state;
	world_init(&w);
	use_ring(w.shared, 0);
	use_ring(w.shared, 1);
	put_stack(w.shared, 0, STACK_MAX_FRAMES + 1, STACK_MAX_FRAMES + 1);
	put_stack(w.shared, 1, 12, 6);
	assert_true(rings_poll(w.rings, &sink, true) >= 0);
	put(w.shared, 0, EVENT_ALLOC, 1);
	put(w.shared, 1, EVENT_ALLOC, 1);
	assert_true(rings_poll(w.rings, &sink, true) >= 0);
	assert_int_equal(seen.nr + seen.nr_records, 0);
	assert_int_equal(rings_losses(w.rings).allocs, 2);
	world_fini(&w);
}

static u64 next_random(u64 *seed)
{
	*seed = *seed * 6364136223846793005ULL + 1442695040888963407ULL;
	return *seed >> 16;
}

/* Write nonsense to the memory that the target shares: now and then a small number, which is nearly right. */
static void scribble(struct piece_shared *s, u64 *seed)
{
	struct piece_ring *r = &s->rings[next_random(seed) % 4];
	u64 *const words[] = { &r->written, &r->read, &r->read_seen, &s->lost_stacks, &s->sequence.all };
	u64 *record = (u64 *)&r->records[next_random(seed) % PIECE_RING_RECORDS];
	u64 value = next_random(seed) << (next_random(seed) % 48);

	*words[next_random(seed) % 5] += next_random(seed) % 3 ? next_random(seed) % 32 : value;
	for (u32 i = 0; i < 6; i++)
		record[i] = next_random(seed) % 2 ? next_random(seed) % 256 : value;
	s->nr_used = (u32)(next_random(seed) % 8 ? next_random(seed) % 16 : value);
}

static int any_stack(void *ctx, u32 ring, const struct piece_stack *stack, const u64 *ips)
{
	(void)ring;
	assert_true(stack->nr_frames <= STACK_MAX_FRAMES);
	for (u32 i = 0; i < stack->nr_frames; i++)
		*(u64 *)ctx += ips[i] & 1;
	return 0;
}

static int any_record(void *ctx, u32 ring, u64 time_ns, const struct piece_record *rec)
{
	assert_true(ring < PIECE_MAX_THREADS);
	return count_one(ctx, ring, time_ns, rec);
}

/* A program that writes over its rings: each poll ends, and what is handed on has sane numbers. */
static void test_random(void **state)
{
	u64 nr = 0, seed = 1;
	const struct rings_sink sink = { .ctx = &nr, .record = any_record, .stack = any_stack };

	(void)state;
	for (int i = 0; i < 10 * rounds(); i++) {
		struct world w;

		world_init(&w);
		w.shared->is_sequence = i % 2;
		for (u32 k = 0; k < 4; k++)
			use_ring(w.shared, k);
		for (u32 k = 0; k < 200; k++) {
			u32 ring = (u32)(next_random(&seed) % 4);

			if (w.shared->rings[ring].written - w.shared->rings[ring].read < PIECE_RING_RECORDS)
				put(w.shared, ring, EVENT_FREE, 1);
			if (k % 4 == 0)
				scribble(w.shared, &seed);
			assert_true(rings_poll(w.rings, &sink, k == 199) <= 16 * PIECE_RING_RECORDS);
			assert_true(rings_nr(w.rings) <= PIECE_MAX_THREADS);
		}
		world_fini(&w);
	}
	assert_true(nr > 0);
}

/* A record that comes after the poll has begun waits for the next one. */
static void test_later(void **state)
{
	struct world w;

	(void)state;
	world_init(&w);
	use_ring(w.shared, 5);
	put(w.shared, 5, EVENT_ALLOC, 3);
	put(w.shared, 5, EVENT_FREE, 3);
	w.shared->sequence.all = 1;
	assert_int_equal(poll_all(&w), 1);
	w.shared->sequence.all = 2;
	assert_int_equal(poll_all(&w), 1);
	assert_int_equal(w.nr_wrong, 0);
	world_fini(&w);
}

/* Calls before a fork, told by the lower half of a number, are read alone; the rest comes next. */
static void test_fork(void **state)
{
	const u64 base = 0x1fffffffd;
	struct world w;
	const struct rings_sink sink = { .ctx = &w, .record = check };

	(void)state;
	world_init(&w);
	use_ring(w.shared, 5);
	use_ring(w.shared, 6);
	w.shared->sequence.all = base;
	put(w.shared, 5, EVENT_ALLOC, 3);
	put(w.shared, 6, EVENT_ALLOC, 4);
	put(w.shared, 5, EVENT_FREE, 3); /* after the fork, with another upper half */
	assert_true(rings_stamp(w.rings, 0, (u32)(base + 2)) == base + 2);
	assert_int_equal(rings_poll_until(w.rings, &sink, base + 2), 2);
	assert_true(w.is_live[3] && w.is_live[4]);
	assert_int_equal(poll_all(&w), 1);
	assert_false(w.is_live[3]);
	assert_true(rings_stamp(w.rings, 0, 0) == base + 3);
	world_fini(&w);
}

/* Where stamps are times, the time of the fork tells. */
static void test_fork_time(void **state)
{
	struct world w;
	u64 before, after, stamp, time_ns;

	(void)state;
	world_init(&w);
	w.shared->is_sequence = 0;
	rings_free(w.rings);
	assert_int_equal(rings_new(&w.rings, w.shared), 0);
	usleep(10000);
	before = rings_now(w.rings);
	usleep(10000);
	time_ns = clock_now_ns();
	usleep(10000);
	after = rings_now(w.rings);
	stamp = rings_stamp(w.rings, time_ns, 0);
	assert_true(before < stamp && stamp < after);
	world_fini(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_order),  cmocka_unit_test(test_hostile),
		cmocka_unit_test(test_stacks), cmocka_unit_test(test_hostile_stacks),
		cmocka_unit_test(test_later),  cmocka_unit_test(test_random),
		cmocka_unit_test(test_fork),   cmocka_unit_test(test_fork_time),
		cmocka_unit_test(test_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
