/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The processes and threads of the tracer: how they are added, resumed and removed. */
#include "fallback/tracer.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "arch/regs.h"
#include "fallback/code_memory.h"
#include "fallback/tracer_change.h"
#include "fallback/tracer_steps.h"
#include "user/lib/array.h"
#include "user/lib/cleanup.h"
#include "user/lib/clock.h"
#include "user/lib/proc.h"

enum { MAX_PASSES = 64, TIMER_US = 10000, WAITS_PER_TURN = 8, WAITS_PER_LOOK = 64 };

static const u64 default_wait_ns = 1000 * 1000 * 1000;
static const u64 seize_ns = 1000 * 1000 * 1000;
static const u64 orphan_ns = 200 * 1000 * 1000; /* within this time a parent reports its child */

static const long trace_options = PTRACE_O_TRACEEXEC | PTRACE_O_TRACECLONE | PTRACE_O_TRACEFORK |
				  PTRACE_O_TRACEVFORK | PTRACE_O_TRACEVFORKDONE | PTRACE_O_TRACEEXIT |
				  PTRACE_O_TRACESYSGOOD;

int tracer_new(struct tracer **out, const struct tracer_options *o, const struct tracer_host *host)
{
	struct tracer *t = calloc(1, sizeof(*t));

	if (!t)
		return -ENOMEM;
	t->options = *o;
	t->host = *host;
	if (!t->options.max_wait_ns)
		t->options.max_wait_ns = default_wait_ns;
	t->cpu = -1;
	t->stacks_seen = calloc(STACKS_SEEN, sizeof(*t->stacks_seen));
	if (!t->stacks_seen) {
		free(t);
		return -ENOMEM;
	}
	*out = t;
	return 0;
}

void tracer_free(struct tracer *t)
{
	if (!t)
		return;
	tracer_detach(t, 0);
	while (t->orphans) {
		struct orphan *o = t->orphans;

		t->orphans = o->next;
		free(o);
	}
	free(t->probes);
	free(t->notes);
	free(t->tables);
	free(t->stacks_seen);
	free(t->threads);
	hash_index_fini(&t->tids);
	free(t);
}

struct tracer_process *tracer_find_process(const struct tracer *t, pid_t pid)
{
	struct tracer_process *p = t->processes;

	while (p && p->pid != pid)
		p = p->next;
	return p;
}

struct tracer_thread *tracer_find_thread(const struct tracer *t, pid_t tid)
{
	u32 item, at = 0;

	while ((item = hash_index_next(&t->tids, hash_u64((u32)tid), &at)) != HASH_NO_ITEM)
		if (t->threads[item]->tid == tid)
			return t->threads[item];
	return NULL;
}

static int list_thread(struct tracer *t, struct tracer_thread *th)
{
	int err = array_reserve(t->threads, t->max_threads, t->nr_threads + 1);

	if (!err)
		err = hash_index_add(&t->tids, hash_u64((u32)th->tid), (u32)t->nr_threads);
	if (err)
		return err;
	th->number = (u32)t->nr_threads;
	t->threads[t->nr_threads++] = th;
	return 0;
}

/* The last thread of the list takes the place of @th. */
static void unlist_thread(struct tracer *t, const struct tracer_thread *th)
{
	struct tracer_thread *last = t->threads[--t->nr_threads];

	hash_index_del(&t->tids, hash_u64((u32)th->tid), th->number);
	if (last == th)
		return;
	hash_index_renumber(&t->tids, hash_u64((u32)last->tid), last->number, th->number);
	last->number = th->number;
	t->threads[last->number] = last;
}

struct tracer_thread *tracer_add_thread(struct tracer *t, struct tracer_process *p, pid_t tid)
{
	struct tracer_thread *th = calloc(1, sizeof(*th));

	if (!th)
		return NULL;
	th->tid = tid;
	th->process = p;
	th->cpu = -1;
	if (list_thread(t, th)) {
		free(th);
		return NULL;
	}
	th->next = p->threads;
	p->threads = th;
	p->nr_threads++;
	return th;
}

