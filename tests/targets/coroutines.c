/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Stacks that the program makes itself. "yield": its allocator goes on with another coroutine in the middle of a call.
 * "guard": a new thread allocates on such a stack, whose return addresses lead up into a page that cannot be read.
 */
#include "tests/targets/truth.h"

#include <pthread.h>
#include <sys/mman.h>
#include <ucontext.h>

enum { NR_COROUTINES = 3, NR_ROUNDS = 200, STACK_SIZE = 1 << 16, PAGE = 1 << 16, FRAME = 1 << 15 };

static char arena[1 << 20] __attribute__((aligned(16)));
static size_t used;
static ucontext_t coroutines[NR_COROUTINES], ended;
static int current = -1, nr_ended, nr_calls;
static volatile int nr_freed;
static void *in_wide;

static void yield(void)
{
	int from = current;

	current = (current + 1) % NR_COROUTINES;
	swapcontext(&coroutines[from], &coroutines[current]);
}

/* The program's own allocator. */
FN void *malloc(size_t size)
{
	size_t at = __atomic_fetch_add(&used, (size + 15) & ~(size_t)15, __ATOMIC_RELAXED);

	if (current >= 0) {
		nr_calls++;
		yield();
	}
	return at + size > sizeof(arena) ? NULL : arena + at;
}

FN void free(void *p)
{
	if (p)
		nr_freed++;
}

static void allocate(void)
{
	for (int i = 0; i < NR_ROUNDS; i++) {
		void *p = malloc(16);

		keep(p);
		free(p);
	}
	nr_ended++;
	while (nr_ended < NR_COROUTINES)
		yield();
	setcontext(&ended);
}

static int run_yield(void)
{
	static volatile int is_started;
	static char stacks[NR_COROUTINES][STACK_SIZE];

	for (int i = 0; i < NR_COROUTINES; i++) {
		getcontext(&coroutines[i]);
		coroutines[i].uc_stack = (stack_t){ .ss_sp = stacks[i], .ss_size = STACK_SIZE };
		makecontext(&coroutines[i], allocate, 0);
	}
	getcontext(&ended);
	if (!is_started) {
		is_started = 1;
		current = 0;
		setcontext(&coroutines[0]);
	}
	return nr_calls == NR_COROUTINES * NR_ROUNDS ? 0 : 1;
}

FN static void note_wide(void)
{
	in_wide = __builtin_return_address(0);
}

/* Above a return address in here is a large frame, says its unwind information. */
FN static void wide(void)
{
	char frame[FRAME], *in_frame = frame;

	keep(in_frame);
	note_wide();
	keep(in_frame);
}

/* Never returns, so its return address may be any: hand-made coroutines have that of a function that ends them. */
FN static void on_top(void)
{
	void *p;

	((void **)__builtin_frame_address(0))[1] = in_wide;
	p = malloc(16);
	keep(p);
	setcontext(&ended);
}

static void *run_thread(void *ctx)
{
	char *low = (char *)(((size_t)&ctx & -(size_t)PAGE) - (4 << 20)), *stack;
	volatile int is_started = 0;

	stack = mmap(low, STACK_SIZE + PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (stack == MAP_FAILED || mprotect(stack + STACK_SIZE, PAGE, PROT_NONE))
		return ctx;
	getcontext(&coroutines[0]);
	coroutines[0].uc_stack = (stack_t){ .ss_sp = stack, .ss_size = STACK_SIZE };
	makecontext(&coroutines[0], on_top, 0);
	getcontext(&ended);
	if (!is_started) {
		is_started = 1;
		setcontext(&coroutines[0]);
	}
	return NULL;
}

static int run_guard(void)
{
	pthread_attr_t attr;
	pthread_t thread;
	void *failed;

	wide();
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 1 << 20);
	return pthread_create(&thread, &attr, run_thread, arena) || pthread_join(thread, &failed) || failed;
}

int main(int argc, char **argv)
{
	int status = 2;

	truth_begin();
	if (argc > 1 && !strcmp(argv[1], "yield"))
		status = run_yield();
	else if (argc > 1 && !strcmp(argv[1], "guard"))
		status = run_guard();
	printf("status %d\n", status);
	return status;
}
