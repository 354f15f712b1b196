/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Containers that keep one past their end, where an allocator without headers has the next block: "neighbours
 * vectors|halves|queues|spans|sized|cursors|freed|table [wait]". The blocks of loser() are lost, those of keeper() are
 * held. sized: spans of different sizes. cursors: entries with data and a position, which some do not have.
 */
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <string>
#include <vector>

#include <unistd.h>

#define FN __attribute__((noipa))

enum { NR = 1000, SIZE = 128, DEQUE_BYTES = 512 };

static std::vector<std::vector<long>> vectors;
static std::vector<std::deque<long>> queues;
static std::vector<std::pair<char *, char *>> spans;
static std::vector<void *> table;

FN static void *loser(size_t size)
{
	void *p = malloc(size);

	memset(p, 0, size);
	return p;
}

FN static void *keeper(size_t size)
{
	return loser(size);
}

FN static void lose(size_t size)
{
	void *p = loser(size);

	__asm__ volatile("" : : "r"(p));
}

FN static void keep(const std::string &shape)
{
	if (shape == "vectors")
		vectors.emplace_back(SIZE / sizeof(long), 1);
	if (shape == "halves") {
		vectors.emplace_back();
		vectors.back().reserve(SIZE / sizeof(long));
		vectors.back().push_back(1);
	}
	if (shape == "queues")
		queues.emplace_back(8, 1);
	if (shape == "spans") {
		char *p = static_cast<char *>(keeper(SIZE));

		spans.emplace_back(p, p + SIZE);
	}
	if (shape == "sized") {
		size_t size = spans.size() % 3 ? SIZE - 1 - spans.size() % 13 : +SIZE;
		char *p = static_cast<char *>(keeper(size));

		spans.emplace_back(p, p + size);
	}
	if (shape == "cursors") {
		char *p = static_cast<char *>(keeper(SIZE));

		spans.emplace_back(p, spans.size() % 5 ? p + spans.size() % 8 * 8 : nullptr);
	}
	if (shape == "table")
		table.push_back(keeper(SIZE));
}

/* Arrays of blocks, which are freed without them. */
FN static void forget(size_t nr)
{
	void **blocks = static_cast<void **>(malloc(nr * sizeof(*blocks)));

	for (size_t i = 0; i < nr; i++)
		blocks[i] = loser(SIZE / 2);
	__asm__ volatile("" : : "r"(blocks) : "memory");
	free(blocks);
}

FN static void wipe(void)
{
	char bytes[8000];

	memset(bytes, 0, sizeof(bytes));
	__asm__ volatile("" : : "r"(bytes) : "memory");
}

int main(int argc, char **argv)
{
	const std::string shape = argc > 1 ? argv[1] : "vectors";

	vectors.reserve(NR);
	queues.reserve(NR);
	table.reserve(NR);
	spans.reserve(NR);
	for (int i = 0; i < NR; i++) {
		keep(shape);
		if (shape != "table" && shape != "freed" && shape != "cursors")
			lose(shape == "queues" ? +DEQUE_BYTES : +SIZE);
	}
	for (int i = 0; shape == "freed" && i < 5; i++)
		forget(NR / 5);
	wipe();
	puts("ready");
	fflush(stdout);
	while (argc > 2)
		pause();
	_exit(0);
}
