/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Stops the threads of a target, and has one of them make system calls. */
#include "user/inject/threads.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "user/lib/array.h"
#include "user/lib/maps.h"
#include "user/lib/proc.h"

int threads_stop(struct stopped *s, pid_t pid, u64 end_ns)
{
	struct proc_status status;
	int err = proc_read_status(&status, pid);

	*s = (struct stopped){ .all = { .pid = pid } };
	if (err)
		return err;
	if (status.tracer_pid && status.tracer_pid != getpid())
		return -EPERM;
	s->all.by = status.tracer_pid ? STOP_BY_TRACER : STOP_BY_US;
	err = stop_all_begin(&s->all, end_ns);
	if (!err && stop_all_running(&s->all)) {
		stop_all_end(&s->all);
		err = -ETIME;
	}
	return err;
}

void threads_resume(struct stopped *s)
{
	if (s->worker && thread_call_end(&s->call))
		s->worker = NULL;
	stop_all_end(&s->all);
	*s = (struct stopped){ 0 };
}

struct code_range {
	taddr_t start, end;
};

struct code_ranges {
	struct code_range *ranges; /* owned */
	size_t nr, max;
};

static bool wants_way_back(const struct stopped *s)
{
	return !s->back.insn || !s->back.restorer;
}

/* Code of the program and of the kernel, and not the piece, which may go away. */
static bool has_instructions(const struct map_line *line)
{
	return maps_is_code(line) && line->is_readable &&
	       strncmp(line->path, MAPS_PIECE_PATH, strlen(MAPS_PIECE_PATH)) != 0 &&
	       strcmp(line->path, "[vsyscall]") != 0;
}

/* Note where such code lies. */
static int list_code(struct code_ranges *list, pid_t pid)
{
	struct maps_reader *maps;
	struct map_line line;
	int err = maps_open(&maps, pid);

	if (err)
		return err;
	while (!err && maps_next(maps, &line) == 1) {
		if (!has_instructions(&line))
			continue;
		if (array_reserve(list->ranges, list->max, list->nr + 1))
			err = -ENOMEM;
		else
			list->ranges[list->nr++] = (struct code_range){ line.start, line.end };
	}
	maps_close(maps);
	return err;
}

/*
 * The last mappings are searched first: the vDSO and the dynamic linker have all, and are small. Without a way back,
 * all are searched.
 */
static int find_insn(struct stopped *s)
{
	struct code_ranges list = { 0 };
	int err = s->insn ? 0 : list_code(&list, s->all.pid);

	for (size_t i = list.nr; !err && i-- > 0 && (!s->insn || wants_way_back(s));) {
		const struct code_range *r = &list.ranges[i];

		if (!s->insn && thread_call_find_in(&s->insn, s->all.pid, r->start, r->end))
			s->insn = 0;
		if (wants_way_back(s) && !thread_call_find_way_back(&s->back, s->all.pid, r->start, r->end))
			break;
	}
	free(list.ranges);
	return err || s->insn ? err : -EOPNOTSUPP;
}

/* Has the tracer, which calls this, still to wait for the stop of @t, and to handle it? */
static bool is_unhandled(const struct stopped_thread *t)
{
	siginfo_t si = { .si_pid = 0 };

	return t->state == STOP_BEFORE &&
	       (waitid(P_PID, (id_t)t->tid, &si, WSTOPPED | WNOHANG | WNOWAIT | __WALL) || si.si_pid);
}

/*
 * Is thread @t about to stop for a SIGSTOP of a probe, which the tracer has to handle? In a system call of ours the
 * thread would stop for it too early. The signal cannot be sent again: to the tracer, another one is a real SIGSTOP.
 */
static bool is_awaited(const struct stopped_thread *t)
{
	return t->state == STOP_NOTED && stop_hides_signal(t->tid, SIGSTOP);
}

static bool is_at_end(const struct stopped_thread *t)
{
	return t->state == STOP_BEFORE && stop_code(t->tid) == (SIGTRAP | PTRACE_EVENT_EXIT << 8);
}

/*
 * @t was stopped before, and its tracer has waited for that. Does a signal wait that only the tracer can deliver, or is
 * the thread in the middle of a call whose result the kernel has not written yet?
 */
static bool is_taken_up(const struct stopped_thread *t)
{
	siginfo_t si;

	if (t->state != STOP_BEFORE || ptrace(PTRACE_GETSIGINFO, t->tid, 0, &si))
		return false;
	switch (si.si_code) {
	case SIGTRAP | PTRACE_EVENT_FORK << 8:
	case SIGTRAP | PTRACE_EVENT_VFORK << 8:
	case SIGTRAP | PTRACE_EVENT_CLONE << 8:
		return true;
	case SI_KERNEL: /* of a breakpoint, or of a probe */
		return false;
	default:
		return si.si_signo != SIGTRAP || si.si_code <= 0;
	}
}

