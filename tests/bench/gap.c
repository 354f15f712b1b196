/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A program that notices when it does not run: gap MIB has so much memory in blocks of 1 KiB, prints "ready", and reads
 * the clock all the time, while it frees and allocates some thousand blocks a second. For each line of standard input
 * it prints the longest time between two readings since the line before, in milliseconds. It ends with standard input.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { BLOCK_BYTES = 1008, BLOCKS_A_MIB = 1024, READINGS = 10000 };

static void **blocks;
static long nr_blocks;

static double now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static void replace_block(void)
{
	static unsigned long at;

	at = (at + 7919) % (unsigned long)nr_blocks;
	free(blocks[at]);
	blocks[at] = malloc(BLOCK_BYTES);
}

static double longest_gap(double *last)
{
	double longest = 0;

	for (int i = 0; i < READINGS; i++) {
		double now = now_ms();

		longest = now - *last > longest ? now - *last : longest;
		*last = now;
	}
	return longest;
}

int main(int argc, char **argv)
{
	double last, longest = 0;

	nr_blocks = argc > 1 ? atol(argv[1]) * BLOCKS_A_MIB : 0;
	blocks = calloc((size_t)nr_blocks + 1, sizeof(*blocks));
	if (!blocks || nr_blocks <= 0)
		return 2;
	for (long i = 0; i < nr_blocks; i++) {
		blocks[i] = malloc(BLOCK_BYTES);
		if (!blocks[i])
			return 1;
		memset(blocks[i], 1, BLOCK_BYTES);
	}
	puts("ready");
	fflush(stdout);
	fcntl(0, F_SETFL, O_NONBLOCK);
	last = now_ms();
	for (;;) {
		double gap = longest_gap(&last);
		char byte;
		ssize_t n = read(0, &byte, 1);

		replace_block();
		longest = gap > longest ? gap : longest;
		if (!n)
			return 0;
		if (n < 0 || byte != '\n')
			continue;
		printf("%.1f\n", longest);
		fflush(stdout);
		longest = 0;
		last = now_ms();
	}
}
