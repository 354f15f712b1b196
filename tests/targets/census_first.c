/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Blocks for the census by what they begin with and who holds them. Says "ready", waits until standard input ends. */
#include <sys/mman.h>

#include "tests/targets/truth.h"

enum { TEXTS = 50, ZEROS = 40, NUMBERS = 30, NODES = 20, HUGE = 2 << 20 };

struct node {
	struct node *next;
	char bytes[88];
};

char *texts[TEXTS];
long *zeros[ZEROS], *numbers[NUMBERS];
struct node *list;
char *forbidden; /* memory that the program may not read; all of one block's pointers lie there */
char *large;

/* A block whose only pointer is in a page without rights. */
__attribute__((noipa)) static void hide(void)
{
	forbidden = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	*(void **)(forbidden + 4096) = calloc(1, 7777);
	mprotect(forbidden, 65536, PROT_NONE);
}

/* Memory of huge pages, where the kernel gives them. */
static void use_huge(void)
{
	char *map = mmap(NULL, 4UL * HUGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	large = (char *)(((size_t)map + HUGE - 1) / HUGE * HUGE);
	madvise(large, 2UL * HUGE, MADV_HUGEPAGE);
	memset(large, 0, 2UL * HUGE);
}

int main(void)
{
	char byte;

	for (int i = 0; i < TEXTS; i++)
		strcpy(texts[i] = malloc(200), i % 2 ? "GET /index.html" : "user");
	for (int i = 0; i < ZEROS; i++)
		zeros[i] = calloc(1, 120);
	for (int i = 0; i < NUMBERS; i++)
		*(numbers[i] = malloc(56)) = 7 + i;
	for (int i = 0; i < NODES; i++) {
		struct node *node = calloc(1, sizeof(*node));

		node->next = list;
		list = node;
	}
	hide();
	use_huge();
	scrub();
	puts("ready\n</malloc>");
	fflush(stdout);
	while (read(0, &byte, 1) > 0)
		;
	return 0;
}
