/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Stops a traced process for its core, also where only the source can do that. */
#include "user/session/session_core.h"

#include <errno.h>

#include "user/scan/snapshot.h"
#include "user/session/session_private.h"
#include "user/session/session_process.h"
#include "user/session/session_told.h"
#include "user/source/source_tracer.h"

/* The ptrace source resumes what it holds at some time after this. */
#define HOLD_NS (60 * 1000000000ULL)

struct core_job {
	struct session *session;
	struct core *core;
	int fd;
};

static int session_core_read_regs(void *ctx, pid_t tid, struct arch_regs *regs)
{
	const struct session *s = ctx;

	return s->ops->tracer->read_regs(s->source, tid, regs);
}

static int write_aside(void *arg)
{
	const struct core_job *job = arg;

	return core_write(job->core, job->fd);
}

static int session_core_make_core(struct core_job *job, pid_t pid, const struct core_options *o,
				  struct core_sums *sums)
{
	int err = core_stop(&job->core, pid, o);

	if (err)
		return err;
	err = session_aside(job->session, write_aside, job);
	core_resume(job->core);
	*sums = core_sums(job->core);
	core_free(job->core);
	return err;
}

static bool session_core_runs(const struct session *s, pid_t pid)
{
	for (size_t i = 0; i < s->nr_processes; i++)
		if (s->processes[i]->target->pid == pid && !process_is_over(s->processes[i]))
			return target_is_alive(s->processes[i]->target);
	return false;
}

int session_core(struct session *s, pid_t pid, int fd, const struct core_options *o, struct core_sums *sums)
{
	const struct source_tracer *tracer = s->ops->tracer;
	const struct snapshot_holder holder = { s, session_core_read_regs };
	struct core_job job = { .session = s, .fd = fd };
	struct core_options options = *o;
	int err;

	if (session_told(s) || s->is_replayed)
		return -EOPNOTSUPP;
	if (!session_core_runs(s, pid))
		return -ESRCH;
	if (!tracer || s->stop_ns)
		return session_core_make_core(&job, pid, &options, sums);
	options.holder = &holder;
	err = tracer->hold(s->source, pid, HOLD_NS);
	if (err)
		return err;
	err = session_core_make_core(&job, pid, &options, sums);
	tracer->release(s->source, pid);
	return err || sums->pause_ns < HOLD_NS ? err : -ETIME;
}
