/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Blocks whose verdict is known by construction: "expect definite|indirect|possible|reachable BLOCKS BYTES FUNCTION".
 * Ends in a way that an argument chooses: exit (default), _exit, abort, segv, kill; or "wait": builds only when a line
 * comes in on stdin, says "built", and ends by _exit at the next line.
 */
#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>

#include "tests/targets/truth.h"

enum { NR_PLAIN = 5, NR_LIST = 10, NR_RING = 4, NR_MIDDLE = 2, NR_GLOBAL = 3 };

struct node {
	struct node *next;
	char text[40];
};

/* Not static: the compiler would drop what is never read. */
struct node *global_list;
char *middles[NR_MIDDLE];
struct node *middle_of_chain;
__thread char *in_tls;
char *freed_later;
static pthread_t thread;
static int is_thread_ready;

FN static void lose_plain(void)
{
	for (int i = 0; i < NR_PLAIN; i++) {
		char *p = malloc(100);

		keep(p);
	}
}

FN static struct node *list_head(void)
{
	return calloc(1, sizeof(struct node));
}

FN static struct node *list_node(struct node *next)
{
	struct node *n = calloc(1, sizeof(*n));

	n->next = next;
	return n;
}

FN static void lose_list(void)
{
	struct node *head = list_head();

	for (int i = 1; i < NR_LIST; i++)
		head->next = list_node(head->next);
	keep(head);
}

FN static struct node *ring_node(void)
{
	return calloc(1, 24 + sizeof(struct node));
}

FN static void lose_ring(void)
{
	struct node *first = ring_node(), *last = first;

	for (int i = 1; i < NR_RING; i++)
		last = last->next = ring_node();
	last->next = first;
	keep(first);
}

FN static struct node *shared_node(void)
{
	return calloc(1, 200);
}

FN static struct node *sharing_head(struct node *shared)
{
	struct node *n = calloc(1, 300);

	n->next = shared;
	return n;
}

/* Two heads lose the same block: it counts once. */
FN static void lose_shared(void)
{
	struct node *shared = shared_node();
	struct node *a = sharing_head(shared), *b = sharing_head(shared);

	keep(a);
	keep(b);
}

FN static void point_to_middle(void)
{
	for (int i = 0; i < NR_MIDDLE; i++)
		middles[i] = (char *)malloc(64) + 13;
}

FN static struct node *chain_end(void)
{
	return calloc(1, 80);
}

/* Reachable only by a pointer into the middle of another block: possible as that is. */
FN static void chain_behind_middle(void)
{
	struct node *n = calloc(1, 96);

	n->next = chain_end();
	middle_of_chain = (struct node *)((char *)n + 48);
}

FN static void keep_in_global(void)
{
	for (int i = 0; i < NR_GLOBAL; i++) {
		struct node *n = calloc(1, sizeof(*n));

		n->next = global_list;
		global_list = n;
	}
}

FN static void keep_in_tls(void)
{
	in_tls = malloc(33);
}

FN static char *keep_on_stack(void)
{
	return malloc(77);
}

FN static char *keep_in_register(void)
{
	return malloc(55);
}

FN static char *thread_block(void)
{
	return malloc(111);
}

FN static void *thread_main(void *arg)
{
	char *volatile mine = thread_block();

	scrub();
	__atomic_store_n(&is_thread_ready, 1, __ATOMIC_SEQ_CST);
	for (;;)
		pause();
	keep(arg);
	return mine;
}

FN static void start_thread(void)
{
	pthread_create(&thread, NULL, thread_main, NULL);
	while (!__atomic_load_n(&is_thread_ready, __ATOMIC_SEQ_CST))
		usleep(1000);
}

/* A block that was freed holds pointers, which are no roots. */
FN static void leave_pointer_in_freed(void)
{
	char **p = malloc(4000);

	for (int i = 0; i < 500; i++)
		p[i] = i == 300 ? malloc(222) : NULL;
	free(p);
	freed_later = malloc(10);
	free(freed_later);
	freed_later = NULL;
}

static void expectations(void)
{
	const int node = sizeof(struct node);

	expect("definite %d %d lose_plain", NR_PLAIN, NR_PLAIN * 100);
	expect("definite 1 %d list_head", node);
	expect("indirect %d %d list_node", NR_LIST - 1, (NR_LIST - 1) * node);
	expect("definite 1 %d ring_node", 24 + node);
	expect("indirect %d %d ring_node", NR_RING - 1, (NR_RING - 1) * (24 + node));
	expect("definite 2 600 sharing_head");
	expect("indirect 1 200 shared_node");
	expect("possible %d %d point_to_middle", NR_MIDDLE, NR_MIDDLE * 64);
	expect("possible 2 176 chain_behind_middle");
	expect("possible 1 80 chain_end");
	expect("reachable %d %d keep_in_global", NR_GLOBAL, NR_GLOBAL * node);
	expect("reachable 1 33 keep_in_tls");
	expect("reachable 1 77 keep_on_stack");
	expect("reachable 1 55 keep_in_register");
	expect("reachable 1 111 thread_main");
	expect("definite 1 222 leave_pointer_in_freed");
}

FN static void build(void)
{
	lose_plain();
	scrub();
	lose_list();
	scrub();
	lose_ring();
	scrub();
	lose_shared();
	scrub();
	point_to_middle();
	chain_behind_middle();
	scrub();
	keep_in_global();
	keep_in_tls();
	start_thread();
	leave_pointer_in_freed();
	scrub();
	expectations();
	fflush(stdout);
}

/* Ends by a system call (or signal) that is made while a register alone holds the block. */
FN static void end(const char *how, char *held)
{
#ifdef __x86_64__
	register char *in_register __asm__("r15") = held;
#else
	register char *in_register __asm__("esi") = held;
#endif

	held = NULL;
	scrub();
	__asm__ volatile("" : "+r"(in_register));
	if (!strcmp(how, "abort"))
		abort();
	else if (!strcmp(how, "segv"))
		*(volatile int *)16 = 1;
	else if (!strcmp(how, "kill"))
		kill(getpid(), SIGKILL);
	else if (strcmp(how, "exit"))
		_exit(3);
#ifdef __x86_64__
	__asm__ volatile("syscall"
			 :
			 : "a"(SYS_exit_group), "D"(0), "r"(in_register)
			 : "rcx", "r11", "memory");
#else
	__asm__ volatile("int $0x80" : : "a"(SYS_exit_group), "b"(0), "r"(in_register) : "memory");
#endif
}

int main(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[1] : "exit";
	int is_waiting = !strcmp(how, "wait");
	char *volatile on_stack;
	char *held;

	truth_begin();
	if (is_waiting)
		reached("ready", true);
	build();
	on_stack = keep_on_stack();
	held = keep_in_register();
	scrub();
	if (is_waiting)
		reached("built", true);
	end(how, held);
	return on_stack != NULL;
}
