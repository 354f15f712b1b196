/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Preloaded into a real program: a thread of it that forgets a block of 1000 bytes every 10 ms, and keeps others. */
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#define FN __attribute__((noipa))

void *plug_kept[64];

FN static void plug_forgets(void)
{
	char *volatile p = malloc(1000);

	p[0] = 1;
	p = NULL;
}

FN static void plug_keeps(unsigned i)
{
	free(plug_kept[i % 64]);
	plug_kept[i % 64] = malloc(500);
}

static void *plug_main(void *arg)
{
	for (unsigned i = 0;; i++) {
		plug_forgets();
		plug_keeps(i);
		usleep(10000);
	}
	return arg;
}

__attribute__((constructor)) static void plug_start(void)
{
	pthread_t thread;

	if (getenv("HEAPTAP_PLUG_LEAK"))
		pthread_create(&thread, NULL, plug_main, NULL);
}