void tracer_drop_thread(struct tracer *t, struct tracer_thread *th)
{
	struct tracer_thread **link = &th->process->threads;

	tracer_untie(t, th->tid);
	unlist_thread(t, th);
	while (*link != th)
		link = &(*link)->next;
	*link = th->next;
	th->process->nr_threads--;
	if (t->thread == th)
		t->thread = NULL;
	free(th);
}

struct tracer_process *tracer_add_process(struct tracer *t, pid_t pid)
{
	struct tracer_process *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	p->pid = pid;
	p->mem_fd = -1;
	p->epoch = 1;
	p->losses = t->host.losses ? t->host.losses(t->host.ctx, pid) : &t->no_losses;
	places_init(&p->places, NULL, code_by_file(-1));
	p->next = t->processes;
	t->processes = p;
	return p;
}

void tracer_drop_process(struct tracer *t, struct tracer_process *p)
{
	struct tracer_process **link = &t->processes;

	while (*link != p)
		link = &(*link)->next;
	*link = p->next;
	while (p->threads)
		tracer_drop_thread(t, p->threads);
	places_fini(&p->places);
	if (p->mem_fd >= 0)
		close(p->mem_fd);
	if (!IS_AGENT)
		sampled_fini(&p->sampled);
	free(p->maps);
	free(p);
}

/* Seize the threads that were not seen before. Returns how many, or -errno. */
static int seize_new(struct tracer *t, struct tracer_process *p, long options)
{
	auto_free pid_t *tids = NULL;
	size_t nr = 0;
	int nr_new = 0;
	int err = proc_threads(p->pid, &tids, &nr);

	for (size_t i = 0; !err && i < nr; i++) {
		if (tracer_find_thread(t, tids[i]))
			continue;
		if (!ptrace(PTRACE_SEIZE, tids[i], 0, options)) {
			nr_new++;
			if (!tracer_add_thread(t, p, tids[i]))
				return -ENOMEM;
		} else if (errno == EPERM) {
			struct proc_stat stat;

			/* A thread that ends cannot be traced either, and is no error. */
			if (!proc_read_stat(&stat, tids[i]) && stat.state != 'Z' && stat.state != 'X' &&
			    !tracer_find_thread(t, tids[i]))
				err = -EPERM;
		} else if (errno != ESRCH) {
			err = -errno;
		}
	}
	return err ? err : nr_new;
}

/*
 * Seize all threads, and those that they make meanwhile. A thread that was making a thread or process when it was
 * seized does not report that child. Each thread must have stopped once before the first breakpoint is put in: else an
 * untraced child would have our breakpoints. -ESRCH: @p has ended, and is freed.
 */
static int tracer_seize_all(struct tracer *t, struct tracer_process *p, long options)
{
	int nr = 1;

	p->nr_holds++;
	for (int pass = 0; nr > 0 && pass < MAX_PASSES; pass++) {
		nr = seize_new(t, p, options);
		if (nr < 0)
			return nr;
		/* A thread that does not stop by then sleeps in vfork(), or is frozen. */
		if (nr && tracer_stop_all(t, p, seize_ns) == -ESRCH)
			return -ESRCH;
		p->nr_holds -= nr > 0;
	}
	if (!IS_AGENT)
		tracer_trap_begin_process(p);
	tracer_unhold(t, p);
	return 0;
}

/* Seize process @p, which is new. If that fails, @p is freed. */
static int seize_process(struct tracer *t, struct tracer_process *p, long options)
{
	pid_t pid = p->pid;
	int err = tracer_open_image(p);

	if (!err)
		err = tracer_seize_all(t, p, options);
	if (!err && !p->threads)
		err = -ESRCH;
	if (err && tracer_find_process(t, pid) == p)
		tracer_detach_process(t, p);
	return err;
}

int tracer_attach(struct tracer *t, pid_t pid)
{
	struct tracer_process *p = tracer_find_process(t, pid);

	if (p)
		return 0;
	p = tracer_add_process(t, pid);
	return p ? seize_process(t, p, trace_options) : -ENOMEM;
}

int tracer_launch(struct tracer *t, pid_t pid)
{
	struct tracer_process *p = tracer_add_process(t, pid);

	if (!p)
		return -ENOMEM;
	p->is_launched = true;
	program_set_state(&p->program, p->pid, PROGRAM_WAITING);
	return seize_process(t, p, trace_options);
}

