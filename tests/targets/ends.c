/* SPDX-License-Identifier: GPL-2.0-or-later */
/* ends HOW: allocates before its end and in it: exit, quick, _exit, abort, main (another thread goes on). */
#include <pthread.h>

#include "tests/targets/truth.h"

static void *kept[30];

FN static void before_end(void)
{
	for (int i = 0; i < 10; i++) {
		kept[i] = malloc(100);
		keep(kept[i]);
	}
}

FN static void in_end(void)
{
	for (int i = 0; i < 5; i++) {
		kept[10 + i] = malloc(30);
		keep(kept[10 + i]);
	}
	free(kept[0]);
}

FN static void *after_main(void *arg)
{
	pthread_join(*(pthread_t *)arg, NULL);
	for (int i = 0; i < 7; i++) {
		kept[20 + i] = malloc(50);
		keep(kept[20 + i]);
	}
	expect("live 7 350 after_main");
	fflush(stdout);
	return NULL;
}

int main(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[1] : "exit";
	pthread_t self = pthread_self(), thread;
	int has_end = !strcmp(how, "exit") || !strcmp(how, "quick") || !strcmp(how, "main");

	truth_begin();
	atexit(in_end);
	at_quick_exit(in_end);
	before_end();
	expect("live %d %d before_end", 10 - has_end, 100 * (10 - has_end));
	expect("live %d %d in_end", 5 * has_end, 150 * has_end);
	fflush(stdout);
	if (!strcmp(how, "quick"))
		quick_exit(3);
	if (!strcmp(how, "_exit"))
		_exit(3);
	if (!strcmp(how, "abort"))
		abort();
	if (strcmp(how, "main"))
		exit(3);
	if (pthread_create(&thread, NULL, after_main, &self) || pthread_detach(thread))
		return 1;
	pthread_exit(NULL);
}
