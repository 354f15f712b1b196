/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A signal interrupts malloc; its handler allocates too, on a stack of its own above that of the interrupted call. */
#include "tests/targets/truth.h"

#include <signal.h>

enum { NR_ROUNDS = 50, STACK_SIZE = 1 << 16 };

static char arena[1 << 20] __attribute__((aligned(16)));
static size_t used;
static volatile int nr_freed;
static volatile sig_atomic_t is_armed, nr_handled;

/* The program's own allocator: a signal comes in the middle of it when the program wants that. */
FN void *malloc(size_t size)
{
	size_t at = __atomic_fetch_add(&used, (size + 15) & ~(size_t)15, __ATOMIC_RELAXED);

	if (is_armed) {
		is_armed = 0;
		raise(SIGUSR1);
	}
	return at + size > sizeof(arena) ? NULL : arena + at;
}

FN void free(void *p)
{
	if (p)
		nr_freed++;
}

static void on_signal(int sig)
{
	void *p = malloc((size_t)sig);

	keep(p);
	nr_handled++;
}

FN static int rounds(void)
{
	for (int i = 0; i < NR_ROUNDS; i++) {
		void *p;

		is_armed = 1;
		p = malloc(50);
		keep(p);
		free(p);
	}
	return nr_handled == NR_ROUNDS && nr_freed == NR_ROUNDS;
}

int main(void)
{
	char stack[STACK_SIZE];
	stack_t ss = { .ss_sp = stack, .ss_size = sizeof(stack) };
	struct sigaction sa = { .sa_handler = on_signal, .sa_flags = SA_ONSTACK };

	truth_begin();
	if (sigaltstack(&ss, NULL) || sigaction(SIGUSR1, &sa, NULL))
		return 2;
	if (!rounds())
		return 1;
	expect("calls malloc %d", 2 * NR_ROUNDS);
	expect("calls free %d", NR_ROUNDS);
	return 0;
}
