/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reads the resident memory of processes: it may grow where no block does. */
#include "user/session/session_residence.h"

#include <stdlib.h>
#include <string.h>

#include "user/lib/cleanup.h"
#include "user/lib/log.h"
#include "user/lib/proc.h"
#include "user/session/session_private.h"
#include "user/session/session_process.h"
#include "user/session/session_unwatched.h"

/* All that is said of the memory of one process. */
static int residence_look(struct residence *out, pid_t pid)
{
	int err = residence_read(out, proc_reader(pid));

	if (err)
		debug("residence: PID %d: cannot read smaps: %s", (int)pid, strerror(-err));
	else
		residence_find_threads(out, pid);
	return err;
}

static int residence_look_before(void *arg)
{
	const struct process *p = arg;

	return residence_look(&p->residence->before, p->target->pid);
}

static int residence_look_now(void *arg)
{
	const struct process *p = arg;

	return residence_look(&p->residence->now, p->target->pid);
}

void session_residence_begin(struct session *s, struct process *p)
{
	if (!s->options->wants_residence || p->target->is_started)
		return;
	p->residence = calloc(1, sizeof(*p->residence));
	if (p->residence && session_aside(s, residence_look_before, p))
		session_residence_free(p);
}

/* The memory of an attached process is compared; a child has that of its parent, and is not. NULL: it is not read. */
static struct report_residence *residence_to_read(const struct session *s, struct process *p)
{
	if (process_is_over(p) || p->is_hidden || (!p->residence && !p->target->is_started) ||
	    process_is_unwatched(p))
		return NULL;
	if (!p->residence)
		p->residence = calloc(1, sizeof(*p->residence));
	if (p->residence)
		p->residence->sees_mappings = s->options->source.want_mmap;
	return p->residence;
}

static void residence_read_process(struct session *s, struct process *p)
{
	struct report_residence *d = residence_to_read(s, p);
	bool is_glibc = true;

	if (!d)
		return;
	d->allocator = p->target->nr_allocators ? p->target->allocators[0].kind : "";
	for (size_t i = 0; i < p->target->nr_allocators; i++)
		is_glibc &= !strcmp(p->target->allocators[i].kind, "glibc") ||
			    !strcmp(p->target->allocators[i].kind, "libstdc++");
	if (!d->now.rss && residence_look(&d->now, p->target->pid))
		return;
	residence_find_blocks(&d->now, d->before.rss ? &d->before : NULL, p->heap, is_glibc);
	residence_add_up(&d->now);
	residence_add_up(&d->before);
}

void session_residence_stop(struct session *s, struct process *p)
{
	struct report_residence *d = s->options->wants_residence ? residence_to_read(s, p) : NULL;

	if (d && session_aside(s, residence_look_now, p))
		debug("residence: PID %d: read with the report", (int)p->target->pid);
}

void session_residence_at_end(struct session *s, struct process *p)
{
	if (p->residence && s->options->wants_residence)
		residence_read_process(s, p);
}

static int residence_read_all(void *arg)
{
	struct session *s = arg;

	for (size_t i = 0; i < s->nr_processes; i++)
		residence_read_process(s, s->processes[i]);
	return 0;
}

void session_residence_read(struct session *s)
{
	if (!s->options->wants_residence)
		return;
	if (session_aside(s, residence_read_all, s))
		debug("residence: not read");
}

void session_residence_forget(struct session *s)
{
	for (size_t i = 0; i < s->nr_processes; i++)
		if (s->processes[i]->residence)
			residence_fini(&s->processes[i]->residence->now);
}

void session_residence_free(struct process *p)
{
	if (!p->residence)
		return;
	residence_fini(&p->residence->before);
	residence_fini(&p->residence->now);
	free(take_ptr(p->residence));
}
