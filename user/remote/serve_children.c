/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Processes of a trace of the server: births, programs that they execute, ends; and a client that was away. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "user/lib/array.h"
#include "user/lib/clock.h"
#include "user/lib/log.h"
#include "user/remote/serve_trace_private.h"
#include "user/stream/stream_losses.h"
#include "user/stream/stream_record.h"

/* Let the source know the mappings of @p: those of its parent, or of a new program. */
static void begin(struct serve_trace *t, struct served *p)
{
	const struct source_ops *ops = t->options.ops;
	struct target *target = p->target;
	int err;

	/* Only the source knows the name of a program that has ended. */
	if (!target->comm[0] && ops->comm)
		ops->comm(t->options.source, target->pid, target->comm);
	if (p->is_copy)
		err = ops->fork(t->options.source, target);
	else
		err = target_read_maps(target, t->modules);
	if (!p->is_copy && err >= 0)
		err = ops->update(t->options.source, target);
	serve_note_unprobed(p, err);
	if (err < 0)
		debug("serve: PID %d: %s", target->pid, strerror(-err));
}

void serve_on_fork(struct serve_trace *t, struct served *parent, const struct event_header *rec, size_t len)
{
	const struct process_event *birth = (const struct process_event *)rec;
	bool is_copy = !(rec->flags & EVENT_NO_COPY);
	struct served *p = serve_find(t, birth->child_pid);
	struct target *child;
	int err;

	/* The PID was reused: the older process has ended. */
	if (p && p != parent)
		serve_end(t, p, birth->time_ns, -1);
	if (p == parent || !t->options.ops->fork)
		return;
	err = target_new_child(&child, parent->target, (pid_t)birth->child_pid, is_copy);
	if (!err) {
		err = serve_add(t, child, &p);
		if (err)
			target_free(child);
	}
	if (err) {
		/* Events of this child have no place here. */
		parent->dropped.unfollowed++;
		return;
	}
	p->parent = rec->pid;
	p->is_copy = is_copy;
	begin(t, p);
	if (t->tuning.is_paused)
		t->options.ops->pause(t->options.source, child->pid);
	serve_tell_event(t, rec, len);
	serve_tell_process(t, p);
}

void serve_on_exec(struct serve_trace *t, struct served *p, const struct event_header *rec, size_t len)
{
	struct losses l = serve_losses_of(t, p);
	struct target *image;

	if (target_is_reused(p->target)) {
		serve_end(t, p, ((const struct process_event *)rec)->time_ns, -1);
		return;
	}
	serve_tell_losses(t, p, &l);
	serve_tell_event(t, rec, len);
	p->is_copy = false;
	p->is_gone = rec->flags & EVENT_GONE;
	if (target_new_image(&image, p->target, p->is_gone)) {
		serve_end(t, p, ((const struct process_event *)rec)->time_ns, -1);
		return;
	}
	target_free(p->target);
	p->target = image;
	if (!p->is_gone)
		begin(t, p);
	serve_tell_process(t, p);
}

void serve_on_exit(struct serve_trace *t, struct served *p, const struct event_header *rec, size_t len)
{
	const struct process_event *ev = (const struct process_event *)rec;

	(void)len;
	serve_end(t, p, ev->time_ns, (int)ev->exit_status);
}

static void tell_end(struct serve_trace *t, struct served_end *e, u64 time_ns)
{
	const struct process_event rec = { .h = { .kind = EVENT_EXIT, .pid = e->pid, .tid = e->pid },
					   .time_ns = time_ns,
					   .exit_status = (u32)e->status };

	serve_tell_event(t, &rec.h, sizeof(rec));
	e->number = t->out && !t->err ? ++t->nr_told_ends : 0;
}

void serve_end(struct serve_trace *t, struct served *p, u64 time_ns, int status)
{
	struct served_end e = { .pid = (u32)p->target->pid,
				.parent = p->parent,
				.start_time = p->target->start_time,
				.status = status,
				.losses = serve_losses_of(t, p),
				.allocs = p->allocs,
				.frees = p->frees };

	serve_tell_losses(t, p, &e.losses);
	serve_tell_left_out(t, p);
	tell_end(t, &e, time_ns);
	p->is_over = true;
	if (t->options.ops->forget)
		t->options.ops->forget(t->options.source, p->target->pid);
	/* The oldest ends have come, unless the queue holds thousands. */
	if (t->nr_ends == SERVE_MAX_PROCESSES)
		memmove(t->ends, t->ends + 1, --t->nr_ends * sizeof(*t->ends));
	if (!array_extend(t->ends, t->nr_ends))
		t->ends[t->nr_ends++] = e;
}

