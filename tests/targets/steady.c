/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * steady [changing]: allocates, fills, verifies and frees at a low rate, or at one that changes between 10,000 and a
 * million times a second, until SIGTERM; a byte that is wrong ends it with 1.
 */
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

#include "tests/targets/truth.h"

enum { NR_HELD = 64, PER_MS = 10, NR_RATES = 8, PAUSES_PER_RATE = 64 };

static volatile sig_atomic_t is_over;

static void on_term(int sig)
{
	(void)sig;
	is_over = 1;
}

/* The bytes of a block follow from its number alone. */
static uint8_t byte_of(uint64_t n, size_t i)
{
	return (uint8_t)(n * 167 + i * 13);
}

FN static uint8_t *steady_make(uint64_t n, size_t size)
{
	uint8_t *p = n % 3 ? malloc(size) : calloc(1, size);

	keep(p);
	for (size_t i = 0; p && i < size; i++)
		p[i] = byte_of(n, i);
	return p;
}

static int is_as_filled(const uint8_t *p, uint64_t n, size_t size)
{
	for (size_t i = 0; i < size; i++)
		if (p[i] != byte_of(n, i))
			return 0;
	return 1;
}

/* Blocks before the next pause of a millisecond, at pause @nr. */
static uint64_t changing_rate(uint64_t nr)
{
	return (uint64_t)PER_MS << ((nr / PAUSES_PER_RATE * 0x9e3779b97f4a7c15ULL) >> 60) % NR_RATES;
}

int main(int argc, char **argv)
{
	const struct timespec ms = { .tv_nsec = 1000000 };
	struct sigaction sa = { .sa_handler = on_term };
	uint8_t *held[NR_HELD] = { NULL };
	uint64_t n = 0, next = 0, nr_pauses = 0;
	int is_changing = argc > 1 && !strcmp(argv[1], "changing");

	truth_begin();
	sigaction(SIGTERM, &sa, NULL);
	printf("ready\n");
	fflush(stdout);
	for (; !is_over; n++) {
		uint8_t **slot = &held[n % NR_HELD];

		if (*slot && !is_as_filled(*slot, n - NR_HELD, 16 + (n - NR_HELD) % 500)) {
			printf("wrong byte in block %llu\n", (unsigned long long)n);
			return 1;
		}
		free(*slot);
		*slot = steady_make(n, 16 + n % 500);
		if (!*slot) {
			printf("no memory for block %llu\n", (unsigned long long)n);
			return 1;
		}
		if (n < next)
			continue;
		nanosleep(&ms, NULL);
		next = n + (is_changing ? changing_rate(nr_pauses++) : PER_MS);
	}
	printf("right\n");
	return 0;
}
