/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A census of children: heaps that are as they must be, and heaps that a bug of the program has damaged. */
#include <dlfcn.h>
#include <errno.h>
#include <inttypes.h>
#include <malloc.h>
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "user/census/census.h"
#include "tests/unit/skip.h"

enum { NR = 600, LARGE = 3000, LONG_NS = 60 };

/* Shared with the child. Addresses are stored inverted, so that they are not pointers. */
struct shared {
	u64 blocks[NR];
	u64 sizes[NR];
	u64 freed[NR]; /* 1 for blocks that were freed */
	u64 held;      /* a block that one in unknown memory points to */
};

static struct shared *shared;
static pid_t child;

/* ---- lack of memory ---- */

static bool is_counting;
static long nr_left; /* allocations that still succeed */

static bool may_allocate(void)
{
	if (!is_counting || nr_left-- > 0)
		return true;
	errno = ENOMEM;
	return false;
}

void *calloc(size_t nr, size_t size)
{
	static void *(*real)(size_t, size_t);
	static u8 early[4096];
	static size_t used;

	/* dlsym() itself allocates. */
	if (!real) {
		void *(*found)(size_t, size_t);

		real = NULL;
		if (used) {
			void *p = early + used;

			used += (nr * size + 15) & ~15UL;
			return used <= sizeof(early) ? p : NULL;
		}
		used = 16;
		found = (__typeof__(found))dlsym(RTLD_NEXT, "calloc");
		real = found;
	}
	return may_allocate() ? real(nr, size) : NULL;
}

void *realloc(void *p, size_t size)
{
	static void *(*real)(void *, size_t);

	if (!real)
		real = (__typeof__(real))dlsym(RTLD_NEXT, "realloc");
	return may_allocate() ? real(p, size) : NULL;
}

/* ---- stops ---- */

static u32 nr_stops;

/* A child with one thread is seized once for each stop. */
long ptrace(enum __ptrace_request request, ...)
{
	long (*real)(enum __ptrace_request, pid_t, void *, void *);
	va_list args;
	pid_t pid;
	void *addr, *data;

	va_start(args, request);
	pid = va_arg(args, pid_t);
	addr = va_arg(args, void *);
	data = va_arg(args, void *);
	va_end(args);
	real = (__typeof__(real))dlsym(RTLD_NEXT, "ptrace");
	nr_stops += request == PTRACE_SEIZE;
	return real(request, pid, addr, data);
}

/* ---- children ---- */

static void *block(int i)
{
	return (void *)(uintptr_t)~shared->blocks[i];
}

/* Blocks of two sizes in turn, so that large free ones lie between live ones. */
static void make_heap(void)
{
	for (int i = 0; i < NR; i++) {
		void *p = malloc(i % 2 ? 40 : LARGE);

		memset(p, 0x11, i % 2 ? 40 : LARGE);
		shared->blocks[i] = ~(u64)(uintptr_t)p;
		shared->sizes[i] = malloc_usable_size(p);
	}
	for (int i = 0; i < NR; i += 6) {
		shared->freed[i] = 1;
		free(block(i));
	}
}

static void healthy(void)
{
	make_heap();
}

/* A write beyond the end of a block destroys the size of the next one. */
static void overrun(void)
{
	int low = 1, high = 2;

	make_heap();
	for (int i = 1; i < NR; i++) {
		if (i % 2 && (uintptr_t)block(i) < (uintptr_t)block(low))
			low = i;
		if (i % 2 == 0 && !shared->freed[i] && (uintptr_t)block(i) > (uintptr_t)block(high))
			high = i;
	}
	*(void *volatile *)block(high) = block(low);
	shared->held = shared->blocks[low];
	*(volatile u64 *)((u8 *)block(301) + 40) = 0x4141414141414141;
}

/* A write behind a free block destroys the copy of its size. */
static void bad_copy(void)
{
	u64 *size;

	make_heap();
	size = (u64 *)block(300) - 1;
	*(u64 *)((u8 *)block(300) - 16 + (*size & ~7ULL)) = 48;
}

