/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A program with a random heap, which knows the verdict of each block: heap SEED [BLOCKS [wait|list]]. Threads build
 * shapes, hold them in places of all kinds, lose some at once and others later. Some threads end. The program prints
 * the expected verdicts and ends by _exit. With "wait" it prints "ready", builds after the next line of input, prints
 * "built", and ends after another line. With "list" it builds at once, prints each block and "built", and ends after a
 * line.
 */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <ucontext.h>

#include "tests/leaks/roots.h"
#include "tests/leaks/shapes.h"
#include "tests/targets/truth.h"

enum {
	SHAPE_BLOCKS = 40,
	MAX_DROPS = 4096,
	NR_COROUTINES = 4,
	NR_FRAME = 12, /* cells of a coroutine */
	NR_HELD = 7,   /* registers */
	COROUTINE_BYTES = 128 << 10,
	DEPTH = 12,
};

/* How a thread ends its work. */
enum stay { STAY_PARKED, STAY_IN_HANDLER, STAY_ON_COROUTINE, STAY_NOT, STAY_UNJOINED, STAY_DETACHED };

struct coroutine {
	ucontext_t context;
	void *stack;
	bool is_mapped, is_over;
};

struct worker {
	unsigned number;
	enum stay stay;
	size_t blocks; /* to build */
	struct rng rng;
	struct cells cells;
	pthread_t thread;
	struct cell drops[MAX_DROPS]; /* blocks in these cells are lost at the end */
	size_t nr_drops;
	struct coroutine *coroutines; /* memory from mmap */
	ucontext_t back;
};

static struct worker *workers; /* mapped, so that it is not part of a block */
static pthread_barrier_t go;
static int nr_settled;
static __thread struct worker *self;

static void *map_pages(size_t size)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		_exit(97);
	return p;
}

/* The number of threads of this process. */
static int nr_threads(void)
{
	char text[4096], *line;
	int fd = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
	ssize_t len = read(fd, text, sizeof(text) - 1);

	close(fd);
	text[len > 0 ? len : 0] = '\0';
	line = strstr(text, "\nThreads:");
	return line ? atoi(line + 9) : 0;
}

static bool is_leaving(const struct worker *w)
{
	return w->stay >= STAY_NOT;
}

/* Choose a place that has room. Places that end with the thread only if their blocks may be lost. */
static struct cell any_cell(struct worker *w, enum fate fate)
{
	struct cell cell;

	for (;;) {
		enum place place = (enum place)rng_below(&w->rng, NR_PLACES);

		if (place >= IN_STACK && is_leaving(w) && fate != FATE_LOST)
			continue;
		if (place == IN_TIMER && fate == FATE_LOST && w->cells.used[place] > 4)
			continue;
		if (cell_take(&w->cells, place, &cell))
			return cell;
	}
}

static enum fate any_fate(struct rng *r)
{
	size_t n = rng_below(r, 100);

	return n < 48 ? FATE_LOST : n < 56 ? FATE_MIDDLE : FATE_KEPT;
}

/* Build one shape, and hold it somewhere or lose it. */
FN static void build_one(struct worker *w)
{
	enum fate fate = any_fate(&w->rng);
	bool is_held = fate != FATE_LOST || (rng_chance(&w->rng, 50) && w->nr_drops < MAX_DROPS);
	struct cell cell;

	if (!is_held) {
		shape_build(&w->rng, fate, SHAPE_BLOCKS);
		return;
	}
	cell = any_cell(w, fate);
	cell_put(&w->cells, cell, shape_build(&w->rng, fate, SHAPE_BLOCKS));
	/* A thread that ends loses the blocks in its own places. */
	if (fate == FATE_LOST && !(cell.place >= IN_STACK && is_leaving(w)))
		w->drops[w->nr_drops++] = cell;
}

/* Work that leaves copies of pointers in dead frames and in freed memory. */
FN static void churn(struct worker *w, unsigned depth)
{
	size_t nr = 4 + rng_below(&w->rng, 60), used = w->cells.used[IN_GLOBALS] + 1;
	void **copy = (void **)malloc(nr * sizeof(*copy)), *some[8];

	for (size_t i = 0; i < nr; i++)
		copy[i] = w->cells.of[IN_GLOBALS][rng_below(&w->rng, used)];
	for (size_t i = 0; i < 8; i++)
		some[i] = copy[i % nr];
	keep(*some);
	if (depth)
		churn(w, depth - 1);
	free(copy);
}

/* ---- other stacks ---- */

