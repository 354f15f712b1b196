/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Children of traced processes. The heap of a child begins as a copy of its parent's. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "user/heap/heap.h"
#include "user/lib/clock.h"
#include "user/lib/log.h"
#include "user/lib/proc.h"
#include "user/scan/snapshot_price.h"
#include "user/session/session_process.h"
#include "user/stream/recorder.h"
#include "user/session/session_ending.h"
#include "user/session/session_forward.h"
#include "user/session/session_heap.h"
#include "user/session/session_private.h"
#include "user/session/session_told.h"

/* Memory that stays free behind a copy of the books of a process of another machine. */
static const u64 MIN_ROOM = 64 << 20;

/* A forked child has all live blocks of its parent. */
static int copy_books(struct session *s, struct process *child, struct process *parent)
{
	struct heap *heap;
	int err;

	/* A server may name children without end. */
	if (session_told(s) && snapshot_price_room(getpid()) < heap_memory(parent->heap) + MIN_ROOM) {
		warn("PID %d: not enough memory for a copy of its parent's books: begins with empty ones",
		     child->target->pid);
		child->tuned.has_unseen = true;
		heap_check_gaps(child->heap);
		return 0;
	}
	err = heap_clone(&heap, parent->heap);
	if (err)
		return err;
	heap_free(child->heap);
	child->heap = heap;
	if (!IS_AGENT && heap_is_checked(heap))
		session_heap_check_own(s, child);
	child->origin = PROCESS_COPY;
	child->lost.nr_false_stacks = 0;
	/* A lost free of the parent's blocks is lost for the child as well. */
	if (session_count_unseen(s, parent) > parent->lost.nr_unseen)
		heap_taint(heap);
	return 0;
}

/* The number of @p in the session, from 1 on. */
static size_t number_of(const struct session *s, const struct process *p)
{
	size_t i = s->nr_processes;

	while (i && s->processes[i - 1] != p)
		i--;
	return i;
}

void session_hide_unseen(struct session *s, struct process *p)
{
	size_t i = p->parent;

	if (p->is_hidden || p->origin != PROCESS_IMAGE || p->target->exe[0] || p->nr_events ||
	    p->lost.now.late)
		return;
	p->is_hidden = true;
	while (i && s->processes[i - 1]->is_hidden && s->processes[i - 1]->parent)
		i = s->processes[i - 1]->parent;
	if (i)
		s->processes[i - 1]->nr_unlisted++;
}

static int session_children_add_child(struct session *s, struct process *parent, pid_t pid, bool is_copy,
				      struct process **out)
{
	int err = session_new_process(s, out);

	if (err)
		return err;
	(*out)->parent = number_of(s, parent);
	(*out)->parent_pid = (u32)parent->target->pid;
	if (session_told(s)) {
		err = session_told(s)->target(s->source, pid, &(*out)->target);
	} else if (s->ops->fork) {
		err = target_new_child(&(*out)->target, parent->target, pid, is_copy);
	} else {
		err = target_copy(&(*out)->target, parent->target);
		if (!err)
			(*out)->target->pid = pid;
	}
	if (!err)
		err = is_copy && !session_forwards(s) ? copy_books(s, *out, parent)
						      : session_begin_check(s, *out);
	if (err)
		session_drop_last_process(s);
	return err;
}

/* A recording shows each child first as a copy, then perhaps its exec. */
static void record_birth(struct session *s, const struct event_header *rec, const struct process *child,
			 bool is_copy)
{
	struct process_event ev = *(const struct process_event *)rec;

	/* A client knows births without a copy. */
	ev.h.flags = session_forwards(s) ? rec->flags : 0;
	recorder_event(s->recorder, &ev.h, sizeof(ev));
	recorder_process(s->recorder, child->target, ev.time_ns);
	if (is_copy || session_forwards(s))
		return;
	ev.h.kind = EVENT_EXEC;
	ev.h.pid = ev.child_pid;
	ev.child_pid = 0;
	recorder_event(s->recorder, &ev.h, sizeof(ev));
	recorder_process(s->recorder, child->target, ev.time_ns);
}

/* The other machine has placed the probes, and will send the mappings. */
static int fork_over_there(struct session *s, struct process *parent, const struct event_header *rec,
			   struct process *child)
{
	bool is_copy = !(rec->flags & EVENT_NO_COPY);

