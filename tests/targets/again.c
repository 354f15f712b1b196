/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Does what it is told on stdin and answers "ok", for repeated leak verdicts: lose N, hide N (blocks to which no plain
 * pointer leads until "show"), show, grow N (blocks that stay in a list), mask N (marks in the low bits), skew N
 * (pointers at odd addresses), quit.
 */
#include "tests/targets/truth.h"

#include <stdint.h>

enum { MAX_BLOCKS = 1000 };

struct item {
	struct item *next;
	char text[56];
};

static uintptr_t hidden[MAX_BLOCKS];
static int nr_hidden;
struct item *cache;
uintptr_t marked[MAX_BLOCKS];
static int nr_marked;
struct __attribute__((packed)) {
	char odd;
	void *blocks[MAX_BLOCKS];
} skewed;
static int nr_skewed;

FN static void again_loses(int n)
{
	while (n-- > 0) {
		void *p = malloc(100);

		keep(p);
	}
}

FN static void again_hides(int n)
{
	while (n-- > 0 && nr_hidden < MAX_BLOCKS)
		hidden[nr_hidden++] = ~(uintptr_t)malloc(200);
}

FN static void show_all(void)
{
	for (int i = 0; i < nr_hidden; i++)
		hidden[i] = ~hidden[i];
}

FN static void again_grows(int n)
{
	while (n-- > 0) {
		struct item *it = malloc(sizeof(*it));

		it->next = cache;
		cache = it;
	}
}

FN static void again_marks(int n)
{
	while (n-- > 0 && nr_marked < MAX_BLOCKS)
		marked[nr_marked++] = (uintptr_t)malloc(300) | 0xfff0000000000001;
}

FN static void again_skews(int n)
{
	while (n-- > 0 && nr_skewed < MAX_BLOCKS)
		skewed.blocks[nr_skewed++] = malloc(400);
}

static const struct {
	const char *word;
	void (*run)(int n);
} commands[] = {
	{ "lose", again_loses }, { "hide", again_hides }, { "grow", again_grows },
	{ "mask", again_marks }, { "skew", again_skews },
};

static int run(const char *line)
{
	char word[16];
	int n = 0;

	if (sscanf(line, "%15s %d", word, &n) < 1)
		return 0;
	if (!strcmp(word, "show")) {
		show_all();
		return 1;
	}
	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
		if (strcmp(word, commands[i].word))
			continue;
		commands[i].run(n);
		scrub();
		return 1;
	}
	return 0;
}

int main(void)
{
	static char in[4096], line[128];

	truth_begin();
	setvbuf(stdin, in, _IOLBF, sizeof(in));
	printf("ready\n");
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin) && run(line)) {
		printf("ok\n");
		fflush(stdout);
	}
	_exit(0);
}
