/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Children of traced processes: threads to us, processes of their own that are followed, or ones to be let go. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fallback/tracer_steps.h"
#include "user/lib/clock.h"
#include "user/lib/proc.h"

/*
 * Does process @pid have the memory of @p itself, and not a copy? Without the call the way in which it was made
 * must do; @event is that of its parent, 0 = not known.
 */
static bool shares_memory(const struct traced *p, pid_t pid, int event)
{
	enum { SAME_VM = 1 /* KCMP_VM */ };
	long order = syscall(SYS_kcmp, p->pid, pid, SAME_VM, 0, 0);

	return order < 0 ? event && event != PTRACE_EVENT_FORK : !order;
}

/* Clean code for process @pid, if what stands in @p stands in it, too. */
static void clean_copy(const struct traced *p, pid_t pid)
{
	char path[32];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/mem", pid);
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return;
	places_clean(&p->places, fd);
	close(fd);
}

void tracer_let_copy_go(struct tracer *t, struct thread *th)
{
	clean_copy(th->process, th->tid);
	ptrace(PTRACE_DETACH, th->tid, 0, 0);
	tracer_drop_thread(t, th);
}

/* One whose parent was killed before it could tell has a copy of what is known of the parent alone. */
void tracer_clean_orphans(const struct tracer *t, const struct traced *p)
{
	for (const struct orphan *o = t->orphans; o; o = o->next)
		if (!tracer_thread(t, o->tid))
			clean_copy(p, o->tid);
}

static bool take_orphan(struct tracer *t, pid_t tid)
{
	for (struct orphan **link = &t->orphans; *link; link = &(*link)->next) {
		struct orphan *o = *link;

		if (o->tid != tid)
			continue;
		*link = o->next;
		free(o);
		return true;
	}
	return false;
}

/* Room for one more among those that are followed; a process that cannot be taken in is counted. */
static struct traced *new_child(struct tracer *t, struct traced *parent, pid_t pid)
{
	struct traced *c = NULL;

	if (!t->options.max_followed)
		return NULL;
	/* Before the parent's places are in nobody knows its calls either. */
	if (parent->is_open && t->nr_followed < t->options.max_followed && !tracer_process(t, pid))
		c = tracer_add_process(t, pid);
	if (!c) {
		parent->losses->unfollowed++;
		return NULL;
	}
	c->is_child = true;
	c->is_open = true;
	c->is_paused = parent->is_paused;
	c->is_launched = parent->is_launched;
	return c;
}

/* What a copy of the memory has from its parent: breakpoints, and how to walk through its code. */
static int copy_image(struct traced *c, const struct traced *parent)
{
	int err = tracer_open_image(c);

	if (!err)
		err = places_copy(&c->places, &parent->places);
	if (err)
		return err;
	c->maps = calloc(parent->nr_maps + 1, sizeof(*c->maps));
	if (!c->maps)
		return -ENOMEM;
	if (parent->nr_maps)
		memcpy(c->maps, parent->maps, parent->nr_maps * sizeof(*c->maps));
	c->nr_maps = parent->nr_maps;
	c->epoch = parent->epoch;
	c->entry = parent->entry;
	c->is_starting = parent->is_starting;
	c->has_new_code = parent->has_new_code;
	return 0;
}

/*
 * @c, whose first thread is @th, is a child of @parent's: its record comes before any of its own, and it stands until
 * that has been dealt with.
 */
static bool tell_birth(struct tracer *t, const struct traced *parent, struct thread *th, u8 flags)
{
	struct process_event ev = { .h = { .kind = EVENT_FORK, .flags = flags, .pid = (u32)parent->pid },
				    .child_pid = (u32)th->process->pid };

	if (!tracer_tell_event(t, th, &ev))
		return false;
	t->nr_followed++;
	return true;
}

/* Follow process @pid, which has a copy of the memory of @p. False: it is to be let go. */
static bool follow_copy(struct tracer *t, struct traced *p, pid_t pid, bool stands)
{
	struct traced *c = new_child(t, p, pid);
	struct thread *th;

	if (!c)
		return false;
	th = copy_image(c, p) ? NULL : tracer_add_thread(t, c, pid);
	if (!th || !tell_birth(t, p, th, 0)) {
		tracer_drop_process(t, c);
		p->losses->unfollowed++;
		return false;
	}
	th->stands = stands;
	th->owed = OWED_CONT;
	tracer_resume(t, th);
	return true;
}

