/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The meaning of a status of wait(2), and of a signal in a stop. */
#include "arch/stop.h"

#include <errno.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

#include "arch/waits.h"

static bool stops_process(int sig)
{
	return sig == SIGSTOP || sig == SIGTSTP || sig == SIGTTIN || sig == SIGTTOU;
}

enum stop stop_of(int status)
{
	int event = status >> 16, sig = WSTOPSIG(status);

	if (!WIFSTOPPED(status))
		return STOP_GONE;
	switch (event) {
	case PTRACE_EVENT_STOP:
		return stops_process(sig) ? STOP_GROUP : STOP_ASKED;
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

int stop_signal(int status)
{
	enum stop stop = stop_of(status);

	return stop == STOP_SIGNAL || stop == STOP_TRAP ? WSTOPSIG(status) : 0;
}

int stop_code(pid_t tid)
{
	siginfo_t si;

	return ptrace(PTRACE_GETSIGINFO, tid, 0, &si) ? 0 : si.si_code;
}

/* EINVAL: a group stop has no siginfo. */
bool stop_is_there(pid_t tid)
{
	siginfo_t si;

	return !ptrace(PTRACE_GETSIGINFO, tid, 0, &si) || errno == EINVAL;
}

bool stop_hides_signal(pid_t tid, int sig)
{
	enum { MOST = 8 };
	struct __ptrace_peeksiginfo_args args = { .off = 0, .flags = 0, .nr = MOST };
	/* memcheck does not know that ptrace() writes it. */
	siginfo_t si[MOST] = { { 0 } };
	long nr = MOST;

	/* The signal is behind all signals that the thread blocks. */
	for (; nr == MOST; args.off += MOST) {
		nr = ptrace(PTRACE_PEEKSIGINFO, tid, &args, si);
		for (long i = 0; i < nr; i++)
			if (si[i].si_signo == sig && si[i].si_code > 0)
				return true;
	}
	return false;
}

/* Signals up to 32 are in the first word of the kernel's mask. */
struct stop_mask {
	unsigned long words[8 / sizeof(long)];
};

static bool stop_read_mask(struct stop_mask *mask, pid_t tid)
{
	/* memcheck does not know that ptrace() writes it. */
	*mask = (struct stop_mask){ 0 };
	return !ptrace(PTRACE_GETSIGMASK, tid, (void *)sizeof(*mask), mask);
}

bool stop_blocks(pid_t tid, int sig)
{
	struct stop_mask mask;

	return stop_read_mask(&mask, tid) && mask.words[0] >> (sig - 1) & 1;
}

void stop_block(pid_t tid, int sig)
{
	struct stop_mask mask;

	if (!stop_read_mask(&mask, tid))
		return;
	mask.words[0] |= 1UL << (sig - 1);
	/* Fails only if the thread was killed. */
	ptrace(PTRACE_SETSIGMASK, tid, (void *)sizeof(mask), &mask);
}

/*
 * In other stops the kernel does not look at the result of the call any more. A process that SIGSTOP stops has its
 * waits end without heaptap, too.
 */
int stop_end(pid_t tid, enum stop stop, int request, int sig)
{
	if (stop == STOP_ASKED || (stop == STOP_SIGNAL && !stops_process(sig)))
		waits_go_on(tid);
	return ptrace(request, tid, 0, sig) ? -errno : 0;
}
