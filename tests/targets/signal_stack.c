/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Two threads whose signal stacks are blocks to which only the kernel has pointers: signal_stack [wait]. With "wait"
 * the threads register them after a line of input, and the program ends after another line.
 */
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/targets/truth.h"

enum { STACK_BYTES = 65536 };

static pthread_barrier_t is_set;

FN static void *held(size_t size)
{
	return malloc(size);
}

FN static void register_stack(void)
{
	stack_t stack = { .ss_sp = held(STACK_BYTES), .ss_size = STACK_BYTES };

	if (sigaltstack(&stack, NULL))
		_exit(98);
	stack.ss_sp = NULL;
	keep(*(void **)&stack);
}

FN static void scrub(void)
{
	volatile char dead[8192];

	for (size_t i = 0; i < sizeof(dead); i++)
		dead[i] = 0;
}

static void *other(void *arg)
{
	register_stack();
	scrub();
	pthread_barrier_wait(&is_set);
	for (;;)
		pause();
	return arg;
}

static void wait_line(void)
{
	char c = 0;

	while (c != '\n' && read(0, &c, 1) == 1)
		;
}

int main(int argc, char **argv)
{
	bool has_wait = argc > 1;
	pthread_t thread;

	truth_begin();
	expect("reachable 2 %d held", 2 * STACK_BYTES);
	puts("ready");
	fflush(stdout);
	if (has_wait)
		wait_line();
	pthread_barrier_init(&is_set, NULL, 2);
	pthread_create(&thread, NULL, other, NULL);
	register_stack();
	pthread_barrier_wait(&is_set);
	scrub();
	puts("built");
	fflush(stdout);
	if (has_wait)
		wait_line();
	(void)argv;
	_exit(0);
}
