/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Processes that the source traces from their exec on, because their names were chosen. */
#include "user/session/session_chosen.h"

#include "user/lib/log.h"
#include "user/session/session_private.h"
#include "user/session/session_process.h"

int session_take_chosen(struct session *s, const struct event_header *rec)
{
	static const struct target nobody = { .pidfd = -1, .exit_status = -1, .exe = (char *)"" };
	const struct session_options *o = s->options;
	pid_t pid = (pid_t)((const struct process_event *)rec)->child_pid;
	struct process *p = session_find(s, (u32)pid);
	int err;

	/* The PID was reused: the older process has ended. */
	if (p)
		p->life = PROCESS_ENDED;
	s->latest = NULL;
	if (o->is_chosen && !o->is_chosen(o->chosen_ctx, pid)) {
		s->ops->forget(s->source, pid);
		return 0;
	}
	err = session_new_process(s, &p);
	if (err)
		return err;
	err = target_new_child(&p->target, &nobody, pid, false);
	if (!err)
		err = session_begin_check(s, p);
	if (err) {
		session_drop_last_process(s);
		return err;
	}
	session_name(s, p);
	debug("target: PID %d (%s) has executed a program that was chosen", pid, p->target->comm);
	recorder_process(s->recorder, p->target, ((const struct process_event *)rec)->time_ns);
	session_read_maps(s, p);
	session_tune_process(s, p);
	if (!s->start_ns)
		session_set_start(s, p->maps_read_ns);
	s->nr_chosen++;
	return 0;
}

bool session_chosen(const struct session *s, u64 *nr_traced, u64 *nr_left_out)
{
	*nr_traced = s->nr_chosen;
	return s->ops->nr_unchosen && s->ops->nr_unchosen(s->source, nr_left_out);
}

bool session_traces(struct session *s, pid_t pid)
{
	return session_find(s, (u32)pid);
}

void session_prepare(struct session *s, pid_t pid)
{
	if (session_attach(s, pid, false))
		return;
	s->ops->forget(s->source, pid);
	session_drop_last_process(s);
}