/* Must the thread stay stopped? */
static bool tracer_is_held(const struct tracer_thread *th)
{
	const struct tracer_process *p = th->process;

	return p->nr_holds || p->program.state == PROGRAM_AT_END || th->wait != WAIT_NONE || th->needs_step;
}

void tracer_resume(struct tracer *t, struct tracer_thread *th)
{
	static const enum tracer_thread_state resumed[NR_THREAD_STATES] = {
		[THREAD_STOPPED] = THREAD_RUNNING,
		[THREAD_GROUP_STOPPED] = THREAD_LISTENING,
		[THREAD_AT_VFORK] = THREAD_IN_VFORK,
		[THREAD_AT_EXIT] = THREAD_EXITING,
	};
	const struct tracer_process *p = th->process;
	int request = program_resume_request(&p->program, p->pid, th->tid);

	(void)t;
	if (!thread_state_is_stopped(th->state) || tracer_is_held(th))
		return;
	if (th->is_watched)
		request = PTRACE_SYSCALL;
	if (th->state == THREAD_GROUP_STOPPED)
		request = PTRACE_LISTEN;
	tracer_set_thread_state(th, resumed[th->state]);
	/* Fails only if the thread was killed: its end will be reported. */
	stop_end(th->tid, th->stop, request, request == PTRACE_LISTEN ? 0 : th->sig);
	th->sig = 0;
}

void tracer_resume_all(struct tracer *t, struct tracer_process *p)
{
	for (struct tracer_thread *th = p->threads, *next; th; th = next) {
		next = th->next;
		tracer_resume(t, th);
	}
}

void tracer_arm(struct tracer *t)
{
	const struct itimerval soon = { { 0, TIMER_US }, { 0, TIMER_US } };

	if (!t->has_limits)
		setitimer(ITIMER_REAL, &soon, NULL);
	t->has_limits = true;
}

void tracer_rearm(struct tracer *t)
{
	if (!t->has_limits)
		return;
	t->has_limits = false;
	tracer_arm(t);
}

bool tracer_send_urgent(struct tracer *t, struct tracer_thread *th, const void *rec, size_t len)
{
	struct tracer_process *p = th->process;

	if (!t->host.record || !t->host.record(t->host.ctx, rec, len, true))
		return false;
	p->nr_urgent++;
	/* The receiver has not answered in time before: do not wait for it again. */
	if (t->is_unanswered)
		return true;
	th->wait = WAIT_ANSWER;
	th->waits_for = p->nr_urgent;
	th->wait_end_ns = clock_now_ns() + t->options.max_wait_ns;
	tracer_arm(t);
	return true;
}

bool tracer_report_event(struct tracer *t, struct tracer_thread *th, struct process_event *ev)
{
	ev->h.tid = (u32)th->tid;
	ev->time_ns = clock_now_ns();
	return tracer_send_urgent(t, th, ev, sizeof(*ev));
}

void tracer_report(struct tracer *t, struct tracer_thread *th, u8 kind)
{
	struct tracer_process *p = th->process;
	struct process_event ev = { .h = { .kind = kind, .pid = (u32)p->pid } };

	p->epoch++;
	if (!tracer_report_event(t, th, &ev))
		p->losses->other++;
}

void tracer_answered(struct tracer *t, pid_t pid)
{
	struct tracer_process *p = tracer_find_process(t, pid);

	if (!p)
		return;
	t->is_unanswered = false;
	p->nr_done++;
	for (struct tracer_thread *th = p->threads; th; th = th->next)
		if (th->wait == WAIT_ANSWER && th->waits_for <= p->nr_done)
			th->wait = WAIT_NONE;
	tracer_resume_all(t, p);
}

void tracer_let_end(struct tracer *t, pid_t pid)
{
	struct tracer_process *p = tracer_find_process(t, pid);

	if (!p)
		return;
	if (p->program.state == PROGRAM_AT_END)
		program_set_state(&p->program, p->pid, PROGRAM_ENDING);
	if (p->is_leaving)
		tracer_detach_process(t, p);
	else
		tracer_resume_all(t, p);
}