	record_birth(s, rec, child, is_copy);
	child->tuned.has_unseen |= parent->tuned.has_unseen;
	child->notes.is_paused = is_copy && parent->notes.is_paused;
	return 0;
}

int session_fork(struct session *s, struct process *parent, const struct event_header *rec)
{
	pid_t pid = (pid_t)((const struct process_event *)rec)->child_pid;
	bool is_copy = !(rec->flags & EVENT_NO_COPY);
	struct process *child = session_find(s, pid);
	int err;

	/* A list of events has named the child before, a recording will name it later. */
	if (!s->ops->fork && !session_told(s) && child) {
		recorder_event(s->recorder, rec, sizeof(struct process_event));
		return child != parent && !session_forwards(s) ? copy_books(s, child, parent) : 0;
	}
	/* The PID was reused: the older process has ended. */
	if (child)
		child->life = PROCESS_ENDED;
	s->latest = NULL;
	if (session_forwards(s) && s->nr_processes >= FORWARD_MAX_PROCESSES) {
		/* Events of this child have no place here. */
		parent->lost.unsent.unfollowed++;
		return 0;
	}
	err = session_children_add_child(s, parent, pid, is_copy, &child);
	if (err && err != -ENOMEM && session_told(s)) {
		s->nr_strays++;
		return 0;
	}
	if (err)
		return err;
	debug("target: PID %u has a child, PID %d", rec->pid, pid);
	parent->tuned.pace.nr_births += !IS_AGENT;
	if (session_told(s))
		return fork_over_there(s, parent, rec, child);
	/* The source notes the allocators in it. */
	err = is_copy && s->ops->fork ? s->ops->fork(s->source, child->target) : 0;
	record_birth(s, rec, child, is_copy);
	if (!s->ops->fork)
		return 0;
	if (!is_copy) {
		session_name(s, child);
		session_read_maps(s, child);
		return 0;
	}
	child->tuned.has_unseen = parent->tuned.has_unseen;
	child->lost.nr_unplaced = parent->lost.nr_unplaced;
	child->lost.nr_left_out = parent->lost.nr_left_out;
	session_tune_process(s, child);
	child->notes.is_paused = parent->notes.is_paused;
	child->maps_read_ns = clock_now_ns();
	/* The parent may have changed its mappings between the fork and their last reading. */
	if (!err && ((const struct process_event *)rec)->time_ns < parent->maps_read_ns)
		session_read_maps(s, child);
	return err == -ENOMEM ? err : 0;
}

void session_born(struct session *s, pid_t pid)
{
	struct process *p;
	int err;

	if (!s->ops->born)
		return;
	if (session_poll(s))
		debug("source: %s is at its end", s->ops->name);
	p = session_find(s, (u32)pid);
	/* In the memory of its parent, or not followed. */
	if (!p || p->origin != PROCESS_COPY)
		return;
	err = s->ops->born(s->source, p->target);
	if (err > 0)
		session_read_maps(s, p);
	if (err >= 0)
		return;
	p->lost.nr_unplaced++;
	warn("PID %d: a child that cannot be followed until it executes a program: %s", pid, strerror(-err));
}

void session_look_at_children(struct session *s, pid_t pid)
{
	struct process *p = session_find(s, (u32)pid);
	struct proc_stat stat;

	if (IS_AGENT || !p || p->has_children || process_is_over(p) || s->options->source.max_followed ||
	    session_told(s) || s->is_replayed)
		return;
	/* A child that a verdict has made, as a copy of the process, was waited for, too. */
	p->has_children = proc_has_child(pid) || (p->target->is_started && !p->is_judged &&
						  !proc_read_stat(&stat, pid) && stat.has_waited);
}

void session_name(struct session *s, struct process *image)
{
	if (!image->target->comm[0] && s->ops->comm)
		s->ops->comm(s->source, image->target->pid, image->target->comm);
}

void session_hide(struct process *p)
{
	struct heap *none;

	if (p->origin != PROCESS_COPY || p->nr_events || heap_new(&none, heap_functions(p->heap)))
		return;
	heap_free(p->heap);
	p->heap = none;
	p->is_hidden = true;
}
