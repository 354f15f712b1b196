/* SPDX-License-Identifier: GPL-2.0-or-later */
/* An allocator under other names (--alloc malloc=my_alloc,free=my_free,arg=2). */
#include "tests/targets/truth.h"

struct pool {
	char bytes[1 << 16];
	size_t used;
};

FN void *my_alloc(struct pool *pool, size_t size);
FN void my_free(struct pool *pool, void *p);

void *my_alloc(struct pool *pool, size_t size)
{
	void *p = pool->bytes + pool->used;

	pool->used += (size + 15) & ~(size_t)15;
	return p;
}

void my_free(struct pool *pool, void *p)
{
	keep(p);
	if (pool->used < 16)
		abort();
}

FN static void keeper(struct pool *pool)
{
	for (int i = 0; i < 9; i++) {
		void *p = my_alloc(pool, 48);

		keep(p);
	}
}

FN static void returner(struct pool *pool)
{
	for (int i = 0; i < 5; i++)
		my_free(pool, my_alloc(pool, 32));
}

int main(void)
{
	static struct pool pool;

	truth_begin();
	keeper(&pool);
	returner(&pool);
	expect("calls my_alloc 14");
	expect("calls my_free 5");
	expect("live 9 432 keeper");
	expect("live 0 0 returner");
	return 0;
}
