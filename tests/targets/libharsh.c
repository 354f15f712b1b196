/* SPDX-License-Identifier: GPL-2.0-or-later */
/* libharsh.so: malloc and free of tests/targets/harsh.c, which each coroutine can be in: aligned, without locks. */
#include "tests/targets/libharsh.h"

#define API __attribute__((noinline, visibility("default")))

struct pool {
	char memory[1 << 20] __attribute__((aligned(SLOT)));
	unsigned long used;
};

static struct pool pools[NR_COROUTINES];
static struct harsh state;

API void *malloc(size_t size);
API void free(void *p);

API struct harsh *harsh_state(void)
{
	return &state;
}

/* At least 16 bytes of stack. */
API void *malloc(size_t size)
{
	struct pool *pool = &pools[state.current];
	char *p =
		pool->memory + __atomic_fetch_add(&pool->used, SLOT, __ATOMIC_RELAXED) % sizeof(pool->memory);

	__atomic_fetch_add(&state.nr_begun, 1, __ATOMIC_RELAXED);
	for (volatile int i = 0; i < 20; i++)
		;
	return size <= SLOT ? p : NULL;
}

API void free(void *p)
{
	if (!p)
		return;
	__atomic_fetch_add(&state.nr_freed, 1, __ATOMIC_RELAXED);
	*(volatile long *)p = 0;
}

API void harsh_pair(size_t size)
{
	void *p = malloc(size);

	__asm__ volatile("" : "+r"(p) : : "memory");
	free(p);
}
