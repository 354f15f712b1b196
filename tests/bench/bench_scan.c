/* SPDX-License-Identifier: GPL-2.0-or-later */
/* How fast a scan is: 1 GiB of live heap in 4 million blocks of a child; prints pause, speed and memory per block. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "bpf/event.h"
#include "user/heap/heap.h"
#include "user/scan/snapshot.h"
#include "user/target/allocator.h"
#include "user/lib/clock.h"
#include "user/scan/scan.h"
#include "user/scan/snapshot_plan.h"

enum { LEAK_EVERY = 1000, MAX_PAUSE_S = 60, HEADER = 2 };

struct shared {
	volatile int is_ready;
	u64 addr[];
};

static struct shared *shared;
static size_t nr_blocks = 4 << 20, block_bytes = 240;
static bool is_random, is_writing;
static size_t header; /* words before the place that pointers lead to */
static enum snapshot_way way = SNAPSHOT_STOP;
static void **table;

static u64 next_random(u64 *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

/* Write 100 MiB of pages a second into the blocks, and change nothing. The addresses are no pointers for the scan. */
static void write_on(u64 hidden_first, u64 hidden_last)
{
	enum { PAGE = 4096, PAGES_A_MS = 26 };
	const struct timespec tick = { .tv_nsec = 1000000 };
	u64 at = ~hidden_first;

	for (;;) {
		for (int i = 0; i < PAGES_A_MS; i++, at += PAGE) {
			volatile u8 *byte = (u8 *)(uintptr_t)at;

			if (at >= ~hidden_last)
				at = ~hidden_first;
			else
				*byte = *byte;
		}
		nanosleep(&tick, NULL);
	}
}

/* A hash table of chains; each block has a second pointer to any other. Some are in no chain. */
static void child(void)
{
	u64 state = 88172645463325252ULL;
	size_t nr_chains = nr_blocks / 4;
	u64 hidden_first, hidden_last;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	table = calloc(nr_chains, sizeof(*table));
	for (size_t i = 0; i < nr_blocks; i++) {
		size_t chain = is_random ? next_random(&state) % nr_chains : i / 4;
		void **p = malloc(block_bytes);

		for (size_t k = 0; k < block_bytes / sizeof(*p); k++)
			p[k] = (void *)(uintptr_t)(next_random(&state) % 3 ? k : next_random(&state));
		p[header] = p[header + 1] = NULL;
		shared->addr[i] = (u64)(uintptr_t)p;
		if (i % LEAK_EVERY == 0)
			continue;
		p[header] = table[chain];
		table[chain] = p + header;
	}
	for (size_t i = 0; i < nr_blocks; i++) {
		size_t other = is_random ? next_random(&state) % nr_blocks : (i + 7) % nr_blocks;

		if (other % LEAK_EVERY)
			((void **)(uintptr_t)shared->addr[i])[header + 1] =
				(void **)(uintptr_t)shared->addr[other] + header;
	}
	hidden_first = ~shared->addr[0];
	hidden_last = ~shared->addr[nr_blocks - 1];
	shared->is_ready = 1;
	munmap(shared, sizeof(*shared) + nr_blocks * sizeof(u64));
	if (is_writing)
		write_on(hidden_first, hidden_last);
	for (;;)
		pause();
}

/* The books of the child: its blocks in the order of a hash table. */
static struct heap *make_books(void)
{
	struct heap_event ev = { .h = { .kind = EVENT_ALLOC, .fn = alloc_fn_find(NULL, "malloc"), .tid = 1 },
				 .size = block_bytes,
				 .stack = 1 };
	struct heap *heap;

	if (heap_new(&heap, NULL))
		return NULL;
	for (size_t i = 0; i < nr_blocks; i++) {
		ev.addr = shared->addr[i];
		ev.time_ns = i * 1000;
		if (heap_event(heap, &ev)) {
			heap_free(heap);
			return NULL;
		}
	}
	return heap;
}

static u64 resident_kib(void)
{
	FILE *f = fopen("/proc/self/status", "re");
	unsigned long value = 0;
	char line[256];

	while (f && fgets(line, sizeof(line), f))
		if (strncmp(line, "RssAnon:", 8) == 0)
			value = strtoul(line + 8, NULL, 10);
	if (f)
		fclose(f);
	return value;
}

static u64 cpu_clock(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (u64)ts.tv_sec * 1000000000 + (u64)ts.tv_nsec;
}

static int measure(pid_t pid, const struct heap *heap)
{
	const struct scan_books books = scan_books_of(heap, true);
	const struct scan_options options = { .is_partial = false };
	const struct snapshot_plan_options po = { .pid = pid,
						  .way = way,
						  .max_pause_ns = MAX_PAUSE_S * 1000000000ULL };
	struct snapshot_options stop = { .max_pause_ns = MAX_PAUSE_S * 1000000000ULL, .way = way };
	u64 before = resident_kib(), pause_ns, t[6], cpu[6];
	struct snapshot_plan plan;
	struct snapshot *snap = NULL;
	struct scan *scan = NULL;
	struct scan_result r;
	double gib;
	int err;

	t[0] = clock_now_ns();
	cpu[0] = cpu_clock();
	err = scan_new(&scan, &books, &options);
	t[1] = clock_now_ns();
	cpu[1] = cpu_clock();
	snapshot_plan_make(&plan, &po);
	stop.way = plan.way;
	stop.precopy = plan.precopy;
	t[1] = clock_now_ns();
	cpu[1] = cpu_clock();
	if (!err)
		err = snapshot_stop_new(&snap, pid, &stop);
	if (!err && way != SNAPSHOT_STOP)
		err = snapshot_copy(snap);
	pause_ns = snapshot_plan_pause(&plan);
	snapshot_plan_free(&plan);
	t[2] = clock_now_ns();
	cpu[2] = cpu_clock();
	if (!err)
		err = scan_read(scan, snap);
	t[3] = clock_now_ns();
	cpu[3] = cpu_clock();
	if (!err)
		snapshot_resume(snap);
	t[4] = clock_now_ns();
	cpu[4] = cpu_clock();
	if (!err)
		err = scan_judge(scan);
	t[5] = clock_now_ns();
	cpu[5] = cpu_clock();
	if (err) {
		fprintf(stderr, "bench_scan: %s\n", strerror(-err));
		return 1;
	}
	r = scan_result(scan);
	pause_ns += snap->pause_ns;
	gib = (double)r.scanned_bytes / (1 << 30);
	printf("blocks %zu of %zu bytes, %s\n", nr_blocks, block_bytes,
	       is_random ? "random order" : "in order");
	printf("sort %.0f ms, stop %.0f ms, read %.0f ms, judge %.0f ms\n", (double)(t[1] - t[0]) / 1e6,
	       (double)(t[2] - t[1]) / 1e6, (double)(t[3] - t[2]) / 1e6, (double)(t[5] - t[4]) / 1e6);
	printf("CPU: sort %.0f ms, read %.0f ms, judge %.0f ms\n", (double)(cpu[1] - cpu[0]) / 1e6,
	       (double)(cpu[3] - cpu[2]) / 1e6, (double)(cpu[5] - cpu[4]) / 1e6);
	printf("pause %.0f ms, %.2f GiB scanned, %.2f GiB/s in the pause, %.2f GiB/s with the verdicts\n",
	       (double)pause_ns / 1e6, gib, gib / ((double)pause_ns / 1e9),
	       gib / ((double)(t[5] - t[1]) / 1e9));
	printf("memory %.1f bytes per block, %.1f by resident size\n",
	       (double)scan_memory(scan) / (double)nr_blocks,
	       (double)(resident_kib() - before) * 1024 / (double)nr_blocks);
	for (int v = SCAN_REACHABLE; v < NR_SCAN_VERDICTS; v++)
		printf("%s %llu  ", scan_verdict_name(v), (unsigned long long)r.sums.of[v].blocks);
	printf("\n");
	scan_free(scan);
	snapshot_free(snap);
	return 0;
}

/* bench_scan [fork|precopy] [write] [headed] [BLOCKS [BYTES [random]]] */
int main(int argc, char **argv)
{
	struct heap *heap;
	pid_t pid;
	int err;

	if (argc > 1 && (!strcmp(argv[1], "fork") || !strcmp(argv[1], "precopy"))) {
		way = argv[1][0] == 'f' ? SNAPSHOT_FORK : SNAPSHOT_PRECOPY;
		argc--, argv++;
	}
	if (argc > 1 && !strcmp(argv[1], "write")) {
		is_writing = true;
		argc--, argv++;
	}
	if (argc > 1 && !strcmp(argv[1], "headed")) {
		header = HEADER;
		argc--, argv++;
	}
	if (argc > 1)
		nr_blocks = strtoul(argv[1], NULL, 10);
	if (argc > 2)
		block_bytes = strtoul(argv[2], NULL, 10);
	is_random = argc > 3;
	shared = mmap(NULL, sizeof(*shared) + nr_blocks * sizeof(u64), PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	if (shared == MAP_FAILED || block_bytes < (header + 2) * sizeof(void *))
		return 99;
	pid = fork();
	if (pid < 0)
		return 99;
	if (pid == 0)
		child();
	while (!shared->is_ready)
		usleep(10000);
	heap = make_books();
	munmap(shared, sizeof(*shared) + nr_blocks * sizeof(u64));
	err = heap ? measure(pid, heap) : 1;
	heap_free(heap);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	return err;
}
