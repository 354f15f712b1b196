/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Shapes of memory that leak checkers are tested with: "shapes NAME" builds one, "shapes" lists them. */
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include "include/heaptap.h"
#include "tests/verdicts/roles.h"

#if defined(__x86_64__)
#define PRESERVED "r12"
#elif defined(__aarch64__)
#define PRESERVED "x20"
#else
#define PRESERVED "esi"
#endif

struct node {
	struct node *left, *right;
	char text[24];
};

/* Not static: the compiler would drop what is never read. */
void *global, *globals[8];
void *initialized = &initialized;
__thread void *in_tls;

/* ---- chains, trees, cycles ---- */

static void plain(void)
{
	for (int i = 0; i < 10; i++) {
		void *p = leader(100);

		keep(p);
	}
}

static void empty(void)
{
	void *p = leader(0);

	keep(p);
}

static void list(void)
{
	struct node *head = leader(sizeof(*head));

	for (int i = 0; i < 9; i++) {
		struct node *n = behind(sizeof(*n));

		n->left = head->left;
		head->left = n;
	}
}

static void cycle(void)
{
	struct node *first = leader(sizeof(*first)), *last = first;

	for (int i = 0; i < 3; i++)
		last = last->left = behind(sizeof(*last));
	last->left = first;
}

/* One cycle leads to another. */
static void cycles(void)
{
	struct node *a = leader(sizeof(*a)), *b = behind(sizeof(*b));
	struct node *c = behind(sizeof(*c)), *d = behind(sizeof(*d));

	a->left = b;
	b->left = a;
	c->left = d;
	d->left = c;
	b->right = c;
}

static struct node *subtree(int depth)
{
	struct node *n = behind(sizeof(*n));

	if (depth) {
		n->left = subtree(depth - 1);
		n->right = subtree(depth - 1);
	}
	return n;
}

static void tree(void)
{
	struct node *n = leader(sizeof(*n));

	n->left = subtree(3);
	n->right = subtree(3);
}

static void to_itself(void)
{
	struct node *n = leader(sizeof(*n));

	n->left = n;
}

static void two_parents(void)
{
	struct node *a = leader(sizeof(*a)), *b = leader(sizeof(*b));

	a->left = b->left = behind(sizeof(*a));
}

/* ---- pointers to the start and to the middle, in all orders ---- */

static char *middle(void *p)
{
	return (char *)p + 9;
}

static void pointer_cases(void)
{
	struct node *n;

	globals[0] = held(sizeof(*n));
	n = globals[1] = held(sizeof(*n));
	n->left = held(sizeof(*n));
	n = leader(sizeof(*n));
	keep(n);
	n = leader(sizeof(*n));
	n->left = behind(sizeof(*n));
	globals[2] = middle(maybe(sizeof(*n)));
	n = globals[3] = held(sizeof(*n));
	n->left = (void *)middle(maybe(sizeof(*n)));
	n = maybe(sizeof(*n));
	n->left = maybe(sizeof(*n));
	globals[4] = middle(n);
	n = maybe(sizeof(*n));
	n->left = (void *)middle(maybe(sizeof(*n)));
	globals[5] = middle(n);
	n = leader(sizeof(*n));
	n->left = (void *)middle(behind(sizeof(*n)));
}

static void behind_the_end(void)
{
	global = (char *)leader(64) + 64 + 8;
}

static void unaligned(void)
{
	static char packed[32];
	void *p = leader(50);

	memcpy(packed + 3, &p, sizeof(p));
}

static void disguised(void)
{
	global = (void *)~(uintptr_t)leader(50);
}

static void in_freed_block(void)
{
	void **p = malloc(2000);

	memset(p, 0, 2000);
	p[100] = leader(60);
	free(p);
}

static void large(void)
{
	void *p = leader(64 << 20);

	keep(p);
}

/* ---- places of pointers ---- */

static void in_globals(void)
{
	static void *local;

	global = held(10);
	initialized = held(20);
	local = held(30);
	keep(local);
}

static void in_thread_data(void)
{
	in_tls = held(10);
}

/* Keys beyond the first 32 lie in another block of the C library. */
static void in_thread_keys(void)
{
	static pthread_key_t keys[40];

	for (int i = 0; i < 40; i++)
		pthread_key_create(&keys[i], NULL);
	pthread_setspecific(keys[3], held(10));
	pthread_setspecific(keys[39], held(20));
}

