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

#include "arch/stop.h"
#include "user/lib/array.h"
#include "user/lib/cleanup.h"
#include "user/lib/clock.h"
#include "user/lib/maps.h"
#include "user/lib/proc.h"

enum { POLL_NS = 20 * 1000 };

static bool is_known(const struct stopped *s, pid_t tid)
{
	u32 item, at = 0;

	while ((item = hash_index_next(&s->by_tid, hash_u64((u64)tid), &at)) != HASH_NO_ITEM)
		if (s->threads[item].tid == tid)
			return true;
	return false;
}

/* Ask a thread that is new to us to stop. */
static int ask(struct stopped *s, pid_t tid)
{
	struct stopped_thread t = { .tid = tid };
	int err = array_reserve(s->threads, s->max, s->nr + 1);

	if (!err)
		err = hash_index_reserve(&s->by_tid, s->nr + 1);
	if (err)
		return err;
	if (s->is_traced)
		t.is_held = t.is_stopped = stop_is_there(tid);
	else if (ptrace(PTRACE_SEIZE, tid, 0, PTRACE_O_TRACESYSGOOD))
		return errno == ESRCH || proc_thread_has_ended(s->pid, tid) ? 0 : -errno;
	if (!t.is_stopped)
		ptrace(PTRACE_INTERRUPT, tid, 0, 0);
	s->threads[s->nr] = t;
	return hash_index_add(&s->by_tid, hash_u64((u64)tid), (u32)s->nr++);
}

/* Ask all threads that are there now. 1: some were new, 0, or -errno. */
static int ask_all(struct stopped *s)
{
	auto_free pid_t *tids = NULL;
	size_t nr = 0, before = s->nr;
	int err = proc_threads(s->pid, &tids, &nr);

	for (size_t i = 0; !err && i < nr; i++)
		if (!is_known(s, tids[i]) && !proc_thread_has_ended(s->pid, tids[i]))
			err = ask(s, tids[i]);
	return err ? err : s->nr > before;
}

static void forget(struct stopped *s, struct stopped_thread *t)
{
	u32 item = (u32)(t - s->threads), last = (u32)--s->nr;

	hash_index_del(&s->by_tid, hash_u64((u64)t->tid), item);
	if (item == last)
		return;
	hash_index_renumber(&s->by_tid, hash_u64((u64)s->threads[last].tid), last, item);
	*t = s->threads[last];
}

/* Has @t stopped by now? Its stop is taken, or left to the one who traces it. */
static bool has_stopped(struct stopped *s, struct stopped_thread *t)
{
	int status;
	pid_t got;

	if (s->is_traced)
		return stop_is_there(t->tid);
	got = waitpid(t->tid, &status, __WALL | WNOHANG);
	if (got != t->tid || !WIFSTOPPED(status))
		return false;
	t->stop = stop_of(status);
	t->sig = stop_signal(status);
	return true;
}

/* How many threads run still. */
static size_t count_running(struct stopped *s)
{
	size_t nr = 0;

	for (size_t i = 0; i < s->nr;) {
		struct stopped_thread *t = &s->threads[i];

		if (!t->is_stopped)
			t->is_stopped = has_stopped(s, t);
		if (!t->is_stopped && proc_thread_has_ended(s->pid, t->tid)) {
			forget(s, t);
			continue;
		}
		nr += !t->is_stopped;
		i++;
	}
	return nr;
}

int threads_stop(struct stopped *s, pid_t pid, u64 end_ns)
{
	struct proc_status status;
	int err = proc_read_status(&status, pid);

	*s = (struct stopped){ .pid = pid };
	if (err)
		return err;
	s->is_traced = status.tracer_pid == getpid();
	if (status.tracer_pid && !s->is_traced)
		return -EPERM;
	do {
		err = ask_all(s);
		while (err >= 0 && count_running(s))
			if (!clock_pause(POLL_NS, end_ns))
				err = -ETIME;
	} while (err > 0);
	if (!err && !s->nr)
		err = -ESRCH;
	if (err)
		threads_resume(s);
	return err;
}

/* Resume a thread that we trace anyway. Stops that we did not ask for are handled by whoever expects them. */
static void resume_traced(const struct stopped_thread *t)
{
	siginfo_t si = { .si_pid = 0 };
	int status;

	if (t->is_held)
		return;
	if (t->is_taken) {
		stop_end(t->tid, STOP_ASKED, PTRACE_CONT, 0);
		return;
	}
	if (waitid(P_PID, (id_t)t->tid, &si, WSTOPPED | WNOHANG | WNOWAIT | __WALL) || !si.si_pid ||
	    si.si_status != (PTRACE_EVENT_STOP << 8 | SIGTRAP))
		return;
	if (waitpid(t->tid, &status, WNOHANG | __WALL) == t->tid)
		stop_end(t->tid, STOP_ASKED, PTRACE_CONT, 0);
}