static __thread struct coroutine *running;

FN static void coroutine_main(void)
{
	struct worker *w = self;
	void *frame[NR_FRAME];

	for (auto &p : frame)
		p = shape_build(&w->rng, running->is_over ? FATE_LOST : FATE_KEPT, SHAPE_BLOCKS);
	keep(*frame);
	swapcontext(&running->context, &w->back);
	keep(*frame);
}

static void coroutine_init(struct coroutine *c, struct worker *w, void (*f)(void))
{
	c->is_mapped = rng_chance(&w->rng, 50);
	c->stack = c->is_mapped ? map_pages(COROUTINE_BYTES) : malloc(COROUTINE_BYTES);
	getcontext(&c->context);
	c->context.uc_stack.ss_sp = c->stack;
	c->context.uc_stack.ss_size = COROUTINE_BYTES;
	c->context.uc_link = &w->back;
	makecontext(&c->context, f, 0);
}

static void switch_to(struct worker *w, struct coroutine *c)
{
	running = c;
	swapcontext(&w->back, &c->context);
}

/* Some wait for ever with the blocks that they hold, some end. */
FN static void run_coroutines(struct worker *w)
{
	for (int i = 0; i < NR_COROUTINES; i++) {
		struct coroutine *c = &w->coroutines[i];

		c->is_over = rng_chance(&w->rng, 50);
		coroutine_init(c, w, coroutine_main);
		switch_to(w, c);
	}
	for (int i = 0; i < NR_COROUTINES; i++) {
		struct coroutine *c = &w->coroutines[i];

		if (!c->is_over)
			continue;
		switch_to(w, c);
		if (c->is_mapped)
			munmap(c->stack, COROUTINE_BYTES);
		else
			free(c->stack);
		memset((void *)c, 0, sizeof(*c));
	}
}

/* ---- ways in which threads wait ---- */

/* Wait for ever, with pointers that only registers hold. */
FN static void park(void)
{
	struct worker *w = self;
	void *held[NR_HELD];

	for (auto &p : held)
		p = shape_build(&w->rng, rng_chance(&w->rng, 20) ? FATE_MIDDLE : FATE_KEPT, SHAPE_BLOCKS);
	churn(w, DEPTH);
	keep(*held);
	__atomic_add_fetch(&nr_settled, 1, __ATOMIC_SEQ_CST);
#ifdef __x86_64__
	__asm__ volatile("mov 0(%0), %%rbx\n\tmov 8(%0), %%r12\n\tmov 16(%0), %%r13\n\tmov 24(%0), %%r14\n\t"
			 "mov 32(%0), %%r15\n\tmovq 40(%0), %%xmm6\n\tmovq 48(%0), %%xmm9\n\t"
			 "xor %%eax, %%eax\n\tmov $7, %%ecx\n\tmov %0, %%rdi\n\trep stosq\n"
			 "1:\tmov %1, %%eax\n\tsyscall\n\tjmp 1b"
			 :
			 : "r"(held), "i"(SYS_pause)
			 : "rax", "rbx", "rcx", "rdi", "r11", "r12", "r13", "r14", "r15", "xmm6", "xmm9",
			   "memory");
#endif
	for (;;) {
		pause();
		keep(*held);
	}
}

static void on_signal(int)
{
	park();
}

FN static void park_in_handler(void)
{
	stack_t other;
	struct sigaction action;

	memset(&other, 0, sizeof(other));
	other.ss_sp = map_pages(COROUTINE_BYTES);
	other.ss_size = COROUTINE_BYTES;
	memset(&action, 0, sizeof(action));
	action.sa_handler = on_signal;
	action.sa_flags = SA_ONSTACK;
	sigaltstack(&other, NULL);
	sigaction(SIGUSR1, &action, NULL);
	raise(SIGUSR1);
}

FN static void park_on_coroutine(struct worker *w)
{
	struct coroutine *c = &w->coroutines[NR_COROUTINES];

	coroutine_init(c, w, park);
	switch_to(w, c);
}

/* ---- threads ---- */

FN static void work(struct worker *w)
{
	size_t before = shapes_made_here();

	while (shapes_made_here() - before < w->blocks) {
		build_one(w);
		if (rng_chance(&w->rng, 5))
			churn(w, DEPTH);
	}
	run_coroutines(w);
	churn(w, DEPTH);
	for (size_t i = 0; i < w->nr_drops; i++)
		cell_put(&w->cells, w->drops[i], NULL);
}

