/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * planted ROUNDS [wait]: loses lists, trees and chains of blocks beside traffic and a live index, and prints how many
 * blocks, and bytes, are lost. wait: loses half of them, prints "half", and goes on after a line from stdin.
 */
#include "tests/targets/truth.h"

enum { KEPT = 512, LIST = 40, DEPTH = 5, NODE = 120, BUFFER = 900 };

struct node {
	struct node *left, *right;
	char text[NODE - 2 * sizeof(struct node *)];
};

static struct node *held[KEPT];
static void *kept[KEPT];
static unsigned long nr_lost, bytes_lost;

__attribute__((noinline)) static struct node *remember(void)
{
	nr_lost++;
	bytes_lost += NODE;
	return calloc(1, sizeof(struct node));
}

__attribute__((noinline)) static struct node *lose_list(void)
{
	struct node *head = NULL;

	for (int i = 0; i < LIST; i++) {
		struct node *n = remember();

		n->left = head;
		head = n;
	}
	return head;
}

__attribute__((noinline)) static struct node *lose_tree(int depth)
{
	struct node *n = remember();

	if (depth) {
		n->left = lose_tree(depth - 1);
		n->right = lose_tree(depth - 1);
	}
	return n;
}

/* A small head leads to a large buffer. */
__attribute__((noinline)) static void **lose_chain(void)
{
	void **head = malloc(sizeof(*head));

	*head = calloc(1, BUFFER);
	nr_lost += 2;
	bytes_lost += sizeof(*head) + BUFFER;
	return head;
}

/* Live nodes, which nothing but a live node leads to, and blocks that come and go. */
__attribute__((noinline)) static void traffic(long i)
{
	struct node *n = calloc(1, sizeof(*n));

	if (held[i % KEPT]) {
		free(held[i % KEPT]->left);
		free(held[i % KEPT]);
	}
	n->left = calloc(1, sizeof(*n));
	held[i % KEPT] = n;
	for (int k = 0; k < 20; k++) {
		free(kept[(i + k) % KEPT]);
		kept[(i + k) % KEPT] = malloc(100 + (size_t)(i * 37 + k * 101) % 3000);
	}
}

__attribute__((noinline)) static void rounds_of(long rounds)
{
	void *volatile lost;

	for (long i = 0; i < rounds; i++) {
		traffic(i);
		if (i % 40 == 0)
			lost = lose_list();
		if (i % 40 == 20)
			lost = lose_tree(DEPTH);
		if (i % 40 == 30)
			lost = lose_chain();
	}
	lost = NULL;
	(void)lost;
}

int main(int argc, char **argv)
{
	long rounds = argc > 1 ? atol(argv[1]) : 1;
	char line[16];

	if (argc > 2) {
		rounds_of(rounds / 2);
		scrub();
		puts("half");
		fflush(stdout);
		if (!fgets(line, sizeof(line), stdin))
			return 1;
		rounds -= rounds / 2;
	}
	rounds_of(rounds);
	scrub();
	printf("%lu %lu\n", nr_lost, bytes_lost);
	fflush(stdout);
	if (argc > 2 && !fgets(line, sizeof(line), stdin))
		return 1;
	return 0;
}