static void resume(struct stopped *s, struct stopped_thread *t)
{
	if (s->is_traced) {
		resume_traced(t);
		return;
	}
	/* A thread that did not stop in time cannot be detached before it has. The kernel detaches it when we end. */
	if (t->is_stopped || has_stopped(s, t))
		stop_end(t->tid, t->stop, PTRACE_DETACH, t->sig);
}

void threads_resume(struct stopped *s)
{
	if (s->worker && thread_call_end(&s->call))
		s->worker = NULL;
	for (size_t i = 0; i < s->nr; i++)
		resume(s, &s->threads[i]);
	free(s->threads);
	hash_index_fini(&s->by_tid);
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
	return s->is_traced && (!s->back.insn || !s->back.restorer);
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
	int err = s->insn ? 0 : list_code(&list, s->pid);

	for (size_t i = list.nr; !err && i-- > 0 && (!s->insn || wants_way_back(s));) {
		const struct code_range *r = &list.ranges[i];

		if (!s->insn && thread_call_find_in(&s->insn, s->pid, r->start, r->end))
			s->insn = 0;
		if (wants_way_back(s) && !thread_call_find_way_back(&s->back, s->pid, r->start, r->end))
			break;
	}
	free(list.ranges);
	return err || s->insn ? err : -EOPNOTSUPP;
}

/* Has the tracer, which calls this, still to wait for the stop of @t, and to handle it? */
static bool is_unhandled(const struct stopped_thread *t)
{
	siginfo_t si = { .si_pid = 0 };

	return t->is_held &&
	       (waitid(P_PID, (id_t)t->tid, &si, WSTOPPED | WNOHANG | WNOWAIT | __WALL) || si.si_pid);
}

/*
 * Is thread @t about to stop for a SIGSTOP of a probe, which the tracer has to handle? In a system call of ours the
 * thread would stop for it too early. The signal cannot be sent again: to the tracer, another one is a real SIGSTOP.
 */
static bool is_awaited(const struct stopped *s, const struct stopped_thread *t)
{
	return s->is_traced && !t->is_held && t->is_stopped && stop_hides_signal(t->tid, SIGSTOP);
}

/* Can thread @t make system calls? */
static bool may_work(const struct stopped *s, const struct stopped_thread *t)
{
	return !t->sig && t->is_stopped && !is_unhandled(t) && !is_awaited(s, t);
}

static int begin(struct stopped *s, struct stopped_thread *t)
{
	taddr_t stack;
	int status;

	/* The stop that we have asked for is ours. */
	if (s->is_traced && !t->is_held && !t->is_taken) {
		if (waitpid(t->tid, &status, __WALL | WNOHANG) != t->tid)
			return -EAGAIN;
		t->is_taken = true;
	}
	if (!s->is_traced)
		return thread_call_begin(&s->call, t->tid, s->insn);
	/* Here we are no helper that survives a kill of heaptap. */
	if (!wants_way_back(s) && !thread_call_find_stack(&stack, t->tid) &&
	    !thread_call_begin_safe(&s->call, t->tid, &s->back, stack))
		return 0;
	return thread_call_begin_held(&s->call, t->tid, s->insn);
}

/* Choose the worker: a thread that is held anyway, else any. One in a restartable sequence (-EBUSY) will not do. */
static int prepare(struct stopped *s)
{
	int err = s->worker ? 0 : find_insn(s);
	const size_t nr = s->nr;
	bool must_wait = false;

	if (s->worker || err)
		return err;
	err = -EAGAIN;
	for (size_t i = 0; nr && i < 2 * nr && (err == -EAGAIN || err == -EBUSY); i++) {
		struct stopped_thread *t = &s->threads[i % nr];

		must_wait |= is_unhandled(t) || is_awaited(s, t);
		if (t->is_held != (i < nr) || !may_work(s, t))
			continue;
		err = begin(s, t);
		if (!err)
			s->worker = t;
	}
	if (err != -EAGAIN && err != -EBUSY)
		return err;
	return must_wait ? -EINPROGRESS : -EAGAIN;
}

int threads_call(struct stopped *s, long nr, const u64 args[INJECT_ARGS], s64 *result)
{
	int err = prepare(s);

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
	int err = prepare(s);

	*sp = 0;
	if (err || !s->call.frame)
		return err ? err : threads_regs(s, s->worker, &ignored, sp);
	*sp = s->call.frame;
	return 0;
}
