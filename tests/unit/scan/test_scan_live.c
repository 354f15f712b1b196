/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Random graphs in the heaps of real processes: threads, arenas, large blocks, freed memory full of old pointers. */
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "user/heap/heap.h"
#include "user/lib/proc.h"
#include "user/scan/scan.h"
#include "user/scan/snapshot.h"

enum {
	BLOCKS = 20000,
	EDGES = 3,
	ROOTS = 40,
	THREADS = 4,
	CHURN = 30000,
	SEEDS = 4,
	MAX_SIZE = 3000,
	LARGE = 300000
};

struct edge {
	int target; /* -1 = none */
	u32 offset; /* in the target */
};

/* The blocks as the child knows them. Addresses are stored inverted, so that they are not pointers. */
struct shared {
	volatile int is_ready;
	u64 hidden[BLOCKS];
	u32 size[BLOCKS];
	struct edge edges[BLOCKS][EDGES];
	struct edge roots[ROOTS];
};

static struct shared *shared;
static unsigned int seed;

/* ---- the child's side ---- */

static void *volatile roots[ROOTS];

static char *address(int i)
{
	return (char *)(uintptr_t)~shared->hidden[i];
}

static void *allocate(void *first)
{
	unsigned int state = seed + (unsigned int)(uintptr_t)first;

	for (int i = (int)(uintptr_t)first; i < BLOCKS; i += THREADS) {
		u32 size = 16 + EDGES * 8 + (u32)rand_r(&state) % (i % 500 ? MAX_SIZE : LARGE);
		void *other = malloc(size / 2);

		shared->size[i] = size;
		shared->hidden[i] = ~(u64)(uintptr_t)calloc(1, size);
		free(other); /* holes between the blocks */
	}
	return NULL;
}

static struct edge random_edge(unsigned int *state)
{
	struct edge e = { .target = (int)((unsigned int)rand_r(state) % BLOCKS) };

	if (rand_r(state) % 4 == 0) /* odd offsets, which no heuristic takes for a start */
		e.offset = 1 + (u32)rand_r(state) % (shared->size[e.target] / 2) * 2;
	return e;
}

/* Pointers from block to block, so few that many blocks are lost. */
static void connect(unsigned int *state)
{
	for (int i = 0; i < BLOCKS; i++) {
		for (int k = 0; k < EDGES; k++) {
			struct edge e = random_edge(state);

			shared->edges[i][k].target = -1;
			if (rand_r(state) % 100 >= 45)
				continue;
			shared->edges[i][k] = e;
			((void **)(void *)address(i))[k] = address(e.target) + e.offset;
		}
	}
	for (int i = 0; i < ROOTS; i++) {
		shared->roots[i] = random_edge(state);
		roots[i] = address(shared->roots[i].target) + shared->roots[i].offset;
	}
}

/* Fill freed memory with pointers to blocks. */
static void *churn(void *first)
{
	unsigned int state = seed + 77 + (unsigned int)(uintptr_t)first;

	for (int i = 0; i < CHURN; i++) {
		size_t nr = 2 + (size_t)rand_r(&state) % 100;
		void *volatile *p = malloc(nr * sizeof(*p));

		for (size_t k = 0; k < nr; k++)
			p[k] = address((int)((unsigned int)rand_r(&state) % BLOCKS));
		free((void *)(uintptr_t)p);
	}
	return NULL;
}

/* Overwrite pointers that earlier calls have left on the stack. */
static __attribute__((noinline)) void scrub(void)
{
	volatile char deep[32768];

	for (size_t i = 0; i < sizeof(deep); i++)
		deep[i] = 0;
}

static void run_threads(void *(*f)(void *))
{
	pthread_t threads[THREADS];

	f(NULL); /* in the heap that brk gives */
	for (uintptr_t i = 1; i < THREADS; i++)
		pthread_create(&threads[i], NULL, f, (void *)i);
	for (int i = 1; i < THREADS; i++)
		pthread_join(threads[i], NULL);
}

static void child(void)
{
	unsigned int state = seed;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	run_threads(allocate);
	connect(&state);
	run_threads(churn);
	scrub();
	shared->is_ready = 1;
	munmap(shared, sizeof(*shared));
	for (;;)
		pause();
}

/* ---- the parent's side ---- */

static u8 expected[BLOCKS];
static int nr_incoming[BLOCKS];

static int each_block(const void *ctx, int (*visit)(void *, const struct heap_block *), void *visit_ctx)
{
	(void)ctx;
	for (int i = 0; i < BLOCKS; i++) {
		struct heap_block b = { .addr = ~shared->hidden[i], .size = shared->size[i] };
		int err = visit(visit_ctx, &b);

		if (err)
			return err;
	}
	return 0;
}

