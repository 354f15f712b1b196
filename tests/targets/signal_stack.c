/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Two threads whose signal stacks are blocks to which only the kernel has pointers: signal_stack [wait]. With "wait"
 * the threads register them after a line of input, and the program ends after another line.
 */
#include <pthread.h>
#include <signal.h>
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

static void *other(void *arg)
{
	register_stack();
	scrub();
	pthread_barrier_wait(&is_set);
	for (;;)
		pause();
	return arg;
}

int main(int argc, char **argv)
{
	pthread_t thread;

	truth_begin();
	expect("reachable 2 %d held", 2 * STACK_BYTES);
	reached("ready", argc > 1);
	pthread_barrier_init(&is_set, NULL, 2);
	pthread_create(&thread, NULL, other, NULL);
	register_stack();
	pthread_barrier_wait(&is_set);
	scrub();
	reached("built", argc > 1);
	(void)argv;
	_exit(0);
}