void serve_sweep(struct serve_trace *t)
{
	size_t nr = 0;

	for (size_t i = 0; i < t->nr; i++) {
		if (t->list[i].is_over)
			target_free(t->list[i].target);
		else
			t->list[nr++] = t->list[i];
	}
	t->nr = nr;
}

static const struct serve_had *find_had(const struct serve_received *had, u32 pid, u64 start_time)
{
	for (u32 i = 0; had && i < had->nr_had; i++)
		if (had->had[i].pid == pid && had->had[i].start_time == start_time)
			return &had->had[i];
	return NULL;
}

/* Count what was sent and has not come as dropped; @had: what has come, NULL = nothing. */
static void settle(struct losses *dropped, u64 *allocs, u64 *frees, const struct serve_had *had)
{
	u64 had_allocs = had ? had->allocs : 0, had_frees = had ? had->frees : 0;

	dropped->allocs += *allocs > had_allocs ? *allocs - had_allocs : 0;
	dropped->frees += *frees > had_frees ? *frees - had_frees : 0;
	*allocs = had_allocs;
	*frees = had_frees;
}

/* A process of whose end the client does not know, or of which it will never know. */
static void tell_end_again(struct serve_trace *t, struct served_end *e, const struct serve_received *had)
{
	const struct serve_had *h = find_had(had, e->pid, e->start_time);
	struct served *parent = serve_find(t, e->parent);
	struct stream_losses rec;

	if (!h) {
		if (parent)
			parent->dropped.unfollowed++;
		return;
	}
	settle(&e->losses, &e->allocs, &e->frees, h);
	rec = stream_losses_put((pid_t)e->pid, &e->losses, STREAM_TAINT | STREAM_GAPS);
	serve_tell(t, STREAM_LOSSES, &rec);
	tell_end(t, e, clock_now_ns());
}

/* The ends that the client has seen need not be kept. */
static void tell_ends_again(struct serve_trace *t, const struct serve_received *had)
{
	size_t nr = 0;

	t->nr_told_ends = had ? had->nr_ends : 0;
	for (size_t i = 0; had && i < t->nr_ends; i++) {
		struct served_end *e = &t->ends[i];

		if (e->number && e->number <= had->nr_ends)
			continue;
		tell_end_again(t, e, had);
		if (e->number)
			t->ends[nr++] = *e;
	}
	t->nr_ends = nr;
}

/* A child that the client has not heard of is a copy of its parent, as far as the client knows that one. */
static void tell_birth(struct serve_trace *t, const struct served *p)
{
	const struct process_event birth = { .h = { .kind = EVENT_FORK,
						    .flags = p->is_copy ? 0 : EVENT_NO_COPY,
						    .pid = p->parent,
						    .tid = p->parent },
					     .time_ns = clock_now_ns(),
					     .child_pid = (u32)p->target->pid };

	if (p->parent && serve_find(t, p->parent))
		serve_tell_event(t, &birth.h, sizeof(birth));
}

static void tell_again(struct serve_trace *t, struct served *p, const struct serve_received *had)
{
	const struct serve_had *h = find_had(had, (u32)p->target->pid, p->target->start_time);
	struct losses l;

	if (had)
		settle(&p->dropped, &p->allocs, &p->frees, h);
	if (had && !h)
		tell_birth(t, p);
	serve_tell_process(t, p);
	l = serve_losses_of(t, p);
	/* Write the losses again: blocks that are live for the client may have been freed meanwhile. */
	memset(&p->told, 0, sizeof(p->told));
	p->told_left_out = 0;
	serve_tell_losses(t, p, &l);
}

void serve_tell_all_again(struct serve_trace *t, const struct serve_received *had)
{
	serve_sweep(t);
	tell_ends_again(t, had);
	for (size_t i = 0; i < t->nr; i++)
		tell_again(t, &t->list[i], had);
}
