/* SPDX-License-Identifier: GPL-2.0-or-later */
/* How fast events enter the books, and how much memory a live block takes. Generating them is not timed. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "user/heap/heap.h"
#include "user/lib/cleanup.h"

enum {
	BATCH = 1 << 16,
	NR_STACKS = 1000,
	NR_CHURN = 5000000, /* events per run, after the live set is complete */
	AHEAD = 8,
};

/* A program that keeps @nr_live blocks and replaces random ones; addresses come back last in, first out. */
struct program {
	struct heap *heap;
	struct heap_event *batch; /* owned by run() */
	u32 *live;		  /* owned by run(); address numbers */
	u32 *spare;		  /* owned by run(); a stack of them */
	u32 nr_live, nr_spare, nr_used;
	u64 random;
	u64 time_ns;
	double seconds;
	bool is_prefetching;
};

static u64 next_random(u64 *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

static void make_alloc(struct program *p, struct heap_event *ev, u32 slot)
{
	u64 r = next_random(&p->random);
	u32 number = p->nr_spare ? p->spare[--p->nr_spare] : p->nr_used++;

	p->live[slot] = number;
	*ev = (struct heap_event){
		.h = { .kind = EVENT_ALLOC, .fn = 1, .pid = 1, .tid = 1 },
		.time_ns = p->time_ns += 100,
		.addr = 0x7f0000000000 + (u64)number * 48,
		.size = 8 + r % 500,
		.stack = STACK_FIRST_ID + (r >> 32) % NR_STACKS * 0x9e3779b97f4a7c15,
	};
}

static void make_free(struct program *p, struct heap_event *ev, u32 slot)
{
	*ev = (struct heap_event){
		.h = { .kind = EVENT_FREE, .fn = 5, .pid = 1, .tid = 1 },
		.time_ns = p->time_ns += 100,
		.addr = 0x7f0000000000 + (u64)p->live[slot] * 48,
	};
	p->spare[p->nr_spare++] = p->live[slot];
}

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return ts.tv_sec + ts.tv_nsec / 1e9;
}

static int enter_batch(struct program *p, u32 nr)
{
	double start = now();

	for (u32 i = 0; i < nr; i++) {
		if (p->is_prefetching && i + AHEAD < nr)
			heap_prefetch(p->heap, &p->batch[i + AHEAD]);
		if (heap_event(p->heap, &p->batch[i]))
			return -1;
	}
	p->seconds += now() - start;
	return 0;
}

static int fill(struct program *p)
{
	u32 nr = 0;

	for (u32 slot = 0; slot < p->nr_live; slot++) {
		make_alloc(p, &p->batch[nr++], slot);
		if (nr < BATCH && slot + 1 < p->nr_live)
			continue;
		if (enter_batch(p, nr))
			return -1;
		nr = 0;
	}
	return 0;
}

/* Frees come in threes before the allocs that replace them, so that addresses move between slots. */
static int churn(struct program *p)
{
	for (u64 done = 0; done < NR_CHURN; done += BATCH / 6 * 6) {
		for (u32 i = 0; i < BATCH / 6; i++) {
			struct heap_event *ev = &p->batch[(u64)i * 6];
			u32 first = next_random(&p->random) % (p->nr_live - 2);

			for (u32 k = 0; k < 3; k++)
				make_free(p, &ev[k], first + k);
			for (u32 k = 0; k < 3; k++)
				make_alloc(p, &ev[3 + k], first + 2 - k);
		}
		if (enter_batch(p, BATCH / 6 * 6))
			return -1;
	}
	return 0;
}

/* Blocks in random order of address, as after some time. */
static void shuffle(struct program *p)
{
	for (u32 i = p->nr_live - 1; i > 0; i--) {
		u32 k = next_random(&p->random) % (i + 1);
		u32 swap = p->live[i];

		p->live[i] = p->live[k];
		p->live[k] = swap;
	}
}

static int run(u32 nr_live, bool is_prefetching)
{
	struct program p = { .nr_live = nr_live,
			     .random = 88172645463325252,
			     .is_prefetching = is_prefetching };
	auto_free struct heap_event *batch = calloc(BATCH, sizeof(*batch));
	auto_free u32 *live = calloc(nr_live, sizeof(*live));
	auto_free u32 *spare = calloc((size_t)nr_live + 3, sizeof(*spare));
	double fill_seconds;
	int err;

	if (!batch || !live || !spare || heap_new(&p.heap, NULL))
		return -1;
	p.batch = batch;
	p.live = live;
	p.spare = spare;
	err = fill(&p);
	fill_seconds = p.seconds;
	p.seconds = 0;
	shuffle(&p);
	if (!err)
		err = churn(&p);
	if (!err && heap_totals(p.heap).live_blocks == nr_live)
		printf("%9" PRIu32 "  %-8s  %8.2f  %9.2f  %11.1f\n", nr_live, is_prefetching ? "yes" : "no",
		       nr_live / fill_seconds / 1e6, NR_CHURN / p.seconds / 1e6,
		       (double)heap_memory(p.heap) / nr_live);
	else
		err = -1;
	heap_free(p.heap);
	return err;
}

int main(void)
{
	static const u32 sizes[] = { 1000, 10000, 100000, 1000000, 5000000 };

	printf("     live  prefetch  fill M/s  churn M/s  bytes/block\n");
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++)
		for (int is_prefetching = 0; is_prefetching < 2; is_prefetching++)
			if (run(sizes[i], is_prefetching)) {
				fprintf(stderr, "bench_books: the books failed\n");
				return 1;
			}
	return 0;
}
