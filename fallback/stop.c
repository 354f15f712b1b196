/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The meaning of a status of wait(2). */
#include "fallback/stop.h"

#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

enum stop stop_of(int status)
{
	int event = status >> 16, sig = WSTOPSIG(status);

	if (!WIFSTOPPED(status))
		return STOP_GONE;
	switch (event) {
	case PTRACE_EVENT_STOP:
		return sig == SIGSTOP || sig == SIGTSTP || sig == SIGTTIN || sig == SIGTTOU ? STOP_GROUP
											    : STOP_ASKED;
	case PTRACE_EVENT_FORK:
	case PTRACE_EVENT_CLONE:
		return STOP_CHILD;
	case PTRACE_EVENT_VFORK:
		return STOP_VFORK;
	case PTRACE_EVENT_VFORK_DONE:
		return STOP_VFORK_DONE;
	case PTRACE_EVENT_EXEC:
		return STOP_EXEC;
	case PTRACE_EVENT_EXIT:
		return STOP_EXIT;
	default:
		if (sig == (SIGTRAP | 0x80))
			return STOP_SYSCALL;
		return sig == SIGTRAP ? STOP_TRAP : STOP_SIGNAL;
	}
}
