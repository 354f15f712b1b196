/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Windows of single processes, and files that are left, for heaptap system --everything. */
#include "user/session/session_pace.h"

#include <errno.h>
#include <stdio.h>

#include "user/heap/heap.h"
#include "user/lib/log.h"
#include "user/lib/path.h"
#include "user/session/session_losses.h"
#include "user/session/session_private.h"
#include "user/session/session_process.h"

struct process_pace *session_pace(struct session *s, size_t i, size_t *nr)
{
	struct process *p = i < s->nr_processes ? s->processes[i] : NULL;
	struct heap_totals totals;

	*nr = s->nr_processes;
	if (!p || process_is_over(p) || p->is_hidden)
		return NULL;
	totals = heap_totals(p->heap);
	p->tuned.pace.pid = p->target->pid;
	p->tuned.pace.comm = p->target->comm;
	p->tuned.pace.is_image = p->origin == PROCESS_IMAGE;
	p->tuned.pace.way = s->ops->way ? s->ops->way(s->source, p->target->pid) : SOURCE_BY_OTHERS;
	p->tuned.pace.calls = totals.allocs + totals.frees + totals.unknown_frees + session_lost_calls(s, p);
	return &p->tuned.pace;
}

/* The live blocks of @p may be freed unseen from now on. */
static void lose_sight(struct session *s, struct process *p)
{
	session_taint(s, p);
	p->tuned.has_unseen = true;
	session_expect_gaps(s, p);
}

int session_pause_process(struct session *s, pid_t pid, u64 now_ns, u64 until_ns)
{
	struct process *p;
	int err;

	s->ops->pause(s->source, pid);
	/* The events in the ring are older than the pause. */
	err = session_poll(s);
	p = session_find(s, (u32)pid);
	if (!p)
		return -ESRCH;
	if (s->ops->rest && s->ops->rest(s->source, p->target, true))
		debug("PID %d: its probes stay while it is paused", (int)pid);
	p->tuned.pace.paused_ns = now_ns;
	p->tuned.pace.until_ns = until_ns;
	if (!p->tuned.pace.window)
		p->tuned.pace.window = 1;
	lose_sight(s, p);
	return err;
}

int session_resume_process(struct session *s, pid_t pid, u64 now_ns)
{
	int err = session_poll(s);
	struct process *p = session_find(s, (u32)pid);

	if (err || !p)
		return p ? err : -ESRCH;
	/* Changes of its mappings were not told meanwhile. */
	if (s->ops->rest && target_read_maps(p->target, s->modules) >= 0 &&
	    s->ops->rest(s->source, p->target, false))
		debug("PID %d: its probes have stayed", (int)pid);
	err = session_forget(s, p);
	p->tuned.pace.begin_ns = now_ns;
	p->tuned.pace.until_ns = p->tuned.pace.last_calls = 0;
	p->tuned.pace.window++;
	if (!p->tuned.pauses.begin_ns)
		s->ops->resume(s->source, pid);
	return err;
}

bool session_limit_samples(struct session *s, u32 sum)
{
	if (!s->options->source.adapts_samples || !s->ops->limit_samples)
		return false;
	s->ops->limit_samples(s->source, sum);
	return true;
}

const struct module *session_file_of(struct session *s, pid_t pid)
{
	const struct process *p = session_find(s, (u32)pid);

	return p && p->target->nr_allocators ? p->target->allocators[0].module : NULL;
}

static bool session_pace_uses(const struct process *p, const struct module *m)
{
	for (size_t i = 0; i < p->target->nr_allocators; i++)
		if (p->target->allocators[i].module == m)
			return true;
	return false;
}

int session_leave_file(struct session *s, const struct module *m)
{
	int err = s->ops->leave ? s->ops->leave(s->source, m) : -EOPNOTSUPP;

	if (err || session_poll(s))
		return err;
	for (size_t i = 0; i < s->nr_processes; i++) {
		struct process *p = s->processes[i];

		if (process_is_over(p) || !session_pace_uses(p, m))
			continue;
		snprintf(p->tuned.left_file, sizeof(p->tuned.left_file), "%s", path_name(m->path));
		lose_sight(s, p);
	}
	return 0;
}
