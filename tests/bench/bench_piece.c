/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The piece of code for targets, alone in a process of its own: the CPU time of a malloc and a free that do nothing,
 * in ns: without effect, with records that nobody reads, and with a thread on another CPU that reads and drops them.
 * Argument: 1 for stamps of a sequence, 0 for the counter.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "bpf/event.h"
#include "inline/layout.h"
#include "inline/shape.h"
#include "user/inject/piece_object.h"

enum { NR_ROUNDS = 20, NR_PAIRS = 200000, EMPTY_EVERY = 1024, PUBLISH_EVERY = 1024, PAUSE_NS = 20000 };

#if defined(__x86_64__)

u64 bench_way_in;
void *bench_malloc(size_t size);
void bench_free(void *block);

/* Stubs as user/inject/code_x86_64.c makes them, with the functions behind them: probe 0, and 1 of kind PIECE_FREE. */
__asm__(".text\nbench_malloc: push $0\n push 1f(%rip)\n jmp *bench_way_in(%rip)\n"
	"2: lea bench_way_in(%rip),%rax\n ret\n"
	".data\n.balign 8\n1: .quad 2b\n"
	".text\nbench_free: push $0x10001\n push 1f(%rip)\n jmp *bench_way_in(%rip)\n2: ret\n"
	".data\n.balign 8\n1: .quad 2b\n.text\n");

static double cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

/* The ring of the only thread that has one; NULL until it has. */
static struct piece_ring *find_ring(u8 *region)
{
	struct piece_shared *s = (void *)(region + PIECE_SHARED_OFFSET);

	return s->nr_used ? &s->rings[0] : NULL;
}

static struct piece_ring *ring;

static void empty_ring(u8 *region)
{
	if (!ring)
		ring = find_ring(region);
	if (ring)
		ring->read = ring->written;
}

static bool has_reader;

/* Reads all records and drops them. Sleeps a little when there are none, as heaptap does. */
static void *read_all(void *nothing)
{
	const struct timespec pause = { .tv_nsec = PAUSE_NS };
	u64 sum = 0;

	while (__atomic_load_n(&has_reader, __ATOMIC_RELAXED)) {
		u64 end = __atomic_load_n(&ring->written, __ATOMIC_ACQUIRE), at = ring->read;

		if (at == end)
			nanosleep(&pause, NULL);
		for (; at != end; at++) {
			const struct piece_record *rec = &ring->records[at % PIECE_RING_RECORDS];

			sum += rec->stamp + rec->kind + rec->addr + rec->size;
			if (at % PUBLISH_EVERY == 0)
				__atomic_store_n(&ring->read, at, __ATOMIC_RELEASE);
		}
		__atomic_store_n(&ring->read, end, __ATOMIC_RELEASE);
	}
	__asm__ volatile("" : : "r"(sum));
	return nothing;
}

static double least_ns(u8 *region)
{
	double best = 1e9;

	for (int round = 0; round < NR_ROUNDS; round++) {
		double begin = cpu_ns(), ns;

		for (int i = 0; i < NR_PAIRS; i++) {
			bench_free(bench_malloc(100));
			if (!has_reader && i % EMPTY_EVERY == 0)
				empty_ring(region);
		}
		ns = (cpu_ns() - begin) / NR_PAIRS;
		best = ns < best ? ns : best;
	}
	return best;
}

int main(int argc, char **argv)
{
	u8 *region = mmap(NULL, PIECE_REGION_BYTES, PROT_READ | PROT_WRITE | PROT_EXEC,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	struct piece_control *control = (void *)(region + PIECE_CONTROL_OFFSET);
	struct piece_shared *shared = (void *)(region + PIECE_SHARED_OFFSET);
	pthread_t reader;
	double off, alone;

	if (region == MAP_FAILED)
		return 1;
	memcpy(region, piece_object_start, piece_object_bytes());
	bench_way_in = (u64)(uintptr_t)region + ((const struct piece_head *)(const void *)region)->enter_call;
	shared->is_sequence = argc < 2 || atoi(argv[1]);
	shared->nr_places = 1;
	((struct piece_tables *)(void *)(region + PIECE_TABLES_OFFSET))->max_wait = ~0ULL;
	shared->probes[0] = (struct piece_probe){ .call = piece_shapes[SHAPE_MALLOC], .shape = SHAPE_MALLOC };
	shared->probes[0].call.fn = 1;
	shared->probes[1] = (struct piece_probe){ .call = piece_shapes[SHAPE_FREE], .shape = SHAPE_FREE };
	shared->probes[1].call.fn = 2;
	off = least_ns(region);
	control->is_on = piece_is_on;
	alone = least_ns(region);
	has_reader = true;
	if (pthread_create(&reader, NULL, read_all, NULL))
		return 1;
	printf("%.1f %.1f %.1f\n", off, alone, least_ns(region));
	__atomic_store_n(&has_reader, false, __ATOMIC_RELAXED);
	pthread_join(reader, NULL);
	return 0;
}

#else

int main(void)
{
	fprintf(stderr, "bench_piece: x86_64 only\n");
	return 77;
}

#endif
