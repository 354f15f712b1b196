/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * twins [ROUNDS]: two threads with one thread pointer allocate from the program's own allocator, which needs none, at
 * full speed; without ROUNDS until SIGTERM.
 */
#include <sched.h>
#include <signal.h>
#include <unistd.h>

#include "tests/targets/truth.h"

enum { ARENA_BYTES = 1 << 20, BLOCK_BYTES = 32, STACK_BYTES = 1 << 16 };

static char arena[ARENA_BYTES] __attribute__((aligned(16)));
static unsigned used, nr_free;
static long nr_rounds;
static volatile sig_atomic_t is_over;
static volatile int has_begun, has_ended;

/* The program's own allocator. Nobody looks into its blocks. */
FN void *malloc(size_t size)
{
	unsigned at = __atomic_fetch_add(&used, BLOCK_BYTES, __ATOMIC_RELAXED) % ARENA_BYTES;

	return size > BLOCK_BYTES ? NULL : arena + at;
}

FN void free(void *p)
{
	if (p)
		__atomic_fetch_add(&nr_free, 1, __ATOMIC_RELAXED);
}

static void on_term(int sig)
{
	(void)sig;
	is_over = 1;
}

static void allocate(void)
{
	for (long i = 0; nr_rounds ? i < nr_rounds : !is_over; i++) {
		void *p = malloc(16);

		keep(p);
		free(p);
	}
}

static int twin(void *arg)
{
	(void)arg;
	has_begun = 1;
	allocate();
	has_ended = 1;
	return 0;
}

int main(int argc, char **argv)
{
	static char stack[STACK_BYTES] __attribute__((aligned(16)));
	const int flags = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM;
	static const char begun[] = "two threads\n";

	nr_rounds = argc > 1 ? atol(argv[1]) : 0;
	signal(SIGTERM, on_term);
	if (clone(twin, stack + sizeof(stack), flags, NULL) < 0)
		return 1;
	if (write(STDOUT_FILENO, begun, sizeof(begun) - 1) < 0)
		return 1;
	while (!has_begun)
		usleep(1000);
	allocate();
	while (!has_ended)
		usleep(1000);
	_exit(0);
}
