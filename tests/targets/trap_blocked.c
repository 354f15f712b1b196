/* SPDX-License-Identifier: GPL-2.0-or-later */
/* trap_blocked: allocates until SIGTERM with SIGTRAP blocked, and tells what has become of its handler for it. */
#include "tests/targets/truth.h"

#include <signal.h>
#include <time.h>

static volatile sig_atomic_t is_over;

static void on_term(int sig)
{
	is_over = sig == SIGTERM;
}

int main(void)
{
	const struct timespec ms = { .tv_nsec = 1000000 };
	struct sigaction sa = { .sa_handler = on_term };
	sigset_t trap;

	sigaction(SIGTERM, &sa, NULL);
	sigaction(SIGTRAP, &sa, NULL);
	sigemptyset(&trap);
	sigaddset(&trap, SIGTRAP);
	sigprocmask(SIG_BLOCK, &trap, NULL);
	puts("ready");
	fflush(stdout);
	while (!is_over) {
		void *p = malloc(100);

		keep(p);
		free(p);
		nanosleep(&ms, NULL);
	}
	sigaction(SIGTRAP, NULL, &sa);
	puts(sa.sa_handler == on_term ? "handler kept" : "handler lost");
	return 0;
}