static void in_mapping(void)
{
	void **p = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	p[600] = held(10);
}

static void in_shared_mapping(void)
{
	void **p = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	p[600] = held(10);
}

static void in_block(void)
{
	void **p = global = held(4000);

	p[400] = held(10);
}

static void in_epoll(void)
{
	struct epoll_event ev = { .events = EPOLLIN };
	static int pipes[2];

	if (pipe(pipes))
		abort();
	ev.data.ptr = held(10);
	epoll_ctl(epoll_create1(0), EPOLL_CTL_ADD, pipes[0], &ev);
}

static void on_alternate_stack(void)
{
	const stack_t stack = { .ss_sp = held(65536), .ss_size = 65536 };

	sigaltstack(&stack, NULL);
}

/* ---- stacks ---- */

FN static void fill_frame(void)
{
	void *volatile slots[40];

	for (int i = 0; i < 40; i++)
		slots[i] = leader(10);
	keep(*(void **)(uintptr_t)&slots[0]);
}

static void in_dead_frame(void)
{
	fill_frame();
}

static jmp_buf back;

FN static void jump(void)
{
	void *volatile p = leader(10);

	longjmp(back, p != NULL);
}

static void behind_longjmp(void)
{
	if (!setjmp(back))
		jump();
}

static pthread_barrier_t barrier;

static void *wait_with_block(void *arg)
{
	void *volatile mine = held(10);

	pthread_barrier_wait(&barrier);
	for (;;)
		pause();
	return arg ? arg : mine;
}

static void on_thread_stack(void)
{
	pthread_t thread;

	pthread_barrier_init(&barrier, NULL, 2);
	pthread_create(&thread, NULL, wait_with_block, NULL);
	pthread_barrier_wait(&barrier);
}

static void *hold_in_register(void *arg)
{
	register void *p __asm__(PRESERVED) = held(10);

	__asm__ volatile("" : "+r"(p));
	pthread_barrier_wait(&barrier);
	for (;;)
		pause();
	__asm__ volatile("" : : "r"(p));
	return arg;
}

static void in_thread_register(void)
{
	pthread_t thread;

	pthread_barrier_init(&barrier, NULL, 2);
	pthread_create(&thread, NULL, hold_in_register, NULL);
	pthread_barrier_wait(&barrier);
}

static ucontext_t here, there;

static void coroutine(void)
{
	void *volatile mine = held(10);

	swapcontext(&there, &here);
	keep(*(void **)(uintptr_t)&mine);
}

static void on_coroutine_stack(void)
{
	static char stack[65536];

	getcontext(&there);
	there.uc_stack.ss_sp = stack;
	there.uc_stack.ss_size = sizeof(stack);
	makecontext(&there, coroutine, 0);
	swapcontext(&here, &there);
}

/* ---- threads that end ---- */

static void *lose(void *arg)
{
	void *p = leader(10);

	keep(p);
	return arg;
}

static void in_ended_thread(void)
{
	for (int i = 0; i < 10; i++) {
		pthread_t thread;

		pthread_create(&thread, NULL, lose, NULL);
		pthread_join(thread, NULL);
	}
}

static void *nothing_to_do(void *arg)
{
	return arg;
}

static void as_argument(void)
{
	pthread_t threads[10];

	for (int i = 0; i < 10; i++)
		pthread_create(&threads[i], NULL, nothing_to_do, leader(10));
	for (int i = 0; i < 10; i++)
		pthread_join(threads[i], NULL);
}

/* ---- pools: the header announces blocks in memory that the program has got otherwise ---- */

struct pool {
	char *memory;
	size_t used;
};

FN static void *leader_of_pool(struct pool *pool, size_t size)
{
	void *p = pool->memory + pool->used;

	pool->used += size;
	count_leader(size);
	HEAPTAP_ALLOC(p, size);
	return p;
}

FN static void *behind_of_pool(struct pool *pool, size_t size)
{
	void *p = pool->memory + pool->used;

	pool->used += size;
	count_behind(size);
	HEAPTAP_ALLOC(p, size);
	return p;
}

/* The pool is in use, and a block of it is lost. */
static void lost_pool_block(void)
{
	static struct pool pool;
	void *p;

	pool.memory = held(4096);
	pool.used = 64;
	p = leader_of_pool(&pool, 64);
	keep(p);
}