void tracer_adopt(struct tracer *t, struct traced *p, pid_t tid, int event)
{
	struct thread *th = tracer_thread(t, tid);
	struct proc_status status;
	bool stands = take_orphan(t, tid), is_copy, is_leaving;

	if (th || proc_read_status(&status, tid))
		return;
	is_copy = status.tgid != p->pid;
	is_leaving = is_copy && !shares_memory(p, status.tgid, event);
	if (is_leaving && status.tgid == tid && follow_copy(t, p, tid, stands))
		return;
	th = tracer_add_thread(t, p, tid);
	if (!th)
		return;
	th->is_copy = is_copy;
	th->is_leaving = is_leaving;
	th->stands = stands;
	if (stands && th->is_leaving)
		tracer_let_copy_go(t, th);
	else
		tracer_resume(t, th);
}

/* A thread tells by itself. */
void tracer_at_unknown(struct tracer *t, pid_t tid)
{
	struct proc_status status;
	struct traced *p = proc_read_status(&status, tid) ? NULL : tracer_process(t, status.tgid);
	struct orphan *o = calloc(1, sizeof(*o));

	/* Out of memory: it had better run into our breakpoints than stand for ever. */
	if (!o) {
		ptrace(PTRACE_DETACH, tid, 0, 0);
		return;
	}
	*o = (struct orphan){ .tid = tid, .since_ns = clock_now_ns(), .next = t->orphans };
	t->orphans = o;
	if (p)
		tracer_adopt(t, p, tid, 0);
	else
		tracer_arm(t);
}

void tracer_settle_orphans(struct tracer *t, u64 before_ns)
{
	for (struct orphan *o = t->orphans, *next; o; o = next) {
		struct proc_status status;
		struct traced *p;

		next = o->next;
		if (o->since_ns > before_ns)
			continue;
		p = proc_read_status(&status, o->tid) ? NULL : tracer_process(t, status.ppid);
		if (p) {
			tracer_adopt(t, p, o->tid, 0);
		} else {
			ptrace(PTRACE_DETACH, o->tid, 0, 0);
			take_orphan(t, o->tid);
		}
		/* Another one may have been taken meanwhile. */
		return;
	}
}

void tracer_copy_executes(struct tracer *t, struct thread *th)
{
	struct traced *p = th->process, *c = new_child(t, p, th->tid);
	struct thread *other, *first;
	unsigned long former = 0;
	pid_t tid = th->tid;

	/* It has memory of its own now, without breakpoints. */
	ptrace(PTRACE_GETEVENTMSG, tid, 0, &former);
	tracer_drop_thread(t, th);
	other = (pid_t)former == tid ? NULL : tracer_thread(t, (pid_t)former);
	if (other && other->process == p)
		tracer_drop_thread(t, other);
	first = c ? tracer_add_thread(t, c, tid) : NULL;
	if (first) {
		first->stands = true;
		first->owed = OWED_CONT;
		tracer_enter_image(c);
	}
	if (!first || !tell_birth(t, p, first, EVENT_NO_COPY)) {
		p->losses->unfollowed += c != NULL;
		if (first)
			places_clean(&c->places, c->mem_fd);
		if (c)
			tracer_drop_process(t, c);
		ptrace(PTRACE_DETACH, tid, 0, 0);
	} else {
		tracer_resume(t, first);
	}
	if (!p->nr_threads)
		tracer_drop_process(t, p);
}

static void move_thread(struct thread *th, struct traced *to)
{
	struct traced *from = th->process;
	struct thread **link = &from->threads;

	while (*link != th)
		link = &(*link)->next;
	*link = th->next;
	from->nr_threads--;
	th->next = to->threads;
	to->threads = th;
	to->nr_threads++;
	th->process = to;
}

struct traced *tracer_part(struct tracer *t, struct traced *p)
{
	struct thread *first = p->threads;
	struct traced *left;

	while (first && !first->is_copy)
		first = first->next;
	left = first ? tracer_add_process(t, first->tid) : NULL;
	if (!left)
		return NULL;
	left->cpu = p->cpu;
	/* A descriptor of memory stays with that, whoever leaves it. */
	left->mem_fd = p->mem_fd;
	left->places = p->places;
	p->mem_fd = -1;
	places_init(&p->places, NULL, -1);
	for (struct thread *th = p->threads, *next; th; th = next) {
		next = th->next;
		if (!th->is_copy)
			continue;
		/* What one that shared the memory does there is not seen any more. */
		p->losses->other += !th->is_leaving;
		move_thread(th, left);
	}
	return left;
}

void tracer_tell_end(struct tracer *t, struct traced *p, int status)
{
	const struct process_event ev = { .h = { .kind = EVENT_EXIT, .pid = (u32)p->pid, .tid = (u32)p->pid },
					  .time_ns = clock_now_ns(),
					  .exit_status = (u32)status };

	if (!t->host.record || !t->host.record(t->host.ctx, &ev, sizeof(ev), false))
		p->losses->other++;
}
