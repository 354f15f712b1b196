/* SPDX-License-Identifier: GPL-2.0-or-later */
/* reloads LIBRARY: loads and unloads it again and again, beside threads whose every call has another deep stack. */
#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>

#include "tests/targets/truth.h"

/* The calls of all threads must fit into the ring. */
enum { NR_THREADS = 2, NR_RELOADS = 200, NR_CALLS = 100, LEAST_DEPTH = 60, NR_DEPTHS = 40, BYTES = 20 };

static int nr_loaded;

FN static void at_depth(int depth)
{
	void *p;

	if (depth) {
		at_depth(depth - 1);
		return;
	}
	p = malloc(BYTES);
	keep(p);
	free(p);
}

static void *work(void *arg)
{
	for (int i = 0; i < NR_RELOADS; i++) {
		while (__atomic_load_n(&nr_loaded, __ATOMIC_ACQUIRE) < i)
			sched_yield();
		for (int k = 0; k < NR_CALLS; k++)
			at_depth(LEAST_DEPTH + k % NR_DEPTHS);
	}
	return arg;
}

int main(int argc, char **argv)
{
	enum { NR_ALLOCS = NR_THREADS * NR_RELOADS * NR_CALLS };
	pthread_t threads[NR_THREADS];

	truth_begin();
	for (int i = 0; i < NR_THREADS; i++)
		if (argc < 2 || pthread_create(&threads[i], NULL, work, NULL))
			return 1;
	for (int i = 0; i < NR_RELOADS; i++) {
		void *library = dlopen(argv[1], RTLD_NOW);

		__atomic_fetch_add(&nr_loaded, 1, __ATOMIC_RELEASE);
		if (!library || dlclose(library))
			return 1;
	}
	for (int i = 0; i < NR_THREADS; i++)
		pthread_join(threads[i], NULL);
	expect("allocs %d %d at_depth", NR_ALLOCS, NR_ALLOCS * BYTES);
	expect("live 0 0 at_depth");
	return 0;
}
