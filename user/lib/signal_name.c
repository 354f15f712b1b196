/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The one table of signals: people type their names, and read them in reports. */
#include "user/lib/signal_name.h"

#include <signal.h>
#include <string.h>

#include "user/lib/types.h"

static const struct {
	int number;
	const char *name;
} signals[] = {
	{ SIGHUP, "HUP" },   { SIGINT, "INT" },	  { SIGQUIT, "QUIT" }, { SIGILL, "ILL" },
	{ SIGTRAP, "TRAP" }, { SIGABRT, "ABRT" }, { SIGBUS, "BUS" },   { SIGFPE, "FPE" },
	{ SIGKILL, "KILL" }, { SIGUSR1, "USR1" }, { SIGSEGV, "SEGV" }, { SIGUSR2, "USR2" },
	{ SIGPIPE, "PIPE" }, { SIGALRM, "ALRM" }, { SIGTERM, "TERM" }, { SIGCHLD, "CHLD" },
	{ SIGCONT, "CONT" }, { SIGSTOP, "STOP" }, { SIGTSTP, "TSTP" }, { SIGXCPU, "XCPU" },
	{ SIGXFSZ, "XFSZ" }, { SIGSYS, "SYS" },
};

const char *signal_name(int number)
{
	for (size_t i = 0; i < ARRAY_SIZE(signals); i++)
		if (signals[i].number == number)
			return signals[i].name;
	return NULL;
}

int signal_number(const char *name)
{
	if (!strncmp(name, "SIG", 3))
		name += 3;
	for (size_t i = 0; i < ARRAY_SIZE(signals); i++)
		if (!strcmp(signals[i].name, name))
			return signals[i].number;
	return 0;
}