/* Spread @verdict from the blocks that have it, until nothing changes: slow but simple. */
static void spread(enum scan_verdict verdict, bool only_starts)
{
	bool has_changed = true;

	while (has_changed) {
		has_changed = false;
		for (int i = 0; i < BLOCKS * EDGES; i++) {
			const struct edge *e = &shared->edges[i / EDGES][i % EDGES];

			if (expected[i / EDGES] == SCAN_NONE || e->target < 0 ||
			    expected[e->target] != SCAN_NONE || (only_starts && e->offset))
				continue;
			expected[e->target] = verdict;
			has_changed = true;
		}
	}
}

/* Blocks with SCAN_NONE are lost afterwards. */
static void find_truth(void)
{
	memset(expected, SCAN_NONE, sizeof(expected));
	memset(nr_incoming, 0, sizeof(nr_incoming));
	for (int i = 0; i < ROOTS; i++)
		if (!shared->roots[i].offset)
			expected[shared->roots[i].target] = SCAN_REACHABLE;
	spread(SCAN_REACHABLE, true);
	for (int i = 0; i < ROOTS; i++)
		if (expected[shared->roots[i].target] == SCAN_NONE)
			expected[shared->roots[i].target] = SCAN_POSSIBLE;
	spread(SCAN_POSSIBLE, false);
	for (int i = 0; i < BLOCKS; i++)
		for (int k = 0; k < EDGES; k++)
			if (shared->edges[i][k].target >= 0 && shared->edges[i][k].target != i &&
			    expected[i] == SCAN_NONE)
				nr_incoming[shared->edges[i][k].target]++;
}

static bool is_right(int i, enum scan_verdict verdict)
{
	if (expected[i] != SCAN_NONE)
		return verdict == expected[i];
	/* A block to which no lost block leads is a leader. Others are leaders only in cycles. */
	return verdict == SCAN_DEFINITE || (verdict == SCAN_INDIRECT && nr_incoming[i]);
}

/* A false leak is never allowed. Old words in registers and on stacks may hold a few lost blocks. */
static void check(pid_t pid, int *nr_wrong, int *nr_kept, int *nr_lost)
{
	const struct scan_books books = { .for_each = each_block };
	const struct snapshot_options stop = { .max_pause_ns = 20000000000ULL };
	const struct scan_options options = { 0 };
	struct snapshot *snap;
	struct scan *scan;

	assert_int_equal(scan_new(&scan, &books, &options), 0);
	assert_int_equal(snapshot_stop_new(&snap, pid, &stop), 0);
	assert_int_equal(scan_read(scan, snap), 0);
	snapshot_resume(snap);
	assert_int_equal(scan_judge(scan), 0);
	for (int i = 0; i < BLOCKS; i++) {
		struct scan_block_info info;

		assert_true(scan_find(scan, ~shared->hidden[i], &info));
		*nr_lost += expected[i] == SCAN_NONE;
		if (is_right(i, info.verdict))
			continue;
		if (info.verdict < SCAN_DEFINITE &&
		    (expected[i] == SCAN_NONE || expected[i] == SCAN_POSSIBLE)) {
			++*nr_kept;
			continue;
		}
		if (++*nr_wrong < 10)
			print_error("block %d of %u bytes: %s, should be %s\n", i, shared->size[i],
				    scan_verdict_name(info.verdict), scan_verdict_name(expected[i]));
	}
	scan_free(scan);
	snapshot_free(snap);
}

/* Wait until the child sleeps in pause(): on a busy machine that may be late. */
static void wait_until_asleep(pid_t pid)
{
	struct proc_stat stat = { 0 };

	for (int asleep = 0; asleep < 5; asleep++) {
		usleep(5000);
		assert_int_equal(proc_read_stat(&stat, pid), 0);
		if (stat.state != 'S' || stat.nr_threads != 1)
			asleep = -1;
	}
}

/* Make one heap and judge it. */
static void random_heap(int *nr_wrong, int *nr_kept, int *nr_lost)
{
	pid_t pid;

	shared->is_ready = 0;
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0)
		child();
	while (!shared->is_ready)
		usleep(1000);
	wait_until_asleep(pid);
	find_truth();
	check(pid, nr_wrong, nr_kept, nr_lost);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

/* The threads have ended. The C library keeps the stacks, which point to every block. */
static void random_heaps(void **state)
{
	int nr_wrong = 0, nr_kept = 0, nr_lost = 0;

	(void)state;
	for (seed = 1; seed <= SEEDS; seed++) {
		int kept = 0, lost = 0;

		random_heap(&nr_wrong, &kept, &lost);
		print_message("# seed %d: %d lost blocks, %d of them kept by stale words\n", (int)seed, lost,
			      kept);
		nr_kept += kept;
		nr_lost += lost;
	}
	assert_int_equal(nr_wrong, 0);
#ifndef __SANITIZE_ADDRESS__ /* its allocator keeps freed memory in pages without live blocks, which count as roots */
	assert_true(nr_kept * 100 < nr_lost);
#else
	print_message("%d blocks of %d kept\n", nr_kept, nr_lost);
#endif
	assert_true(nr_lost > SEEDS * BLOCKS / 10);
	assert_true(nr_lost < SEEDS * BLOCKS * 9 / 10);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(random_heaps) };

	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED)
		return 99;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
