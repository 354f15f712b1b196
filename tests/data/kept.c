/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The program of the recordings in this directory (README.md): leaks, a thread, children, markers, a pool. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "include/heaptap.h"

#define FN __attribute__((noipa))

struct list {
	struct list *next;
	char text[56];
};

static struct list *cache, *volatile lost;
static char *volatile last;

FN static struct list *link_node(struct list *next)
{
	struct list *l = malloc(sizeof(*l));

	l->next = next;
	return l;
}

/* Reachable. */
FN static void fill_cache(int nr)
{
	while (nr-- > 0)
		cache = link_node(cache);
}

/* One definite block, and nr - 1 indirect ones behind it. */
FN static void lose_list(int nr)
{
	struct list *l = NULL;

	while (nr-- > 0)
		l = link_node(l);
	lost = l;
	lost = NULL;
}

FN static void lose_blocks(int nr, size_t size)
{
	while (nr-- > 0)
		last = calloc(1, size);
	last = NULL;
}

/* Temporary. */
FN static void work(int nr)
{
	for (int i = 1; i <= nr; i++) {
		last = malloc(100);
		last = realloc(last, 100 + (size_t)i * 10);
		free(last);
	}
	last = NULL;
}

static void *run_thread(void *unused)
{
	fill_cache(3);
	work(4);
	return unused;
}

static void use_heap(void)
{
	pthread_t thread;

	fill_cache(20);
	work(10);
	if (!pthread_create(&thread, NULL, run_thread, NULL))
		pthread_join(thread, NULL);
	lose_list(5);
	lose_blocks(7, 1000);
}

/* A child that ends by itself, and one that becomes another program. */
static void use_children(const char *own)
{
	lose_blocks(2, 64);
	if (!fork()) {
		lose_blocks(3, 48);
		exit(3);
	}
	wait(NULL);
	if (!fork()) {
		execl(own, own, "heap", NULL);
		_exit(127);
	}
	wait(NULL);
}

static void use_markers(void)
{
	static char arena[1024];

	fill_cache(1);
	HEAPTAP_MARK("before");
	fill_cache(3);
	lose_blocks(2, 300);
	HEAPTAP_PAUSE();
	fill_cache(50);
	HEAPTAP_RESUME();
	HEAPTAP_MARK("after");
	for (int i = 0; i < 4; i++)
		HEAPTAP_ALLOC(arena + 64 * i, 48);
	HEAPTAP_FREE(arena);
	last = malloc(10);
	HEAPTAP_FREE(last);
	fill_cache(5);
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "heap";

	if (!strcmp(what, "heap"))
		use_heap();
	else if (!strcmp(what, "children"))
		use_children(argv[0]);
	else if (!strcmp(what, "markers"))
		use_markers();
	/* Pointers of the calls above are on the stack no more. */
	memset(__builtin_alloca(4096), 0, 4096);
	return 0;
}
