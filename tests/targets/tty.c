/* SPDX-License-Identifier: GPL-2.0-or-later */
/* tty [COUNT]: says what it has for a terminal, then prints each signal that reaches it; ends after COUNT. */
#include "tests/targets/truth.h"

#include <signal.h>

int main(int argc, char **argv)
{
	static const int passed[] = { SIGHUP, SIGINT, SIGQUIT, SIGUSR1, SIGUSR2, SIGTERM, SIGWINCH };
	long count = arg_or(argc, argv, 1, 1);
	sigset_t set;
	int sig;

	truth_begin();
	sigemptyset(&set);
	for (size_t i = 0; i < sizeof(passed) / sizeof(passed[0]); i++)
		sigaddset(&set, passed[i]);
	sigprocmask(SIG_BLOCK, &set, NULL);
	printf("pid %d ppid %d tty %d%d%d foreground %d\n", getpid(), getppid(), isatty(0), isatty(1),
	       isatty(2), tcgetpgrp(0) == getpgrp());
	fflush(stdout);
	while (count-- > 0 && !sigwait(&set, &sig)) {
		printf("signal %d\n", sig);
		fflush(stdout);
	}
	return 0;
}