/* A write into a free block destroys its link. */
static void bad_link(void)
{
	make_heap();
	*(void **)block(300) = (u8 *)block(303) - 16;
}

/* A list of free blocks that leads back to itself. */
static void ring(void)
{
	make_heap();
	*(void **)block(300) = (u8 *)block(300) - 16;
}

/* Such a ring in the cache of a thread, whose links are disguised. */
static void cache_ring(void)
{
	void *p = malloc(56), *volatile q = malloc(56);
	volatile u64 *link = q;

	make_heap();
	free(p);
	free(q);
	*link = (uintptr_t)link ^ ((uintptr_t)link >> 12);
}

/* The size of the last free part becomes @word. The blocks lie in the main arena, or in a heap of the thread's own. */
static void write_top(u64 word, bool is_main)
{
	const uintptr_t max_heap = 64 << 20;
	volatile u64 *size;
	uintptr_t end;

	make_heap();
	/* A free part amid the heap may come first. */
	do {
		u8 *volatile p = malloc(100000);
		const u64 *heap = (const u64 *)((uintptr_t)p & ~(max_heap - 1));

		size = (u64 *)(p + malloc_usable_size(p));
		end = is_main ? (uintptr_t)sbrk(0) : (uintptr_t)heap + heap[2];
	} while ((uintptr_t)(size - 1) + (*size & ~7ULL) != end);
	*size = word;
}

static void bad_top(void)
{
	write_top(UINT64_MAX, true);
}

/* As amid a call that has cut its block off the last free part: the thread waits for the memory of the rest. */
static void unwritten_top(void)
{
	write_top(0, true);
}

static sem_t is_made;

static void *unwritten_thread(void *unused)
{
	(void)unused;
	write_top(0, false);
	sem_post(&is_made);
	for (;;)
		pause();
	return NULL;
}

static void unwritten_top_of_thread(void)
{
	pthread_t thread;

	if (!sem_init(&is_made, 0, 0) && !pthread_create(&thread, NULL, unwritten_thread, NULL))
		while (sem_wait(&is_made))
			;
}

static void start(void (*make)(void))
{
	int ready[2];
	char byte = 'r';

	assert_int_equal(pipe(ready), 0);
	child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		make();
		if (write(ready[1], &byte, 1) == 1)
			for (;;)
				pause();
		_exit(1);
	}
	assert_int_equal(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	close(ready[1]);
}

static int end_child(void **state)
{
	(void)state;
	is_counting = false;
	if (child > 0) {
		kill(child, SIGKILL);
		waitpid(child, NULL, 0);
	}
	child = 0;
	memset(shared, 0, sizeof(*shared));
	return 0;
}

static struct census *take(void)
{
	const struct census_options options = { .max_pause_ns = LONG_NS * 1000000000ULL };
	struct census *c = NULL;
	int err = census_take(&c, child, &options);

	if (err == -EPERM)
		skip_because("this process may not trace its children");
	if (err == -ENOENT) {
		census_free(c);
		skip_because("this test does not run on glibc's malloc");
	}
	assert_int_equal(err, 0);
	assert_non_null(c);
	return c;
}

static bool has_note(const struct census *c, const char *text)
{
	for (size_t i = 0; i < c->blocks.nr_notes && i < CENSUS_MAX_NOTES; i++)
		if (strstr(c->blocks.notes[i].text, text))
			return true;
	for (size_t i = 0; i < c->blocks.nr_notes && i < CENSUS_MAX_NOTES; i++)
		print_message("note: %s\n", c->blocks.notes[i].text);
	return false;
}

static bool has_note_at(const struct census *c, const void *at)
{
	char text[32];

	snprintf(text, sizeof(text), "0x%" PRIx64, (u64)(uintptr_t)at);
	return has_note(c, text);
}