/* Can thread @t make system calls? */
static bool may_work(const struct stopped_thread *t)
{
	return !t->sig && stop_all_has(t) && !is_unhandled(t) && !is_awaited(t) && !is_taken_up(t) &&
	       !is_at_end(t);
}

static int threads_begin(struct stopped *s, struct stopped_thread *t)
{
	taddr_t stack;

	if (t->state == STOP_NOTED && !stop_all_take(t))
		return -EAGAIN;
	if (t->state == STOP_TAKEN)
		return thread_call_begin(&s->call, t->tid, s->insn, &s->back);
	if (!wants_way_back(s) && !thread_call_find_stack(&stack, t->tid) &&
	    !thread_call_begin_safe(&s->call, t->tid, &s->back, stack))
		return 0;
	return thread_call_begin_held(&s->call, t->tid, s->insn);
}

/* A filter may kill the program for a system call of ours, and heaptap may not suspend it. */
static bool is_confined(const struct stopped_thread *t)
{
	struct proc_status status;

	return !proc_read_status(&status, t->tid) && status.seccomp;
}

/*
 * Choose the worker: a thread that is held anyway, else any. One in a restartable sequence (-EBUSY) will not do.
 * -EPERM: all are under seccomp. -ESRCH: all are at their ends.
 */
static int threads_prepare(struct stopped *s)
{
	int err = s->worker ? 0 : find_insn(s);
	const size_t nr = s->all.nr;
	bool must_wait = false;
	size_t nr_confined = 0, nr_ending = 0;

	if (s->worker || err)
		return err;
	err = -EAGAIN;
	for (size_t i = 0; nr && i < 2 * nr && (err == -EAGAIN || err == -EBUSY); i++) {
		struct stopped_thread *t = &s->all.threads[i % nr];

		must_wait |= is_unhandled(t) || is_awaited(t);
		nr_ending += i < nr && is_at_end(t);
		if ((t->state == STOP_BEFORE) != (i < nr) || !may_work(t))
			continue;
		if (is_confined(t)) {
			nr_confined++;
			continue;
		}
		err = threads_begin(s, t);
		/* The thread has come to an exec, or the like, which its tracer has to handle first. */
		must_wait |= err == -EAGAIN;
		if (!err)
			s->worker = t;
	}
	if (err != -EAGAIN && err != -EBUSY)
		return err;
	if (nr_confined == nr)
		return -EPERM;
	if (nr_ending == nr)
		return -ESRCH;
	return must_wait ? -EINPROGRESS : -EAGAIN;
}

int threads_call(struct stopped *s, long nr, const u64 args[INJECT_ARGS], s64 *result)
{
	int err = threads_prepare(s);

	return err ? err : thread_call_make(&s->call, (u64)nr, args, result, NULL);
}

int threads_all_regs(const struct stopped *s, const struct stopped_thread *t, const struct cpu **cpu,
		     struct cpu_regs *regs)
{
	int err = cpu_of_thread(cpu, t->tid);

	if (!err && t == s->worker)
		*regs = s->call.regs;
	else if (!err)
		err = cpu_regs_read(regs, t->tid);
	return err;
}

int threads_set_link(struct stopped *s, const struct stopped_thread *t, u64 link)
{
	const struct cpu *cpu;
	struct cpu_regs regs;
	int err = threads_all_regs(s, t, &cpu, &regs);

	if (err)
		return err;
	cpu_set(cpu, t == s->worker ? &s->call.regs : &regs, CPU_LINK, link);
	return t == s->worker ? 0 : cpu_regs_write(&regs, t->tid);
}

int threads_regs(const struct stopped *s, const struct stopped_thread *t, taddr_t *pc, taddr_t *sp)
{
	const struct cpu *cpu;
	struct cpu_regs regs;
	int err = threads_all_regs(s, t, &cpu, &regs);

	if (err)
		return err;
	*pc = cpu_get(cpu, &regs, CPU_PC);
	*sp = cpu_get(cpu, &regs, CPU_SP);
	return 0;
}

int threads_scratch(struct stopped *s, taddr_t *sp)
{
	taddr_t ignored;
	int err = threads_prepare(s);

	*sp = 0;
	if (err || !s->call.frame)
		return err ? err : threads_regs(s, s->worker, &ignored, sp);
	*sp = s->call.frame;
	return 0;
}
