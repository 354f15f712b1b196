/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Ignores SIGINT and goes on until SIGTERM. */
#include "tests/targets/truth.h"

#include <signal.h>

static volatile sig_atomic_t is_over;

static void on_term(int sig)
{
	(void)sig;
	is_over = 1;
}

int main(void)
{
	struct sigaction sa = { .sa_handler = on_term };

	truth_begin();
	signal(SIGINT, SIG_IGN);
	sigaction(SIGTERM, &sa, NULL);
	printf("ready\n");
	fflush(stdout);
	while (!is_over) {
		void *p = malloc(10);

		keep(p);
		free(p);
		usleep(1000);
	}
	printf("ended by SIGTERM\n");
	return 0;
}
