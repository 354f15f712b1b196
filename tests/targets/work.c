/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Computes a number in a function that does not allocate: for symbols that lie about what it is. */
#include <stdint.h>

#include "tests/targets/truth.h"

const char table[64] = "read-only";

FN uint32_t work(uint32_t rounds)
{
	uint32_t sum = 0;

	for (uint32_t i = 0; i < rounds; i++)
		sum = (sum ^ i) * 2654435761U + (sum >> 7);
	return sum;
}

int main(void)
{
	uint32_t sum = 0;

	for (uint32_t i = 0; i < 300; i++) {
		void *p = malloc(10);

		keep(p);
		free(p);
		sum += work(i);
	}
	printf("%u %s\n", sum, table);
	return 0;
}