/* The pool is lost with its memory. */
static void lost_pool(void)
{
	struct pool *pool = leader(sizeof(*pool));

	pool->memory = behind(4096);
	keep(pool);
}

/* The pool is lost, and its memory is no block. The first of its blocks leads to the second. */
static void lost_mapped_pool(void)
{
	struct pool *pool = leader(sizeof(*pool));
	struct node *n;

	pool->memory = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	n = behind_of_pool(pool, sizeof(*n));
	n->left = behind_of_pool(pool, sizeof(*n));
	keep(pool);
}

/* ---- pools that nothing announces, as most programs have them ---- */

struct cell {
	struct cell *next;
	void *more;
};

/* Cells of @memory, each leading to the one before it. Returns the last one. */
static struct cell *fill_with_cells(char *memory, size_t nr)
{
	struct cell *last = NULL;

	for (size_t i = 1; i <= nr; i++) {
		struct cell *cell = (struct cell *)(memory + i * sizeof(*cell));

		cell->next = last;
		last = cell;
	}
	return last;
}

/* The pool is lost with its memory; its cells lead to each other's places in the middle, and to a block. */
static void lost_silent_pool(void)
{
	struct {
		char *memory;
		struct cell *last;
	} *pool = leader(sizeof(*pool));

	pool->memory = behind(4096);
	pool->last = fill_with_cells(pool->memory, 20);
	pool->last->more = behind(100);
	keep(pool);
}

/* The pool is lost, and its memory is left only by a cell that is in use: so is what that cell leads to. */
static void cell_of_silent_pool(void)
{
	static struct cell *volatile in_use;
	struct {
		char *memory;
	} *pool = leader(sizeof(*pool));
	char *memory = maybe(4096);

	in_use = fill_with_cells(memory, 20);
	in_use->more = maybe(100);
	pool->memory = memory;
	keep(pool);
}

/* A pool of several blocks, of which each leads to the next at its beginning, is lost by its first one. */
static void lost_chained_pool(void)
{
	char *memory = leader(1024);

	for (int i = 0; i < 3; i++) {
		char *next = behind(1024);

		*(void **)memory = next;
		fill_with_cells(memory, 20);
		memory = next;
	}
	keep(memory);
}

/* A pool of several blocks: cells of each lead into the one before, and one cell of the last is in use. */
static void cells_of_several_blocks(void)
{
	static struct cell *volatile in_use;

	for (int i = 0; i < 3; i++) {
		struct cell *last = fill_with_cells(maybe(1024), 20);

		last->more = in_use;
		in_use = last;
	}
}

static const struct shape shapes[] = {
	{ "plain", plain },
	{ "empty", empty },
	{ "list", list },
	{ "cycle", cycle },
	{ "cycles", cycles },
	{ "tree", tree },
	{ "to_itself", to_itself },
	{ "two_parents", two_parents },
	{ "pointer_cases", pointer_cases },
	{ "behind_the_end", behind_the_end },
	{ "unaligned", unaligned },
	{ "disguised", disguised },
	{ "in_freed_block", in_freed_block },
	{ "large", large },
	{ "in_globals", in_globals },
	{ "in_thread_data", in_thread_data },
	{ "in_thread_keys", in_thread_keys },
	{ "in_mapping", in_mapping },
	{ "in_shared_mapping", in_shared_mapping },
	{ "in_block", in_block },
	{ "in_epoll", in_epoll },
	{ "on_alternate_stack", on_alternate_stack },
	{ "in_dead_frame", in_dead_frame },
	{ "behind_longjmp", behind_longjmp },
	{ "on_thread_stack", on_thread_stack },
	{ "in_thread_register", in_thread_register },
	{ "on_coroutine_stack", on_coroutine_stack },
	{ "in_ended_thread", in_ended_thread },
	{ "as_argument", as_argument },
	{ "lost_pool_block", lost_pool_block },
	{ "lost_pool", lost_pool },
	{ "lost_mapped_pool", lost_mapped_pool },
	{ "lost_silent_pool", lost_silent_pool },
	{ "cell_of_silent_pool", cell_of_silent_pool },
	{ "lost_chained_pool", lost_chained_pool },
	{ "cells_of_several_blocks", cells_of_several_blocks },
};

int main(int argc, char **argv)
{
	return build_shape(shapes, sizeof(shapes) / sizeof(*shapes), argc, argv);
}
