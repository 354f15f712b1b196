/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Loses blocks whose pointers stay in frames of functions that have returned, and is killed while it waits: frames
 * read|getchar|pause|sleep|poll|spin|cond. For tests/leaks/frames.sh, which builds it with several optimizations.
 */
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FN __attribute__((noinline, noclone))

enum { NR_SLOTS = 16, DEPTH = 4, SIZE = 10, TIMEOUT_MS = 100000 };

FN static void *leader(void)
{
	return calloc(1, SIZE);
}

FN static void use(const void *p)
{
	__asm__ volatile("" : : "r"(p) : "memory");
}

FN static void fill(void)
{
	void *volatile slots[NR_SLOTS];

	for (int i = 0; i < NR_SLOTS; i++)
		slots[i] = leader();
	use(*(void **)(void *)&slots[0]);
}

FN static void fill_deep(int depth)
{
	void *volatile slots[4];

	if (depth)
		fill_deep(depth - 1);
	for (int i = 0; i < 4; i++)
		slots[i] = leader();
	use(*(void **)(void *)&slots[0]);
}

FN static void six(const void *a, const void *b, const void *c, const void *d, const void *e, const void *f)
{
	use(a);
	use(b);
	use(c);
	use(d);
	use(e);
	use(f);
}

FN static void pass(void)
{
	six(leader(), leader(), leader(), leader(), leader(), leader());
}

FN static void by_read(void)
{
	char c;

	if (read(0, &c, 1) < 0)
		abort();
}

FN static void by_getchar(void)
{
	getchar();
}

FN static void by_pause(void)
{
	pause();
}

FN static void by_sleep(void)
{
	sleep(TIMEOUT_MS);
}

FN static void by_poll(void)
{
	struct pollfd p = { .events = POLLIN };

	poll(&p, 1, TIMEOUT_MS);
}

static volatile int is_over;

FN static void by_spin(void)
{
	while (!is_over)
		;
}

FN static void by_cond(void)
{
	static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
	static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;

	pthread_mutex_lock(&mutex);
	pthread_cond_wait(&cond, &mutex);
}

static const struct {
	const char *name;
	void (*wait)(void);
} ways[] = {
	{ "read", by_read }, { "getchar", by_getchar }, { "pause", by_pause }, { "sleep", by_sleep },
	{ "poll", by_poll }, { "spin", by_spin },	{ "cond", by_cond },
};

int main(int argc, char **argv)
{
	static char in[BUFSIZ], out[BUFSIZ];

	setvbuf(stdin, in, _IOFBF, sizeof(in));
	setvbuf(stdout, out, _IOFBF, sizeof(out));
	fill();
	fill_deep(DEPTH);
	pass();
	fill();
	alarm(1);
	for (size_t i = 0; i < sizeof(ways) / sizeof(*ways); i++)
		if (argc > 1 && strcmp(ways[i].name, argv[1]) == 0)
			ways[i].wait();
	return 99;
}
