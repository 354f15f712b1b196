/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Handlers that allocate, on the thread's stack and on a stack of their own. */
#include "tests/targets/truth.h"

#include <pthread.h>
#include <signal.h>

enum { NR_ROUNDS = 200, STACK_SIZE = 1 << 16 };

static volatile sig_atomic_t nr_handled;
static void *last;

FN static void handler_allocates(void)
{
	void *p = malloc(70);

	keep(p);
	free(last);
	last = p;
	nr_handled++;
}

static void on_signal(int sig)
{
	(void)sig;
	handler_allocates();
}

FN static void rounds(int sig)
{
	for (int i = 0; i < NR_ROUNDS; i++) {
		void *p = malloc(50);

		keep(p);
		raise(sig);
		free(p);
	}
}

/* From another thread, while this one allocates nothing. */
static void *sender(void *arg)
{
	for (int i = 1; i <= NR_ROUNDS; i++) {
		pthread_kill(*(pthread_t *)arg, SIGUSR1);
		while (nr_handled < i)
			usleep(50);
	}
	return NULL;
}

static void asynchronous(void)
{
	pthread_t me = pthread_self(), other;

	nr_handled = 0;
	if (pthread_create(&other, NULL, sender, &me))
		abort();
	while (nr_handled < NR_ROUNDS)
		;
	pthread_join(other, NULL);
}

int main(void)
{
	static char stack[STACK_SIZE];
	stack_t ss = { .ss_sp = stack, .ss_size = sizeof(stack) };
	struct sigaction sa = { .sa_handler = on_signal };

	truth_begin();
	sigaltstack(&ss, NULL);
	sigaction(SIGUSR1, &sa, NULL);
	sa.sa_flags = SA_ONSTACK;
	sigaction(SIGUSR2, &sa, NULL);
	rounds(SIGUSR1);
	rounds(SIGUSR2);
	asynchronous();
	expect("calls malloc %d", NR_ROUNDS * 5);
	expect("calls free %d", NR_ROUNDS * 5 - 1);
	expect("live 1 70 handler_allocates");
	expect("allocs %d %d handler_allocates", NR_ROUNDS * 3, NR_ROUNDS * 3 * 70);
	expect("failed 0");
	expect("unknown 0");
	return 0;
}