FN static void *worker_main(void *arg)
{
	void *mine[NR_STACK_CELLS] = { NULL };
	struct worker *w = (struct worker *)arg;
	void *result = NULL;

	self = w;
	if (w->number < NR_WORKERS / 2)
		pthread_barrier_wait(&go);
	cells_init(&w->cells, w->number, mine);
	keep(*mine);
	work(w);
	switch (w->stay) {
	case STAY_PARKED:
		park();
		break;
	case STAY_IN_HANDLER:
		park_in_handler();
		break;
	case STAY_ON_COROUTINE:
		park_on_coroutine(w);
		break;
	case STAY_UNJOINED:
		result = shape_build(&w->rng, FATE_KEPT, SHAPE_BLOCKS);
		break;
	default:
		break;
	}
	keep(*mine);
	__atomic_add_fetch(&nr_settled, 1, __ATOMIC_SEQ_CST);
	return result;
}

static void start(struct worker *w)
{
	pthread_attr_t attr;

	pthread_attr_init(&attr);
	if (w->stay == STAY_DETACHED)
		pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	if (pthread_create(&w->thread, &attr, worker_main, w) != 0)
		_exit(96);
	pthread_attr_destroy(&attr);
}

/* Wait until all threads wait or have ended. */
static void wait_settled(void)
{
	int nr_staying = 1;

	while (__atomic_load_n(&nr_settled, __ATOMIC_SEQ_CST) < NR_WORKERS - 1)
		usleep(1000);
	for (int i = 1; i < NR_WORKERS; i++) {
		nr_staying += !is_leaving(&workers[i]);
		if (workers[i].stay == STAY_NOT)
			pthread_join(workers[i].thread, NULL);
	}
	while (nr_threads() > nr_staying)
		usleep(1000);
}

static void wait_line(void)
{
	char c;

	while (read(0, &c, 1) == 1 && c != '\n')
		;
}

static void say(const char *word)
{
	puts(word);
	fflush(stdout);
}

static void prepare(uint64_t seed, size_t blocks)
{
	static const enum stay stays[] = { STAY_PARKED, STAY_NOT, STAY_UNJOINED, STAY_DETACHED };
	struct rng r = { seed * 0x9e3779b97f4a7c15 + 1 };

	roots_init();
	workers = (struct worker *)map_pages(NR_WORKERS * sizeof(*workers));
	for (unsigned i = 0; i < NR_WORKERS; i++) {
		workers[i].number = i;
		/* Few threads use other stacks, because old pointers on their own stack are not known to be dead. */
		workers[i].stay = i && rng_chance(&r, 80) ? stays[rng_below(&r, 4)] : STAY_PARKED;
		if (i && rng_chance(&r, 10))
			workers[i].stay = rng_chance(&r, 50) ? STAY_IN_HANDLER : STAY_ON_COROUTINE;
		workers[i].blocks = blocks / NR_WORKERS;
		workers[i].rng.state = rng_next(&r);
		workers[i].coroutines =
			(struct coroutine *)map_pages((NR_COROUTINES + 1) * sizeof(struct coroutine));
	}
	pthread_barrier_init(&go, NULL, NR_WORKERS / 2);
	for (unsigned i = 1; i < NR_WORKERS / 2; i++)
		start(&workers[i]);
}

/* Blocks whose allocation heaptap does not see, because it attaches later. */
static void make_old(void)
{
	static void *old[64];
	struct rng r = { 99 };

	for (auto &p : old)
		p = shape_build(&r, FATE_KEPT, SHAPE_BLOCKS);
	shapes_forget();
}

int main(int argc, char **argv)
{
	void *mine[NR_STACK_CELLS] = { NULL };
	bool is_listing = argc > 3 && strcmp(argv[3], "list") == 0, is_waiting = argc > 3 && !is_listing;

	truth_begin();
	prepare((uint64_t)arg_or(argc, argv, 1, 1), (size_t)arg_or(argc, argv, 2, 20000));
	self = &workers[0];
	if (is_listing && !shapes_list_begin())
		return 95;
	if (is_waiting) {
		make_old();
		say("ready");
		wait_line();
	}
	pthread_barrier_wait(&go);
	for (unsigned i = NR_WORKERS / 2; i < NR_WORKERS; i++)
		start(&workers[i]);
	cells_init(&self->cells, 0, mine);
	keep(*mine);
	work(self);
	wait_settled();
	shapes_tell();
	if (is_listing)
		shapes_list_tell();
	say("built");
	if (is_waiting || is_listing)
		wait_line();
	keep(*mine);
	_exit(0);
}
