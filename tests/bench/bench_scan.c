/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * How fast a scan is: 1 GiB of live heap in 4 million blocks of a child; prints pause, speed and memory per block. Or
 * what the rules cost that ask callers and neighbours.
 */
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
#include "user/heap/stacks.h"
#include "user/scan/snapshot.h"
#include "user/target/allocator.h"
#include "user/lib/clock.h"
#include "user/scan/scan.h"
#include "user/scan/snapshot_plan.h"

enum { LEAK_EVERY = 1000, MAX_PAUSE_S = 60, HEADER = 2, ROUNDS = 6, NR_STEPS = 4 };

struct shared {
	volatile int is_ready;
	u64 addr[];
};

static struct shared *shared;
static size_t nr_blocks = 4 << 20, block_bytes = 240;
static bool is_random, is_writing, is_touching;
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
	u8 *room = NULL;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	table = calloc(nr_chains, sizeof(*table));
	if (is_touching)
		room = mmap(NULL, nr_blocks * block_bytes, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	for (size_t i = 0; i < nr_blocks; i++) {
		size_t chain = is_random ? next_random(&state) % nr_chains : i / 4;
		void **p = is_touching ? (void **)(room + i * block_bytes) : malloc(block_bytes);

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

/* One scan: the times of its steps, by both clocks, what it found, and the memory that it took. */
struct looked {
	u64 at[NR_STEPS + 1], cpu[NR_STEPS + 1]; /* begin, sorted, stopped, read, judged */
	u64 pause_ns, bytes, resident_bytes;
	struct scan_result result;
};

static void note_time(struct looked *l, int step)
{
	l->at[step] = clock_now_ns();
	l->cpu[step] = cpu_clock();
}

static double ms_of(const u64 *times, int step)
{
	return (double)(times[step + 1] - times[step]) / 1e6;
}

static int stop_child(struct snapshot **snap, pid_t pid, struct looked *l)
{
	const struct snapshot_plan_options po = { .pid = pid,
						  .way = way,
						  .max_pause_ns = MAX_PAUSE_S * 1000000000ULL };
	struct snapshot_options stop = { .max_pause_ns = MAX_PAUSE_S * 1000000000ULL };
	struct snapshot_plan plan;
	int err;

	snapshot_plan_make(&plan, &po);
	stop.way = plan.way;
	stop.precopy = plan.precopy;
	note_time(l, 1);
	err = snapshot_stop_new(snap, pid, &stop);
	if (!err && way != SNAPSHOT_STOP)
		err = snapshot_copy(*snap);
	l->pause_ns = snapshot_plan_pause(&plan);
	snapshot_plan_free(&plan);
	return err;
}

static int look(pid_t pid, const struct scan_books *books, u32 no_heuristics, struct looked *l)
{
	const struct scan_options options = { .no_heuristics = no_heuristics };
	u64 before = resident_kib();
	struct snapshot *snap = NULL;
	struct scan *scan = NULL;
	int err;

	note_time(l, 0);
	err = scan_new(&scan, books, &options);
	if (!err)
		err = stop_child(&snap, pid, l);
	note_time(l, 2);
	if (!err)
		err = scan_read(scan, snap);
	note_time(l, 3);
	if (!err)
		snapshot_resume(snap);
	if (!err)
		err = scan_judge(scan);
	note_time(l, 4);
	if (err) {
		fprintf(stderr, "bench_scan: %s\n", strerror(-err));
	} else {
		l->result = scan_result(scan);
		l->pause_ns += snap->pause_ns;
		l->bytes = scan_memory(scan);
		l->resident_bytes = (resident_kib() - before) * 1024;
	}
	scan_free(scan);
	snapshot_free(snap);
	return err;
}

static int measure(pid_t pid, const struct scan_books *books)
{
	struct looked l;
	double gib;

	if (look(pid, books, 0, &l))
		return 1;
	gib = (double)l.result.scanned_bytes / (1 << 30);
	printf("blocks %zu of %zu bytes, %s\n", nr_blocks, block_bytes,
	       is_random ? "random order" : "in order");
	printf("sort %.0f ms, stop %.0f ms, read %.0f ms, judge %.0f ms\n", ms_of(l.at, 0), ms_of(l.at, 1),
	       ms_of(l.at, 2), ms_of(l.at, 3));
	printf("CPU: sort %.0f ms, read %.0f ms, judge %.0f ms\n", ms_of(l.cpu, 0), ms_of(l.cpu, 2),
	       ms_of(l.cpu, 3));
	printf("pause %.0f ms, %.2f GiB scanned, %.2f GiB/s in the pause, %.2f GiB/s with the verdicts\n",
	       (double)l.pause_ns / 1e6, gib, gib / ((double)l.pause_ns / 1e9),
	       gib / ((double)(l.at[4] - l.at[1]) / 1e9));
	printf("memory %.1f bytes per block, %.1f by resident size\n", (double)l.bytes / (double)nr_blocks,
	       (double)l.resident_bytes / (double)nr_blocks);
	for (int v = SCAN_REACHABLE; v < NR_SCAN_VERDICTS; v++)
		printf("%s %llu  ", scan_verdict_name(v), (unsigned long long)l.result.sums.of[v].blocks);
	printf("\n");
	return 0;
}

/* CPU time of scans with the rules and without them, which take turns: the sum of the least of each step. */
static int compare(pid_t pid, const struct scan_books *books)
{
	static const u32 no_heuristics[] = { 0, SCAN_TABLE | SCAN_SELF | SCAN_RULES };
	u64 least[2][NR_STEPS], sums[2] = { 0 };

	memset(least, UINT8_MAX, sizeof(least));
	for (int i = 0; i < 2 * ROUNDS; i++) {
		u64 *of = least[i % 2];
		struct looked l;

		if (look(pid, books, no_heuristics[i % 2], &l))
			return 1;
		for (int k = 0; k < NR_STEPS; k++)
			of[k] = l.cpu[k + 1] - l.cpu[k] < of[k] ? l.cpu[k + 1] - l.cpu[k] : of[k];
	}
	for (int i = 0; i < 2 * NR_STEPS; i++)
		sums[i % 2] += least[i % 2][i / 2];
	printf("rules %llu ns, without %llu ns\n", (unsigned long long)sums[0], (unsigned long long)sums[1]);
	return 0;
}

/* Is the next argument @word? Then it is taken. */
static bool take_word(int *argc, char ***argv, const char *word)
{
	bool is_word = *argc > 1 && strcmp((*argv)[1], word) == 0;

	*argc -= is_word;
	*argv += is_word;
	return is_word;
}

/* bench_scan [rules] [fork|precopy] [write] [headed] [touching] [BLOCKS [BYTES [random]]] */
int main(int argc, char **argv)
{
	bool is_comparing = take_word(&argc, &argv, "rules");
	struct stack_table *stacks = NULL;
	struct scan_books books;
	struct heap *heap;
	pid_t pid;
	int err;

	if (take_word(&argc, &argv, "fork"))
		way = SNAPSHOT_FORK;
	else if (take_word(&argc, &argv, "precopy"))
		way = SNAPSHOT_PRECOPY;
	is_writing = take_word(&argc, &argv, "write");
	header = take_word(&argc, &argv, "headed") ? HEADER : 0;
	is_touching = take_word(&argc, &argv, "touching");
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
	err = !heap || stack_table_new(&stacks);
	if (!err) {
		books = scan_books_of(heap, true);
		books.stacks = stacks;
		err = is_comparing ? compare(pid, &books) : measure(pid, &books);
	}
	stack_table_free(stacks);
	heap_free(heap);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	return err;
}
