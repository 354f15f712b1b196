/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Markers of heaptap.h: prints what of its blocks is counted. "marked repeat N" marks N times; "marked odd" oddly. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "include/heaptap.h"

static void *kept[64];
static size_t nr_kept;

static __attribute__((noipa)) void keep(size_t size)
{
	kept[nr_kept] = malloc(size);
	memset(kept[nr_kept++], 1, size);
}

/* 1 + 3 + 5 blocks that are counted; 2 + 4 that are not, one of which grows. */
static void sections(void)
{
	void *grown;

	keep(100);
	HEAPTAP_MARK("before");
	for (int i = 0; i < 3; i++)
		keep(30);
	HEAPTAP_PAUSE();
	keep(1000);
	grown = malloc(2000);
	/* A counted block that is released while nothing is counted. */
	free(kept[--nr_kept - 1]);
	kept[nr_kept - 1] = kept[nr_kept];
	grown = realloc(grown, 200000);
	HEAPTAP_MARK("after");
	HEAPTAP_RESUME();
	for (int i = 0; i < 5; i++)
		keep(50);
	free(grown);
	puts("counted 9 blocks, 440 bytes, 8 live; between 3 blocks, 2 live");
}

static void repeat(long times)
{
	for (long i = 0; i < times; i++)
		HEAPTAP_MARK("again");
	keep(10);
}

/* Names that are hostile, too long, or not there. */
static void odd(void)
{
	char name[200];

	HEAPTAP_MARK("escape \033[31m\n");
	memset(name, 'x', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	HEAPTAP_MARK(name);
	HEAPTAP_MARK("");
	keep(10);
}

/* The child begins as its parent: paused. */
static void fork_paused(void)
{
	HEAPTAP_PAUSE();
	keep(11);
	if (!fork()) {
		keep(22);
		HEAPTAP_RESUME();
		keep(33);
		_exit(0);
	}
	wait(NULL);
	keep(44);
	HEAPTAP_RESUME();
	keep(55);
}

/* A pool of blocks of 64 bytes, the first of which begins where the memory of the pool does. */
static char *arena;
static size_t nr_taken;

static __attribute__((noipa)) void *take(void)
{
	void *block = arena + 64 * nr_taken++;

	HEAPTAP_ALLOC(block, 48);
	return block;
}

static __attribute__((noipa)) void give(void *block)
{
	HEAPTAP_FREE(block);
}

static __attribute__((noipa)) void lose(int nr)
{
	while (nr-- > 0)
		take();
}

static void pool(void)
{
	arena = malloc(4096);
	memset(arena, 0, 4096);
	kept[nr_kept++] = take();
	kept[nr_kept++] = take();
	give(take());
	lose(10);
}

/*
 * All blocks come back, then the memory does, again and again, and what is allocated next may lie there; and one block
 * goes to the wrong function.
 */
static void pool_ends(long rounds)
{
	while (rounds-- > 0) {
		arena = malloc(4096);
		for (nr_taken = 0; nr_taken < 3;)
			kept[nr_kept++] = take();
		while (nr_kept)
			give(kept[--nr_kept]);
		free(arena);
		free(malloc(10));
	}
	give(malloc(10));
}

static __attribute__((noipa)) void hide(uintptr_t mask)
{
	for (size_t i = 0; i < nr_kept; i++)
		kept[i] = (void *)((uintptr_t)kept[i] ^ mask);
}

/* Blocks are lost at the moment of the check, and found again behind it. */
static void check(void)
{
	for (int i = 0; i < 20; i++)
		keep(40);
	hide(UINTPTR_MAX);
	HEAPTAP_LEAK_CHECK();
	hide(UINTPTR_MAX);
}

/* Marks, a pause and a pool, in the words of tests/arch/compare.sh. */
static void expect(void)
{
	sections();
	pool();
	puts("expect live 8 410 keep\nexpect allocs 9 440 keep\nexpect allocs 13 624 take\nexpect live 12 576 take\n"
	     "expect live 10 480 lose\nexpect calls HEAPTAP_ALLOC 13\nexpect calls HEAPTAP_FREE 1\n"
	     "expect complete take\nexpect marks before,after");
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "sections";

	/* The stream allocates its buffer. */
	setvbuf(stdout, NULL, _IONBF, 0);
	if (!strcmp(what, "sections"))
		sections();
	else if (!strcmp(what, "repeat"))
		repeat(argc > 2 ? atol(argv[2]) : 1000);
	else if (!strcmp(what, "odd"))
		odd();
	else if (!strcmp(what, "pool"))
		pool();
	else if (!strcmp(what, "expect"))
		expect();
	else if (!strcmp(what, "pool_ends"))
		pool_ends(argc > 2 ? atol(argv[2]) : 1000);
	else if (!strcmp(what, "check"))
		check();
	else if (!strcmp(what, "fork"))
		fork_paused();
	return 0;
}
