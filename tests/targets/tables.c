/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * tables: ends while three threads wait, three have ended and were joined, and two have ended and nobody has joined
 * them. glibc has a table for each, to which only a pointer behind its first entry leads.
 */
#include "tests/targets/truth.h"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>

enum { NR_WAITING = 3, NR_JOINED = 3, NR_FORGOTTEN = 2 };

static void *wait_for_ever(void *arg)
{
	pause();
	return arg;
}

static void *end(void *arg)
{
	return arg;
}

/* Of this process: field 20, counted behind the name. */
static long nr_threads(void)
{
	char stat[512] = "";
	int fd = open("/proc/self/stat", O_RDONLY);
	ssize_t len = fd < 0 ? -1 : read(fd, stat, sizeof(stat) - 1);
	const char *at = len > 0 ? strrchr(stat, ')') : NULL;

	close(fd);
	for (int field = 2; at && field < 20; field++)
		at = strchr(at + 1, ' ');
	return at ? strtol(at, NULL, 10) : 0;
}

FN void start(pthread_t *thread, void *(*work)(void *))
{
	if (pthread_create(thread, NULL, work, NULL))
		exit(1);
}

int main(void)
{
	pthread_t waiting, joined[NR_JOINED], forgotten;

	truth_begin();
	for (int i = 0; i < NR_WAITING; i++)
		start(&waiting, wait_for_ever);
	for (int i = 0; i < NR_FORGOTTEN; i++)
		start(&forgotten, end);
	while (nr_threads() != 1 + NR_WAITING)
		sched_yield();
	for (int i = 0; i < NR_JOINED; i++)
		start(&joined[i], end);
	for (int i = 0; i < NR_JOINED; i++)
		pthread_join(joined[i], NULL);
	printf("tables %d forgotten %d\n", NR_WAITING + NR_JOINED + NR_FORGOTTEN, NR_FORGOTTEN);
	return 0;
}
