/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * For LD_PRELOAD: at a signal, the program writes what malloc_info() says to the file of the name in INFO and its
 * PID, and nothing is allocated for this. The program must be idle.
 */
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static FILE *out;

static void write_info(int sig)
{
	(void)sig;
	rewind(out);
	malloc_info(0, out);
	fflush(out);
}

__attribute__((constructor)) static void begin(void)
{
	static char buffer[1 << 16];
	const char *prefix = getenv("INFO");
	struct sigaction action = { .sa_handler = write_info, .sa_flags = SA_RESTART };
	char path[4096];

	if (!prefix)
		return;
	snprintf(path, sizeof(path), "%s.%d", prefix, (int)getpid());
	out = fopen(path, "we");
	if (!out)
		return;
	setvbuf(out, buffer, _IOFBF, sizeof(buffer));
	sigaction(SIGRTMIN + 5, &action, NULL);
}
