/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Children of traced processes: threads, processes that are followed, and processes that are detached. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "fallback/code_memory.h"
#include "fallback/tracer_steps.h"
#include "user/lib/clock.h"
#include "user/lib/proc.h"
#include "user/lib/same_memory.h"

enum { COPY_TRIES = 200 };

/*
 * Does process @pid have the memory of @p itself, and not a copy? Where that cannot be known, the way in which @pid was
 * made decides: @event is the event that its parent reported, 0 = not known.
 */
static bool tracer_child_shares_memory(const struct tracer_process *p, pid_t pid, int event)
{
	int is_same = same_memory(p->pid, pid);

	return is_same < 0 ? event && event != PTRACE_EVENT_FORK : is_same;
}

/* Take the breakpoints of @p out of process @pid, which may have a copy of them. */
static void clean_copy(const struct tracer_process *p, pid_t pid)
{
	struct cpu_memory memory;
	char path[32];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/mem", pid);
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return;
	memory = code_by_file(fd);
	places_clean(&p->places, &memory);
	close(fd);
}

void tracer_detach_copy(struct tracer *t, struct tracer_thread *th)
{
	ptrace(PTRACE_DETACH, th->tid, 0, 0);
	tracer_drop_thread(t, th);
}

/* Does @tid wait for the report of another process than @p, which is its parent still? */
static bool tracer_has_parent(const struct tracer *t, const struct tracer_process *p, pid_t tid)
{
	const struct tracer_process *parent;
	struct proc_status status;

	if (proc_read_status(&status, tid))
		return false;
	parent = tracer_find_process(t, status.ppid);
	return parent && parent != p;
}

