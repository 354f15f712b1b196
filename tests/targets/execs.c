/* SPDX-License-Identifier: GPL-2.0-or-later */
/* execs: from SIGUSR1 on, allocates and executes itself, without end; each time it prints a line. */
#include "tests/targets/truth.h"

#include <signal.h>

static volatile sig_atomic_t may_go;

static void on_signal(int sig)
{
	(void)sig;
	may_go = 1;
}

FN static void execs_allocates(void)
{
	for (int i = 0; i < 20; i++) {
		void *p = malloc(10);

		keep(p);
		free(p);
	}
}

int main(int argc, char **argv)
{
	char *again[] = { argv[0], "again", NULL };

	signal(SIGUSR1, on_signal);
	if (write(STDOUT_FILENO, argc > 1 ? "again\n" : "ready\n", 6) != 6)
		return 1;
	while (argc < 2 && !may_go)
		usleep(1000);
	execs_allocates();
	execv(argv[0], again);
	return 1;
}
