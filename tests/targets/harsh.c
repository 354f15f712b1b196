/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A program that is hard on code that comes into its calls of malloc. "align": accesses that are not aligned end it.
 * "counter": so does a read of the CPU's counter, in all threads. "small BYTES": it has a stack of so many bytes.
 * "jumps N": signals leave malloc and free by siglongjmp(), N times. "deep N": so do they from many places on the
 * stack, and many calls come later, at one place. "turns N": signals go on with another coroutine at any moment, N
 * times. harsh-library has its allocator in a library.
 */
#include "tests/targets/truth.h"

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/time.h>
#include <ucontext.h>

#ifdef HAS_LIBRARY
#include "tests/targets/libharsh.h"
#else
#include "tests/targets/libharsh.c"
#endif

enum { NR_PAIRS = 1000, NR_THREADS = 2, STACK_SIZE = 1 << 16, TIMER_US = 60 };
enum { NR_DEPTHS = 61, DEPTH_BYTES = 400, NR_LATER = 100000 };

static volatile int nr_left, is_over;
static unsigned long nr_turns;
static ucontext_t contexts[NR_COROUTINES], ended;
static sigjmp_buf before;

static void *pairs(void *nothing)
{
	for (size_t i = 0; i < NR_PAIRS; i++)
		harsh_pair(i % SLOT + 1);
	return nothing;
}

#if defined(__x86_64__)

/* Below the red zone, which this function may use. */
static void set_flag(unsigned long set, unsigned long clear)
{
	__asm__ volatile("sub $128, %%rsp; pushf; orq %0, (%%rsp); andq %1, (%%rsp); popf; add $128, %%rsp"
			 :
			 : "r"(set), "r"(~clear)
			 : "memory", "cc");
}

static unsigned long flags(void)
{
	unsigned long value;

	__asm__ volatile("sub $128, %%rsp; pushf; pop %0; add $128, %%rsp" : "=r"(value) : : "memory", "cc");
	return value;
}

static int run_align(void)
{
	const unsigned long flag = 1UL << 18;
	int is_kept;

	set_flag(flag, 0);
	pairs(NULL);
	is_kept = !!(flags() & flag);
	set_flag(0, flag);
	return is_kept ? 0 : 1;
}

#else

/* The flag is one of x86. */
static int run_align(void)
{
	pairs(NULL);
	return 0;
}

#endif

static int run_counter(void)
{
	pthread_t threads[NR_THREADS];

	if (prctl(PR_SET_TSC, PR_TSC_SIGSEGV, 0, 0, 0))
		return 77;
	pairs(NULL);
	for (int i = 0; i < NR_THREADS; i++)
		if (pthread_create(&threads[i], NULL, pairs, NULL))
			return 1;
	for (int i = 0; i < NR_THREADS; i++)
		pthread_join(threads[i], NULL);
	return 0;
}

/* ---- coroutines ---- */

static void go_on(void)
{
	volatile int is_back = 0;

	getcontext(&ended);
	if (!is_back) {
		is_back = 1;
		setcontext(&contexts[0]);
	}
}

static void make_coroutine(int nr, void (*function)(void), void *stack, size_t bytes)
{
	getcontext(&contexts[nr]);
	contexts[nr].uc_stack = (stack_t){ .ss_sp = stack, .ss_size = bytes };
	contexts[nr].uc_link = &ended;
	makecontext(&contexts[nr], function, 0);
}

static void run_one(void)
{
	pairs(NULL);
}

/* Nothing can be written below the stack. */
static int run_small(size_t bytes)
{
	char *low = mmap(NULL, 2 * STACK_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (low == MAP_FAILED || mprotect(low, STACK_SIZE, PROT_NONE))
		return 1;
	make_coroutine(0, run_one, low + STACK_SIZE, bytes);
	go_on();
	return 0;
}

/* One signal: a tracer may need longer for a signal than a period, and then the program would never get on. */
static void set_timer(int us)
{
	const struct itimerval once = { { 0, 0 }, { 0, us } };

	setitimer(ITIMER_REAL, &once, NULL);
}

static void block_alarm(int how)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGALRM);
	sigprocmask(how, &set, NULL);
}

static void jump(int sig)
{
	(void)sig;
	nr_left++;
	set_timer(TIMER_US + nr_left % TIMER_US);
	siglongjmp(before, 1);
}

static int run_jumps(int nr)
{
	signal(SIGALRM, jump);
	if (!sigsetjmp(before, 1))
		set_timer(TIMER_US);
	while (nr_left < nr)
		harsh_pair(32);
	set_timer(0);
	return 0;
}

/* Calls with so many bytes of the stack more in use, until a signal leaves them. */
FN void pairs_below(size_t bytes)
{
	volatile char *room = __builtin_alloca(bytes);

	for (room[0] = 1; room[0];)
		harsh_pair(32);
}

static int run_deep(int nr)
{
	signal(SIGALRM, jump);
	if (!sigsetjmp(before, 1))
		set_timer(TIMER_US);
	if (nr_left < nr)
		pairs_below((size_t)(nr_left % NR_DEPTHS + 1) * DEPTH_BYTES);
	signal(SIGALRM, SIG_IGN);
	for (int i = 0; i < NR_LATER; i++)
		harsh_pair(32);
	return 0;
}

static void turn(int sig)
{
	int from = harsh_state()->current, to = (from + 1) % NR_COROUTINES;

	(void)sig;
	nr_turns++;
	harsh_state()->current = to;
	set_timer(TIMER_US + (int)(nr_turns % TIMER_US));
	swapcontext(&contexts[from], &contexts[to]);
}

/* Of all coroutines the first one to be over ends the program. */
static void allocate_in_turns(void)
{
	block_alarm(SIG_UNBLOCK);
	while (!is_over) {
		harsh_pair(48);
		is_over = nr_turns >= (unsigned long)nr_left;
	}
	block_alarm(SIG_BLOCK);
	setcontext(&ended);
}

static int run_turns(int nr)
{
	static char stacks[NR_COROUTINES][STACK_SIZE];

	nr_left = nr;
	block_alarm(SIG_BLOCK);
	for (int i = 0; i < NR_COROUTINES; i++)
		make_coroutine(i, allocate_in_turns, stacks[i], STACK_SIZE);
	signal(SIGALRM, turn);
	set_timer(TIMER_US);
	go_on();
	set_timer(0);
	return 0;
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	int nr = (int)arg_or(argc, argv, 2, 0), status = 2;

	truth_begin();
	if (!strcmp(what, "align"))
		status = run_align();
	else if (!strcmp(what, "counter"))
		status = run_counter();
	else if (!strcmp(what, "small"))
		status = run_small((size_t)nr);
	else if (!strcmp(what, "jumps"))
		status = run_jumps(nr);
	else if (!strcmp(what, "deep"))
		status = run_deep(nr);
	else if (!strcmp(what, "turns"))
		status = run_turns(nr);
	expect("calls malloc %lu", harsh_state()->nr_begun);
	expect("calls free %lu", harsh_state()->nr_freed);
	fflush(stdout);
	_exit(status);
}