void tracer_start(struct tracer *t, pid_t pid)
{
	struct tracer_process *p = tracer_find_process(t, pid);

	if (!p)
		return;
	for (struct tracer_thread *th = p->threads; th; th = th->next)
		if (th->wait == WAIT_START)
			th->wait = WAIT_NONE;
	tracer_resume_all(t, p);
}

int tracer_set_probes(struct tracer *t, u32 first, const struct call_probe *probes, u32 nr)
{
	int err = first <= t->nr_probes ? array_reserve(t->probes, t->max_probes, first + nr) : -EINVAL;

	if (err)
		return err;
	if (first + nr > t->nr_probes)
		t->nr_probes = first + nr;
	memcpy(t->probes + first, probes, nr * sizeof(*probes));
	return 0;
}

int tracer_set_notes(struct tracer *t, u32 first, const struct note_probe *notes, u32 nr)
{
	int err = first <= t->nr_notes ? array_reserve(t->notes, t->max_notes, first + nr) : -EINVAL;

	if (err)
		return err;
	if (first + nr > t->nr_notes)
		t->nr_notes = first + nr;
	memcpy(t->notes + first, notes, nr * sizeof(*notes));
	return 0;
}

/* A process that was killed still has its PID, but no memory. */
static bool tracer_has_memory(pid_t pid)
{
	struct proc_status status;

	return !proc_read_status(&status, proc_reader(pid)) && status.has_memory;
}

int tracer_add_places(struct tracer *t, pid_t pid, const struct place *places, u32 nr, u32 *nr_done)
{
	struct tracer_process *p = tracer_find_process(t, pid);
	int err = p ? 0 : -ESRCH;

	*nr_done = 0;
	while (!err && *nr_done < nr) {
		err = places[*nr_done].kind >= NR_PLACE_KINDS ? -EINVAL
							      : places_add(&p->places, &places[*nr_done]);
		*nr_done += !err;
	}
	if (!p || !err)
		return err;
	if (!tracer_has_memory(pid))
		return -ESRCH;
	/* Calls at that place are not seen. */
	p->losses->other++;
	return err;
}

void tracer_remove_places(struct tracer *t, pid_t pid, taddr_t start, taddr_t end)
{
	struct tracer_process *p = tracer_find_process(t, pid);

	if (p)
		places_remove_range(&p->places, start, end);
}

int tracer_set_table(struct tracer *t, u32 id, u16 machine, u8 word_size, u64 text_base, const void *rows,
		     size_t nr_rows)
{
	int err = array_reserve(t->tables, t->max_tables, (size_t)id + 1);

	if (err)
		return err;
	if (id >= t->nr_tables) {
		memset(t->tables + t->nr_tables, 0, (id + 1 - t->nr_tables) * sizeof(*t->tables));
		t->nr_tables = (size_t)id + 1;
	}
	t->tables[id].cfi = (struct cfi_table){ .text_base = text_base,
						.rows = (struct cfi_row *)(uintptr_t)rows,
						.nr_rows = nr_rows,
						.machine = machine,
						.word_size = word_size };
	t->tables[id].is_used = true;
	return 0;
}

int tracer_set_maps(struct tracer *t, pid_t pid, const struct tracer_map *maps, u32 nr)
{
	struct tracer_process *p = tracer_find_process(t, pid);
	struct tracer_map *list;

	if (!p)
		return -ESRCH;
	list = calloc(nr + 1, sizeof(*list));
	if (!list)
		return -ENOMEM;
	if (nr)
		memcpy(list, maps, nr * sizeof(*list));
	free(p->maps);
	p->maps = list;
	p->nr_maps = nr;
	return 0;
}

void tracer_check(struct tracer *t, pid_t pid)
{
	struct tracer_process *p = tracer_find_process(t, pid);

	if (p && p->mem_fd >= 0 && p->cpu)
		p->losses->other += places_repair(&p->places);
}

void tracer_forget_stacks(struct tracer *t)
{
	array_clear(t->stacks_seen, STACKS_SEEN * sizeof(*t->stacks_seen));
}

void tracer_open(struct tracer *t, pid_t pid)
{
	struct tracer_process *p = tracer_find_process(t, pid);

	if (p)
		p->calls = CALLS_SEEN;
}

