/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Threads that lose the blocks that they were started with, or that they return: "leak_arg [N]". The C library keeps
 * the descriptors of ended threads, with the argument and the result. The last thread waits for nobody: its result may
 * be fetched yet. Blocks are cleared: what lay there before may have been a pointer to another one.
 */
#include <pthread.h>
#include <sys/syscall.h>

#include "tests/targets/truth.h"

static long last_tid;

FN static void *argument(void)
{
	return memset(malloc(100), 0, 100);
}

FN static void *result(void)
{
	return memset(malloc(200), 0, 200);
}

FN static void *unfetched(void)
{
	return memset(malloc(300), 0, 300);
}

FN static void *thread_main(void *arg)
{
	if (arg)
		return result();
	last_tid = syscall(SYS_gettid);
	return unfetched();
}

FN static void run_all(pthread_t *threads, long nr)
{
	for (long i = 0; i < nr; i++)
		pthread_create(&threads[i], NULL, thread_main, argument());
	for (long i = 0; i < nr; i++) {
		void *lost;

		pthread_join(threads[i], &lost);
	}
}

FN static void run_unfetched(pthread_t *thread)
{
	char path[64];

	pthread_create(thread, NULL, thread_main, NULL);
	while (!__atomic_load_n(&last_tid, __ATOMIC_SEQ_CST))
		usleep(1000);
	snprintf(path, sizeof(path), "/proc/self/task/%ld", last_tid);
	while (access(path, F_OK) == 0)
		usleep(1000);
}

int main(int argc, char **argv)
{
	static pthread_t threads[1000], last;
	long nr = arg_or(argc, argv, 1, 100);

	truth_begin();
	run_all(threads, nr);
	memset(threads, 0, sizeof(threads));
	run_unfetched(&last);
	expect("definite %ld %ld argument", nr, nr * 100);
	expect("definite %ld %ld result", nr, nr * 200);
	expect("reachable 1 300 unfetched");
	fflush(stdout);
	scrub();
	return 0;
}
