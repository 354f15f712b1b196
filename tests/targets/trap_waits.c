/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A program whose SIGTRAP is blocked, and waits while it allocates: in a thread, and in a child. "start COMMAND...": it
 * executes that with SIGTRAP blocked. "still": it began so.
 */
#include "tests/targets/truth.h"

#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>

enum { NR_PAIRS = 50 };

static unsigned long nr_calls; /* of the first process, whose threads come one after the other */

static void pairs(void)
{
	for (int i = 0; i < NR_PAIRS; i++) {
		void *p = malloc(100);

		keep(p);
		free(p);
	}
	nr_calls += NR_PAIRS;
}

static sigset_t only_trap(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTRAP);
	return set;
}

static void mask(int how)
{
	sigset_t set = only_trap();

	if (pthread_sigmask(how, &set, NULL))
		_exit(2);
}

/* Is SIGTRAP blocked, and does it wait? */
static int is_so(int blocked, int waiting)
{
	sigset_t set, pending;

	if (sigprocmask(SIG_BLOCK, NULL, &set) || sigpending(&pending))
		return 0;
	return sigismember(&set, SIGTRAP) == blocked && sigismember(&pending, SIGTRAP) == waiting;
}

static int takes_one(void)
{
	sigset_t set = only_trap();
	int sig = 0;

	return !sigwait(&set, &sig) && sig == SIGTRAP;
}

/* A thread begins with the mask of its maker. */
static void *thread(void *ctx)
{
	int *is_right = ctx;

	pairs();
	*is_right = is_so(1, 0);
	pthread_kill(pthread_self(), SIGTRAP);
	pairs();
	*is_right &= is_so(1, 1) && takes_one();
	mask(SIG_UNBLOCK);
	pairs();
	*is_right &= is_so(0, 0);
	return NULL;
}

static int run_thread(void)
{
	pthread_t other;
	int is_right = 0;

	return !pthread_create(&other, NULL, thread, &is_right) && !pthread_join(other, NULL) && is_right;
}

static int run_child(void)
{
	int status = 1;
	pid_t pid = fork();

	if (!pid) {
		pairs();
		raise(SIGTRAP);
		pairs();
		_exit(is_so(1, 1) ? 0 : 1);
	}
	return pid > 0 && waitpid(pid, &status, 0) == pid && !status;
}

/* One for this thread, and one for any thread. */
static int run_waits(void)
{
	mask(SIG_BLOCK);
	pairs();
	if (!is_so(1, 0) || !run_thread() || !run_child())
		return 1;
	raise(SIGTRAP);
	pairs();
	kill(getpid(), SIGTRAP);
	pairs();
	return is_so(1, 1) ? 0 : 1;
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	int status;

	if (!strcmp(what, "start") && argc > 2) {
		mask(SIG_BLOCK);
		execv(argv[2], argv + 2);
		return 127;
	}
	truth_begin();
	if (!strcmp(what, "still"))
		status = is_so(1, 0) && !raise(SIGTRAP) ? 0 : 1;
	else
		status = run_waits() || !takes_one();
	pairs();
	if (!status)
		status = is_so(1, 1) && takes_one() && is_so(1, 0) ? 0 : 1;
	mask(SIG_UNBLOCK);
	pairs();
	expect("calls malloc %lu", nr_calls);
	return status ? status : is_so(0, 0) ? 0 : 1;
}