static void assert_blocks(const struct census *c, int from, int to)
{
	for (int i = from; i < to; i++) {
		const struct census_block *b = census_find(&c->blocks, ~shared->blocks[i]);

		if (shared->freed[i]) {
			assert_true(!b || b->state != CENSUS_LIVE);
			continue;
		}
		assert_non_null(b);
		assert_int_equal(b->state, CENSUS_LIVE);
		assert_int_equal(b->size, shared->sizes[i]);
	}
}

/* ---- tests ---- */

static void check_all_blocks(void (*make)(void), u32 nr_threads)
{
	struct census *c;

	start(make);
	nr_stops = 0;
	c = take();
	assert_int_equal(c->blocks.nr_notes, 0);
	assert_int_equal(nr_stops, nr_threads);
	assert_blocks(c, 0, NR);
	assert_int_equal(census_unknown_bytes(&c->blocks), 0);
	assert_non_null(c->scan);
	census_free(c);
}

static void all_blocks(void **state)
{
	(void)state;
	check_all_blocks(healthy, 1);
	end_child(NULL);
	check_all_blocks(unwritten_top, 1);
	end_child(NULL);
	check_all_blocks(unwritten_top_of_thread, 2);
}

/* The walk ends at the block, names it, and lists the ones before. The memory behind it counts as roots. */
static void overrun_is_named(void **state)
{
	struct scan_block_info info;
	struct census *c;

	(void)state;
	start(overrun);
	c = take();
	assert_true(has_note(c, "0x4141414141414141"));
	assert_true(has_note_at(c, (u8 *)block(301) + 48));
	for (int i = 0; i < NR; i++)
		if (~shared->blocks[i] <= ~shared->blocks[301])
			assert_blocks(c, i, i + 1);
	assert_true(census_unknown_bytes(&c->blocks) > LARGE * 100ULL);
	assert_non_null(c->scan);
	assert_true(scan_find(c->scan, ~shared->held, &info));
	assert_int_equal(info.verdict, SCAN_REACHABLE);
	census_free(c);
}

static void check_named(void (*make)(void), const char *text, int at)
{
	struct census *c;

	start(make);
	nr_stops = 0;
	c = take();
	/* Damage is the same at the second look, which ends the tries. */
	assert_int_equal(nr_stops, 2);
	assert_non_null(c->scan);
	assert_true(has_note(c, text));
	if (at)
		assert_true(has_note_at(c, block(at)));
	census_free(c);
}

static void damage_is_named(void **state)
{
	(void)state;
	check_named(bad_copy, "the copy of this behind it says 48", 300);
	end_child(NULL);
	check_named(bad_link, "the list of free blocks is broken", 0);
	end_child(NULL);
	check_named(ring, "the list of free blocks is broken", 0);
	end_child(NULL);
	check_named(cache_ring, "which is no free block", 0);
	end_child(NULL);
	check_named(bad_top, "its last chunk is damaged", 0);
}

/* Each allocation fails in turn: an error, or a census without verdicts, and no harm (H3). */
static void no_memory(void **state)
{
	const struct census_options options = { .max_pause_ns = LONG_NS * 1000000000ULL };
	bool is_whole = false;

	(void)state;
	start(healthy);
	census_free(take());
	for (long n = 0; !is_whole; n++) {
		struct census *c = NULL;
		int err;

		nr_left = n;
		is_counting = true;
		err = census_take(&c, child, &options);
		is_counting = false;
		is_whole = !err && c->scan && nr_left > 0;
		assert_true(!err || err == -ENOMEM || err == -ESRCH);
		assert_true(err ? !c : c != NULL);
		if (is_whole)
			assert_blocks(c, 0, NR);
		census_free(c);
		assert_true(n < 10000);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(all_blocks, end_child),
		cmocka_unit_test_teardown(overrun_is_named, end_child),
		cmocka_unit_test_teardown(damage_is_named, end_child),
		cmocka_unit_test_teardown(no_memory, end_child),
	};

	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED)
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