/* An orphan whose parent was killed before it reported the child has a copy of the breakpoints. */
void tracer_clean_orphans(const struct tracer *t, const struct tracer_process *p)
{
	for (const struct orphan *o = t->orphans; o; o = o->next)
		if (!tracer_find_thread(t, o->tid) && !tracer_has_parent(t, p, o->tid))
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

/* Add a child that is followed. A process that cannot be followed is counted. */
static struct tracer_process *new_child(struct tracer *t, struct tracer_process *parent, pid_t pid)
{
	struct tracer_process *c = NULL;

	if (!t->options.max_followed)
		return NULL;
	/* The parent's calls must be seen already: else the child's counts would have no beginning. */
	if (parent->calls != CALLS_NOT_YET && t->nr_followed < t->options.max_followed &&
	    !tracer_find_process(t, pid))
		c = tracer_add_process(t, pid);
	if (!c) {
		parent->losses->unfollowed++;
		return NULL;
	}
	c->is_child = true;
	c->calls = parent->calls;
	c->is_launched = parent->is_launched;
	return c;
}

/* @c has a copy of the memory of @parent: with its breakpoints, and with its tables for walks. */
static int copy_image(struct tracer_process *c, const struct tracer_process *parent)
{
	int err = tracer_open_image(c);

	if (!err)
		err = program_copy(&c->program, &c->places, c->pid, &parent->program, &parent->places);
	if (err)
		return err;
	c->maps = calloc(parent->nr_maps + 1, sizeof(*c->maps));
	if (!c->maps)
		return -ENOMEM;
	if (parent->nr_maps)
		memcpy(c->maps, parent->maps, parent->nr_maps * sizeof(*c->maps));
	c->nr_maps = parent->nr_maps;
	c->epoch = parent->epoch;
	c->ignores_trap = parent->ignores_trap;
	return IS_AGENT ? 0 : sampled_copy(&c->sampled, &parent->sampled);
}

/*
 * Report that the process of @th is a child of @parent. This record comes before all others of the child, which stays
 * stopped until it was dealt with.
 */
static bool report_birth(struct tracer *t, const struct tracer_process *parent, struct tracer_thread *th,
			 u8 flags)
{
	struct process_event ev = { .h = { .kind = EVENT_FORK, .flags = flags, .pid = (u32)parent->pid },
				    .child_pid = (u32)th->process->pid };

	if (!IS_AGENT)
		ev.h.call_number = tracer_read_number(parent);
	if (!tracer_report_event(t, th, &ev))
		return false;
	t->nr_followed++;
	return true;
}

/* Follow process @pid, which has a copy of the memory of @p. False: it cannot be followed. */
static bool follow_copy(struct tracer *t, struct tracer_process *p, pid_t pid, bool is_stopped)
{
	struct tracer_process *c = new_child(t, p, pid);
	struct tracer_thread *th;

	if (!c)
		return false;
	th = copy_image(c, p) ? NULL : tracer_add_thread(t, c, pid);
	if (!th || !report_birth(t, p, th, 0)) {
		tracer_drop_process(t, c);
		p->losses->unfollowed++;
		return false;
	}
	if (!IS_AGENT)
		tracer_trap_inherit(t, th);
	if (is_stopped)
		tracer_set_thread_state(th, THREAD_STOPPED);
	tracer_resume(t, th);
	return true;
}

/*
 * Wait until the new child @tid stands at its first stop, for COPY_TRIES times 0.1 ms at most. A parent that wants to
 * trace its child at once, as debuggers do, is refused while heaptap still holds the child.
 */
static bool stops_soon(pid_t tid)
{
	const struct timespec pause = { .tv_nsec = 100 * 1000 };
	int status;

	for (int i = 0; i < COPY_TRIES; i++) {
		siginfo_t info = { 0 };

		/* An end is left to the main loop. */
		if (waitid(P_PID, (id_t)tid, &info, WSTOPPED | WEXITED | WNOHANG | WNOWAIT | __WALL))
			return false;
		if (info.si_pid)
			return (info.si_code == CLD_TRAPPED || info.si_code == CLD_STOPPED) &&
			       waitpid(tid, &status, __WALL | WNOHANG) == tid;
		nanosleep(&pause, NULL);
	}
	return false;
}

void tracer_adopt(struct tracer *t, struct tracer_process *p, pid_t tid, int event)
{
	struct tracer_thread *th = tracer_find_thread(t, tid);
	struct proc_status status;
	bool is_stopped = take_orphan(t, tid);
	enum tracer_role role = ROLE_MEMBER;

	if (th || proc_read_status(&status, tid))
		return;
	if (status.tgid != p->pid)
		role = tracer_child_shares_memory(p, status.tgid, event) ? ROLE_SHARER : ROLE_COPY;
	if (role == ROLE_COPY && status.tgid == tid && follow_copy(t, p, tid, is_stopped))
		return;
	/* At once: the copy has breakpoints that may be taken out of @p before the copy stops. */
	if (role == ROLE_COPY) {
		clean_copy(p, tid);
		is_stopped = is_stopped || stops_soon(tid);
	}
	th = tracer_add_thread(t, p, tid);
	if (!th)
		return;
	th->role = role;
	if (!IS_AGENT) {
		tracer_note_maker(t, th);
		tracer_trap_inherit(t, th);
	}
	if (is_stopped)
		tracer_set_thread_state(th, THREAD_STOPPED);
	if (!IS_AGENT && is_stopped && role == ROLE_MEMBER)
		tracer_look_for_twin(t, th);
	if (is_stopped && role == ROLE_COPY)
		tracer_detach_copy(t, th);
	else
		tracer_resume(t, th);
}

/* A thread says to which process it belongs; a process has to wait until its parent reports it. */
void tracer_at_unknown(struct tracer *t, pid_t tid)
{
	struct proc_status status;
	struct tracer_process *p =
		proc_read_status(&status, tid) ? NULL : tracer_find_process(t, status.tgid);
	struct orphan *o = calloc(1, sizeof(*o));

	/* Out of memory: to run into our breakpoints is better than to stay stopped for ever. */
	if (!o) {
		ptrace(PTRACE_DETACH, tid, 0, 0);
		return;
	}
	*o = (struct orphan){ .tid = tid, .since_ns = clock_now_ns(), .next = t->orphans };
	t->orphans = o;
	/* Beside a changer, or where SIGTRAP is blocked, a thread waits for its maker's report, too. */
	if (p && (IS_AGENT || (!t->options.changer && !tracer_trap_awaits_makers(p))))
		tracer_adopt(t, p, tid, 0);
	else
		tracer_arm(t);
}

void tracer_settle_orphans(struct tracer *t, u64 before_ns)
{
	for (struct orphan *o = t->orphans, *next; o; o = next) {
		struct proc_status status;
		struct tracer_process *p;

		next = o->next;
		if (o->since_ns > before_ns)
			continue;
		p = NULL;
		if (!proc_read_status(&status, o->tid)) {
			p = IS_AGENT ? NULL : tracer_find_process(t, status.tgid);
			p = p ? p : tracer_find_process(t, status.ppid);
		}
		if (p) {
			tracer_adopt(t, p, o->tid, 0);
		} else {
			ptrace(PTRACE_DETACH, o->tid, 0, 0);
			take_orphan(t, o->tid);
		}
		/* The list may have changed: the next ones have their turn next time. */
		return;
	}
}

void tracer_copy_executes(struct tracer *t, struct tracer_thread *th)
{
	struct tracer_process *p = th->process, *c = new_child(t, p, th->tid);
	struct tracer_thread *other, *first;
	unsigned long former = 0;
	pid_t tid = th->tid;

	/* The process has memory of its own now, without breakpoints. */
	ptrace(PTRACE_GETEVENTMSG, tid, 0, &former);
	tracer_drop_thread(t, th);
	other = (pid_t)former == tid ? NULL : tracer_find_thread(t, (pid_t)former);
	if (other && other->process == p)
		tracer_drop_thread(t, other);
	first = c ? tracer_add_thread(t, c, tid) : NULL;
	if (first) {
		if (!IS_AGENT)
			tracer_trap_begin(first);
		tracer_set_thread_state(first, THREAD_STOPPED);
		tracer_enter_image(c);
	}
	if (!first || !report_birth(t, p, first, EVENT_NO_COPY)) {
		p->losses->unfollowed += c != NULL;
		if (first)
			places_clean(&c->places, &c->places.memory);
		if (c)
			tracer_drop_process(t, c);
		ptrace(PTRACE_DETACH, tid, 0, 0);
	} else {
		tracer_resume(t, first);
	}
	if (!p->nr_threads)
		tracer_drop_process(t, p);
}

static void move_thread(struct tracer_thread *th, struct tracer_process *to)
{
	struct tracer_process *from = th->process;
	struct tracer_thread **link = &from->threads;

	while (*link != th)
		link = &(*link)->next;
	*link = th->next;
	from->nr_threads--;
	th->next = to->threads;
	to->threads = th;
	to->nr_threads++;
	th->process = to;
}

struct tracer_process *tracer_part(struct tracer *t, struct tracer_process *p)
{
	struct tracer_thread *first = p->threads;
	struct tracer_process *left;

	while (first && first->role == ROLE_MEMBER)
		first = first->next;
	left = first ? tracer_add_process(t, first->tid) : NULL;
	if (!left)
		return NULL;
	left->cpu = p->cpu;
	/* The descriptor belongs to the former memory, which these processes still have. */
	left->mem_fd = p->mem_fd;
	left->places = p->places;
	p->mem_fd = -1;
	places_init(&p->places, NULL, code_by_file(-1));
	for (struct tracer_thread *th = p->threads, *next; th; th = next) {
		next = th->next;
		if (th->role == ROLE_MEMBER)
			continue;
		/* The calls of a process that shared the memory are not seen any more. */
		p->losses->other += th->role == ROLE_SHARER;
		move_thread(th, left);
	}
	return left;
}

void tracer_report_end(struct tracer *t, struct tracer_process *p, int status)
{
	const struct process_event ev = { .h = { .kind = EVENT_EXIT, .pid = (u32)p->pid, .tid = (u32)p->pid },
					  .time_ns = clock_now_ns(),
					  .exit_status = (u32)status };

	if (!t->host.record || !t->host.record(t->host.ctx, &ev, sizeof(ev), false))
		p->losses->other++;
}
