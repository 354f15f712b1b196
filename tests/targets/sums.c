/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * sums [THREADS]: threads fill blocks, hand them over, and check the sum of their bytes before they free them, while a
 * timer's handler asks for call stacks. Until SIGTERM; a wrong sum aborts.
 */
#include "tests/targets/truth.h"

#include <execinfo.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <sys/time.h>

enum { NR_SLOTS = 256, MAX_THREADS = 64, MAX_FRAMES = 32, HEADER = 16 };

/* A block holds its length and the sum of the bytes behind that. */
static uint64_t *slots[NR_SLOTS];
static volatile sig_atomic_t is_over, nr_walks;

static void on_term(int sig)
{
	(void)sig;
	is_over = 1;
}

static void on_timer(int sig)
{
	void *frames[MAX_FRAMES];

	(void)sig;
	if (backtrace(frames, MAX_FRAMES) < 1)
		abort();
	nr_walks++;
}

static uint64_t sum_of(const uint64_t *block)
{
	const unsigned char *bytes = (const unsigned char *)block + HEADER;
	uint64_t sum = 0;

	for (uint64_t i = 0; i < block[0]; i++)
		sum = sum * 31 + bytes[i];
	return sum;
}

FN static uint64_t *make(uint64_t n)
{
	uint64_t len = n % 200, *block = malloc(HEADER + len);

	block[0] = len;
	memset((unsigned char *)block + HEADER, (int)n, len);
	block[1] = sum_of(block);
	return block;
}

FN static void check(uint64_t *block)
{
	if (block && block[1] != sum_of(block))
		abort();
	free(block);
}

static void *work(void *arg)
{
	uint64_t n = (uint64_t)(uintptr_t)arg * 7919;

	for (; !is_over; n = n * 6364136223846793005ULL + 1442695040888963407ULL) {
		uint64_t *block = make(n >> 33);

		if (n >> 60 == 0)
			block = realloc(block, HEADER + block[0] + 100);
		check(__atomic_exchange_n(&slots[n >> 40 & (NR_SLOTS - 1)], block, __ATOMIC_ACQ_REL));
	}
	return NULL;
}

int main(int argc, char **argv)
{
	const struct itimerval often = { { 0, 1000 }, { 0, 1000 } };
	struct sigaction term = { .sa_handler = on_term };
	struct sigaction timer = { .sa_handler = on_timer, .sa_flags = SA_RESTART };
	long nr = arg_or(argc, argv, 1, 8);
	pthread_t threads[MAX_THREADS];
	void *frame;

	truth_begin();
	/* The first call loads a library. */
	if (nr < 1 || nr > MAX_THREADS || backtrace(&frame, 1) < 1)
		return 2;
	sigaction(SIGTERM, &term, NULL);
	sigaction(SIGPROF, &timer, NULL);
	setitimer(ITIMER_PROF, &often, NULL);
	printf("ready\n");
	fflush(stdout);
	for (long i = 0; i < nr; i++)
		if (pthread_create(&threads[i], NULL, work, (void *)(uintptr_t)(i + 1)))
			return 1;
	for (long i = 0; i < nr; i++)
		pthread_join(threads[i], NULL);
	printf("sums are right, walks %d\n", (int)nr_walks);
	return 0;
}
