/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Shared by the stack targets: each function notes itself on a shadow stack before it calls deeper, and each
 * allocation adds to the chain that is on it. At the end they print what a report must say:
 *
 * chain END ALLOCATIONS BYTES t_innermost;t_next;...;main
 *
 * "*" stands for any functions of libraries in between; those outside main or a thread's start are left out.
 * END is "complete" or why the stack is cut. $TRUTH_DEPTH: the depth that heaptap is told; $TRUTH_THREAD_END:
 * the END of threads' stacks that are not cut there, where a C library has no call frame information.
 */
#pragma once

#include <pthread.h>
#include <stdint.h>

#include "tests/targets/truth.h"

enum { MAX_NAMES = 1024, MAX_TOLD = 127, MAX_CHAINS = 4096 };

/* Frames outside the outermost name: of main in glibc, and of a thread. */
enum { OUTSIDE_MAIN = 3, OUTSIDE_THREAD = 2 };

struct shadow {
	const char *names[MAX_NAMES]; /* outermost first */
	unsigned nr;
	unsigned outside; /* frames beyond names[0] */
	const char *end;  /* why walks end beyond names[0], where that is known beforehand */
};

struct chain {
	uint64_t hash;
	unsigned nr;
	int is_cut, is_thread;
	const char *end;
	unsigned long count, bytes;
	const char *names[MAX_TOLD]; /* innermost first */
};

static struct shadow main_shadow = { { 0 }, 0, OUTSIDE_MAIN, 0 };
static __thread struct shadow *shadow;
static struct chain chains[MAX_CHAINS];
static unsigned truth_depth = 64;
static int chains_lock;

/* Compilers may inline these functions: in any case they have no frame when malloc is called. */
__attribute__((noinline)) static void shadow_push(const char *name)
{
	shadow = shadow ? shadow : &main_shadow;
	if (shadow->nr >= MAX_NAMES)
		abort();
	shadow->names[shadow->nr++] = name;
}

__attribute__((noinline)) static void shadow_pop(void)
{
	shadow->nr--;
}

#define ENTER() shadow_push(__func__)
#define LEAVE() shadow_pop()

static uint64_t chain_hash(const struct shadow *s, unsigned shown, int is_cut)
{
	uint64_t hash = shown * 2 + is_cut;

	for (unsigned i = 0; i < shown; i++) {
		hash = (hash ^ (uintptr_t)s->names[s->nr - 1 - i]) * 0xff51afd7ed558ccdULL;
		hash ^= hash >> 32;
	}
	return hash | 1;
}

static struct chain *chain_find(const struct shadow *s)
{
	unsigned shown = s->nr < truth_depth ? s->nr : truth_depth;
	int is_cut = s->nr + s->outside > truth_depth;
	uint64_t hash = chain_hash(s, shown, is_cut);
	struct chain *c;

	for (unsigned i = 0; i < MAX_CHAINS; i++) {
		c = &chains[(hash + i) % MAX_CHAINS];
		if (c->hash == hash)
			return c;
		if (c->hash)
			continue;
		c->hash = hash;
		c->nr = shown;
		c->is_cut = is_cut;
		c->end = s->end;
		c->is_thread = s->outside == OUTSIDE_THREAD;
		for (unsigned k = 0; k < shown; k++)
			c->names[k] = s->names[s->nr - 1 - k];
		return c;
	}
	abort();
}

/* The present function is about to ask for @bytes. */
__attribute__((noinline)) static size_t note(size_t bytes)
{
	struct chain *c;

	while (__atomic_exchange_n(&chains_lock, 1, __ATOMIC_ACQUIRE))
		;
	c = chain_find(shadow);
	c->count++;
	c->bytes += bytes;
	__atomic_store_n(&chains_lock, 0, __ATOMIC_RELEASE);
	return bytes;
}

/* A block that nobody wants to keep. */
#define ALLOCATE(bytes)                                                                                      \
	do {                                                                                                 \
		void *block_ = malloc(note(bytes));                                                          \
                                                                                                             \
		keep(block_);                                                                                \
		free(block_);                                                                                \
	} while (0)

static void chains_begin(void)
{
	const char *depth = getenv("TRUTH_DEPTH");

	if (depth)
		truth_depth = atoi(depth);
	if (truth_depth > MAX_TOLD)
		truth_depth = MAX_TOLD;
}

static void chains_print(void)
{
	const char *thread_end = getenv("TRUTH_THREAD_END");
	static char out[1 << 16];

	setvbuf(stdout, out, _IOFBF, sizeof(out));
	for (unsigned i = 0; i < MAX_CHAINS; i++) {
		const struct chain *c = &chains[i];
		const char *end = c->is_thread && thread_end ? thread_end : "complete";

		if (!c->hash)
			continue;
		printf("chain %s %lu %lu ", c->is_cut ? "depth" : c->end ? c->end : end, c->count, c->bytes);
		for (unsigned k = 0; k < c->nr; k++)
			printf("%s%s", k ? ";" : "", c->names[k]);
		putchar('\n');
	}
	fflush(stdout);
}