void tracer_pause(struct tracer *t, pid_t pid, bool is_paused)
{
	struct tracer_process *p = tracer_find_process(t, pid);

	if (p && p->calls != CALLS_NOT_YET)
		p->calls = is_paused ? CALLS_PAUSED : CALLS_SEEN;
}

void tracer_set_depth(struct tracer *t, u32 depth)
{
	t->options.depth = depth < STACK_MAX_FRAMES ? depth : STACK_MAX_FRAMES;
}

void tracer_set_sample(struct tracer *t, u64 bytes)
{
	t->options.sample_bytes = t->options.sample_bytes ? bytes : 0;
}

void tracer_number(struct tracer *t, pid_t pid, taddr_t addr)
{
	struct tracer_process *p = tracer_find_process(t, pid);

	if (p)
		p->numbers = addr;
}

int tracer_regs(struct tracer *t, pid_t tid, struct arch_regs *regs)
{
	const struct tracer_thread *th = tracer_find_thread(t, tid);

	return th && thread_state_is_stopped(th->state) ? arch_regs_read(regs, tid) : -ESRCH;
}

void tracer_detach(struct tracer *t, pid_t pid)
{
	struct tracer_process *p = tracer_find_process(t, pid);

	if (p)
		tracer_detach_process(t, p);
	if (pid)
		return;
	t->options.max_followed = 0;
	while (t->processes)
		tracer_detach_process(t, t->processes);
}

/* Resume threads whose time limit is over. True if other threads still have a limit. */
static bool check_limits(struct tracer *t, struct tracer_process *p, u64 now)
{
	bool is_any = p->hold_end_ns != 0;

	for (struct tracer_thread *th = p->threads, *next; th; th = next) {
		next = th->next;
		if (th->wait != WAIT_ANSWER && th->wait != WAIT_KILLER)
			continue;
		if (now < th->wait_end_ns) {
			is_any = true;
			continue;
		}
		/* Code that was mapped without an answer may make calls that are not seen. */
		if (th->wait == WAIT_ANSWER) {
			t->is_unanswered = true;
			p->losses->other++;
		} else {
			program_has_no_killer(&p->program);
		}
		th->wait = WAIT_NONE;
		tracer_resume(t, th);
	}
	return is_any;
}

static void tracer_check_time(struct tracer *t)
{
	const struct itimerval never = { 0 };
	u64 now = clock_now_ns();
	bool is_any;

	tracer_settle_orphans(t, now - orphan_ns);
	is_any = t->orphans != NULL;
	for (struct tracer_process *p = t->processes; p; p = p->next) {
		if (p->hold_end_ns && now >= p->hold_end_ns) {
			/* Processes may end meanwhile: the others have their turn next time. */
			tracer_release(t, p->pid);
			return;
		}
		if (!IS_AGENT && p->end_wait_ns && now >= p->end_wait_ns) {
			p->end_wait_ns = 0;
			if (t->host.is_unseen(t->host.ctx, p->pid))
				tracer_let_end(t, p->pid);
			return;
		}
		is_any |= p->end_wait_ns || check_limits(t, p, now);
	}
	if (is_any)
		return;
	t->has_limits = false;
	setitimer(ITIMER_REAL, &never, NULL);
}

/*
 * wait() looks at the latest tracee first: threads that stop all the time would keep older ones stopped for ever.
 * Therefore each thread is asked for first now and then. 0 = that thread has no event.
 */
static pid_t tracer_take_turn(struct tracer *t, int *status)
{
	if (!t->nr_threads)
		return 0;
	return waitpid(t->threads[t->turn++ % t->nr_threads]->tid, status, __WALL | WNOHANG);
}

int tracer_wait(struct tracer *t)
{
	int status;
	pid_t tid = t->nr_waits++ % WAITS_PER_TURN ? 0 : tracer_take_turn(t, &status);
	int err;

	if (tid <= 0)
		tid = waitpid(-1, &status, __WALL);
	err = tid < 0 ? -errno : 0;
	if (!err)
		tracer_dispatch(t, tid, status);
	/* Where threads stop all the time, the timer finds no wait to interrupt. */
	if (t->has_limits && (err || t->nr_waits % WAITS_PER_LOOK == 0))
		tracer_check_time(t);
	return err;
}
