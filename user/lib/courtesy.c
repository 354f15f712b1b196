/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The nice value, which is one of each thread by itself on Linux. */
#include "user/lib/courtesy.h"

#include <errno.h>
#include <linux/capability.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "user/lib/cleanup.h"
#include "user/lib/proc.h"

enum {
	LOWEST = 19,
	ROUNDS = 2, /* a thread may start another one between two looks at it */
};

static bool may_go_back(int usual)
{
	struct proc_status status = { 0 };
	struct rlimit limit;

	/* The limit is 20 minus the lowest nice value that is allowed. */
	if (getrlimit(RLIMIT_NICE, &limit) == 0 && limit.rlim_cur >= (rlim_t)(20 - usual))
		return true;
	return !proc_read_status(&status, getpid()) && status.caps_effective & (1ULL << CAP_SYS_NICE);
}

static int usual_nice(void)
{
	return getpriority(PRIO_PROCESS, (id_t)getpid());
}

void courtesy_begin(void)
{
	if (may_go_back(usual_nice()))
		(void)!setpriority(PRIO_PROCESS, 0, LOWEST);
}

void courtesy_end(void)
{
	(void)!setpriority(PRIO_PROCESS, 0, usual_nice());
}

void courtesy_end_all(void)
{
	int usual = usual_nice();

	for (int round = 0; round < ROUNDS; round++) {
		auto_free pid_t *tids = NULL;
		size_t nr;

		if (proc_threads(getpid(), &tids, &nr))
			return;
		for (size_t i = 0; i < nr; i++)
			(void)!setpriority(PRIO_PROCESS, (id_t)tids[i], usual);
	}
}

void courtesy_hurry(struct courtesy_hurry *h, int nice)
{
	errno = 0;
	h->usual = getpriority(PRIO_PROCESS, 0);
	h->is_on = !errno && h->usual > nice && !setpriority(PRIO_PROCESS, 0, nice);
}

/* May a thread with @policy change it? A limit of CPU time under the other one could kill heaptap. */
static bool may_come_at_once(int policy)
{
	struct rlimit limit;

	return policy >= 0 && policy != SCHED_FIFO && policy != SCHED_RR &&
	       !getrlimit(RLIMIT_RTTIME, &limit) && limit.rlim_cur == RLIM_INFINITY;
}

void courtesy_at_once(struct courtesy_hurry *h)
{
	const struct sched_param param = { .sched_priority = 1 };

	*h = (struct courtesy_hurry){ .policy = sched_getscheduler(0) & ~SCHED_RESET_ON_FORK };
	h->is_at_once = may_come_at_once(h->policy) && !sched_setscheduler(0, SCHED_RR, &param);
	if (!h->is_at_once)
		courtesy_hurry(h, COURTESY_HURRY);
}

void courtesy_hurry_end(struct courtesy_hurry *h)
{
	const struct sched_param param = { 0 };

	if (h->is_at_once)
		(void)!sched_setscheduler(0, h->policy, &param);
	h->is_at_once = false;
	if (h->is_on)
		(void)!setpriority(PRIO_PROCESS, 0, h->usual);
	h->is_on = false;
}

bool courtesy_push(pid_t tid)
{
	const struct sched_param param = { .sched_priority = 1 };

	int policy = sched_getscheduler(tid);

	return policy == SCHED_OTHER && may_come_at_once(policy) &&
	       !sched_setscheduler(tid, SCHED_RR | SCHED_RESET_ON_FORK, &param);
}

void courtesy_push_end(pid_t tid)
{
	const struct sched_param param = { 0 };

	(void)!sched_setscheduler(tid, SCHED_OTHER, &param);
}
