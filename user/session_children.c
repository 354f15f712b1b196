/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Children of traced processes: books of their own, which begin as a copy of the parent's. */
#include <errno.h>

#include "user/heap.h"
#include "user/lib/clock.h"
#include "user/lib/log.h"
#include "user/recorder.h"
#include "user/session_private.h"

/* What the parent holds the child holds too. */
static int copy_books(struct session *s, struct process *child, struct process *parent)
{
	struct heap *heap;
	int err = heap_clone(&heap, parent->heap);

	if (err)
		return err;
	heap_free(child->heap);
	child->heap = heap;
	child->is_copy = true;
	child->nr_false_stacks = 0;
	/* A free that may have been lost of the parent's blocks was lost for the child as well. */
	if (session_count_unseen(s, parent) > parent->nr_unseen)
		heap_taint(heap);
	return 0;
}

static int add_child(struct session *s, struct process *parent, pid_t pid, bool is_copy, struct process **out)
{
	int err = session_new_process(s, out);

	if (err)
		return err;
	if (s->ops->fork) {
		err = target_new_child(&(*out)->target, parent->target, pid, is_copy);
	} else {
		err = target_copy(&(*out)->target, parent->target);
		if (!err)
			(*out)->target->pid = pid;
	}
	if (!err && is_copy)
		err = copy_books(s, *out, parent);
	if (err)
		session_drop_last_process(s);
	return err;
}

/* In a recording a child is always a copy first. */
static void record_birth(struct session *s, const struct event_header *rec, const struct process *child,
			 bool is_copy)
{
	struct process_event ev = *(const struct process_event *)rec;

	recorder_event(s->recorder, &ev.h, sizeof(ev));
	recorder_process(s->recorder, child->target, ev.time_ns);
	if (is_copy)
		return;
	ev.h.kind = EVENT_EXEC;
	ev.h.pid = ev.child_pid;
	ev.child_pid = 0;
	recorder_event(s->recorder, &ev.h, sizeof(ev));
	recorder_process(s->recorder, child->target, ev.time_ns);
}

int session_fork(struct session *s, struct process *parent, const struct event_header *rec)
{
	pid_t pid = (pid_t)((const struct process_event *)rec)->child_pid;
	bool is_copy = !(rec->flags & EVENT_NO_COPY);
	struct process *child = session_find(s, pid);
	int err;

	/* A file in words has said beforehand what it knows of the child, a recording will. */
	if (!s->ops->fork && child) {
		recorder_event(s->recorder, rec, sizeof(struct process_event));
		return child != parent ? copy_books(s, child, parent) : 0;
	}
	/* Its number is another one's now. */
	if (child)
		child->is_over = true;
	s->latest = NULL;
	err = add_child(s, parent, pid, is_copy, &child);
	if (err)
		return err;
	debug("target: PID %u has a child, PID %d", rec->pid, pid);
	record_birth(s, rec, child, is_copy);
	if (!s->ops->fork)
		return 0;
	if (!is_copy) {
		session_name(s, child);
		session_read_maps(s, child);
		return 0;
	}
	child->tuned.has_unseen = parent->tuned.has_unseen;
	session_tune_process(s, child);
	child->maps_read_ns = clock_now_ns();
	err = s->ops->fork(s->source, child->target);
	/* The parent's may be of a time when it had loaded or unloaded something that the child has not. */
	if (!err && ((const struct process_event *)rec)->time_ns < parent->maps_read_ns)
		session_read_maps(s, child);
	return err == -ENOMEM ? err : 0;
}

void session_name(struct session *s, struct process *image)
{
	if (!image->target->comm[0] && s->ops->comm)
		s->ops->comm(s->source, image->target->pid, image->target->comm);
}

void session_hide(struct process *p)
{
	struct heap *none;

	if (!p->is_copy || p->nr_events || heap_new(&none))
		return;
	heap_free(p->heap);
	p->heap = none;
	p->is_hidden = true;
}
