/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Keeps the settings of signals that heaptap changes for itself, for the programs that it starts. */
#include "user/source/inherited.h"

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>

/* Static, because these settings belong to the process. */
static struct {
	bool is_known, ignores_children;
	sigset_t mask;
} inherited;

void inherited_begin(void)
{
	struct sigaction now;

	inherited.is_known = !sigprocmask(SIG_SETMASK, NULL, &inherited.mask);
	if (sigaction(SIGCHLD, NULL, &now) || now.sa_handler != SIG_IGN)
		return;
	/* Where SIGCHLD is ignored, the kernel keeps no exit status of a child. */
	inherited.ignores_children = true;
	signal(SIGCHLD, SIG_DFL);
}

void inherited_restore(void)
{
	if (inherited.ignores_children)
		signal(SIGCHLD, SIG_IGN);
	if (!inherited.is_known)
		sigemptyset(&inherited.mask);
	sigprocmask(SIG_SETMASK, &inherited.mask, NULL);
}
