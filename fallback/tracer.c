/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The tracer's processes and threads: how they come, go on and go. */
#include "fallback/tracer.h"

#include <errno.h>
#include <fcntl.h>
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
#include "fallback/tracer_steps.h"
#include "user/lib/cleanup.h"
#include "user/lib/clock.h"
#include "user/lib/proc.h"

enum { MAX_PASSES = 64, TIMER_US = 10000, WAITS_PER_TURN = 8, WAITS_PER_LOOK = 64 };

static const u64 default_wait_ns = 1000 * 1000 * 1000;
static const u64 seize_ns = 1000 * 1000 * 1000;
static const u64 orphan_ns = 200 * 1000 * 1000; /* in which a parent tells of its child */

static const long trace_options = PTRACE_O_TRACEEXEC | PTRACE_O_TRACECLONE | PTRACE_O_TRACEFORK |
				  PTRACE_O_TRACEVFORK | PTRACE_O_TRACEVFORKDONE | PTRACE_O_TRACESYSGOOD;

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
	free(t->tables);
	free(t->stacks_seen);
	free(t);
}

struct traced *tracer_process(const struct tracer *t, pid_t pid)
{
	struct traced *p = t->processes;

	while (p && p->pid != pid)
		p = p->next;
	return p;
}

struct thread *tracer_thread(const struct tracer *t, pid_t tid)
{
	struct thread *th = t->buckets[(u32)tid % THREAD_BUCKETS];

	while (th && th->tid != tid)
		th = th->next_in_bucket;
	return th;
}

struct thread *tracer_add_thread(struct tracer *t, struct traced *p, pid_t tid)
{
	struct thread **bucket = &t->buckets[(u32)tid % THREAD_BUCKETS];
	struct thread *th = calloc(1, sizeof(*th));

	if (!th)
		return NULL;
	th->tid = tid;
	th->process = p;
	th->cpu = -1;
	th->next_in_bucket = *bucket;
	*bucket = th;
	th->next = p->threads;
	p->threads = th;
	p->nr_threads++;
	return th;
}

void tracer_drop_thread(struct tracer *t, struct thread *th)
{
	struct thread **link = &t->buckets[(u32)th->tid % THREAD_BUCKETS];

	while (*link != th)
		link = &(*link)->next_in_bucket;
	*link = th->next_in_bucket;
	link = &th->process->threads;
	while (*link != th)
		link = &(*link)->next;
	*link = th->next;
	th->process->nr_threads--;
	if (t->thread == th)
		t->thread = NULL;
	free(th);
}

struct traced *tracer_add_process(struct tracer *t, pid_t pid)
{
	struct traced *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	p->pid = pid;
	p->mem_fd = -1;
	p->epoch = 1;
	p->losses = t->host.losses ? t->host.losses(t->host.ctx, pid) : &t->no_losses;
	places_init(&p->places, NULL, -1);
	p->next = t->processes;
	t->processes = p;
	return p;
}

void tracer_drop_process(struct tracer *t, struct traced *p)
{
	struct traced **link = &t->processes;

	while (*link != p)
		link = &(*link)->next;
	*link = p->next;
	while (p->threads)
		tracer_drop_thread(t, p->threads);
	places_fini(&p->places);
	if (p->mem_fd >= 0)
		close(p->mem_fd);
	free(p->maps);
	free(p);
}

/* Seize the threads not seen before. Their number, or -errno. */
static int seize_new(struct tracer *t, struct traced *p, long options)
{
	auto_free pid_t *tids = NULL;
	size_t nr = 0;
	int nr_new = 0;
	int err = proc_threads(p->pid, &tids, &nr);

	for (size_t i = 0; !err && i < nr; i++) {
		if (tracer_thread(t, tids[i]))
			continue;
		if (!ptrace(PTRACE_SEIZE, tids[i], 0, options)) {
			nr_new++;
			if (!tracer_add_thread(t, p, tids[i]))
				return -ENOMEM;
		} else if (errno == EPERM) {
			struct proc_stat stat;

			/* Those that end, and zombies, cannot be traced either. */
			if (!proc_read_stat(&stat, tids[i]) && stat.state != 'Z' && stat.state != 'X' &&
			    !tracer_thread(t, tids[i]))
				err = -EPERM;
		} else if (errno != ESRCH) {
			err = -errno;
		}
	}
	return err ? err : nr_new;
}

/*
 * All threads, and those that they make meanwhile. One that was making another one, or a process, when it was seized
 * does not tell of that: each must have stood since, so that nobody untraced is born with our breakpoints. -ESRCH:
 * @p has ended, and is no more.
 */
static int seize_all(struct tracer *t, struct traced *p, long options)
{
	int nr = 1;

	p->nr_holds++;
	for (int pass = 0; nr > 0 && pass < MAX_PASSES; pass++) {
		nr = seize_new(t, p, options);
		if (nr < 0)
			return nr;
		/* Who does not stand by then sleeps in vfork(), or is frozen. */
		if (nr && tracer_stop_all(t, p, seize_ns) == -ESRCH)
			return -ESRCH;
		p->nr_holds -= nr > 0;
	}
	tracer_unhold(t, p);
	return 0;
}

/* Seize process @p, which is new; nothing is left of it if that fails. */
static int seize_process(struct tracer *t, struct traced *p, long options)
{
	pid_t pid = p->pid;
	int err = tracer_open_image(p);

	if (!err)
		err = seize_all(t, p, options);
	if (!err && !p->threads)
		err = -ESRCH;
	if (err && tracer_process(t, pid) == p)
		tracer_let_go(t, p);
	return err;
}

int tracer_attach(struct tracer *t, pid_t pid)
{
	struct traced *p = tracer_process(t, pid);

	if (p)
		return 0;
	p = tracer_add_process(t, pid);
	return p ? seize_process(t, p, trace_options) : -ENOMEM;
}

int tracer_launch(struct tracer *t, pid_t pid)
{
	struct traced *p = tracer_add_process(t, pid);

	if (!p)
		return -ENOMEM;
	p->is_launched = true;
	p->is_waiting = true;
	return seize_process(t, p, trace_options | PTRACE_O_TRACEEXIT);
}

/* Does something keep the thread from going on? */
static bool is_held(const struct thread *th)
{
	const struct traced *p = th->process;

	return p->nr_holds || p->is_exit_held || th->waits_for || th->needs_step || th->is_killed;
}

void tracer_resume(struct tracer *t, struct thread *th)
{
	struct traced *p = th->process;
	int request = PTRACE_CONT;

	(void)t;
	if (!th->stands || is_held(th) || th->waits_to_start)
		return;
	if (th->owed == OWED_LISTEN)
		request = PTRACE_LISTEN;
	else if (p->is_starting && th->tid == p->pid)
		request = PTRACE_SYSCALL;
	th->stands = false;
	th->owed = OWED_NOTHING;
	/* Fails only if it has been killed: its end will be told. */
	ptrace(request, th->tid, 0, request == PTRACE_LISTEN ? 0 : th->sig);
	th->sig = 0;
}

void tracer_resume_all(struct tracer *t, struct traced *p)
{
	for (struct thread *th = p->threads, *next; th; th = next) {
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

bool tracer_tell_event(struct tracer *t, struct thread *th, struct process_event *ev)
{
	struct traced *p = th->process;

	ev->h.tid = (u32)th->tid;
	ev->time_ns = clock_now_ns();
	if (!t->host.record || !t->host.record(t->host.ctx, ev, sizeof(*ev), true))
		return false;
	p->nr_urgent++;
	/* Who has not answered in time will not do so now either. */
	if (t->is_unanswered)
		return true;
	th->waits_for = p->nr_urgent;
	th->wait_end_ns = ev->time_ns + t->options.max_wait_ns;
	tracer_arm(t);
	return true;
}

void tracer_tell(struct tracer *t, struct thread *th, u8 kind)
{
	struct traced *p = th->process;
	struct process_event ev = { .h = { .kind = kind, .pid = (u32)p->pid } };

	p->epoch++;
	if (!tracer_tell_event(t, th, &ev))
		p->losses->other++;
}

void tracer_go_on(struct tracer *t, pid_t pid)
{
	struct traced *p = tracer_process(t, pid);

	if (!p)
		return;
	t->is_unanswered = false;
	p->nr_done++;
	for (struct thread *th = p->threads; th; th = th->next)
		if (th->waits_for && th->waits_for <= p->nr_done)
			th->waits_for = 0;
	tracer_resume_all(t, p);
}

void tracer_let_end(struct tracer *t, pid_t pid)
{
	struct traced *p = tracer_process(t, pid);

	if (!p)
		return;
	p->is_exit_held = false;
	tracer_resume_all(t, p);
}

void tracer_start(struct tracer *t, pid_t pid)
{
	struct traced *p = tracer_process(t, pid);

	if (!p)
		return;
	for (struct thread *th = p->threads; th; th = th->next)
		th->waits_to_start = false;
	tracer_resume_all(t, p);
}

int tracer_set_probes(struct tracer *t, u32 first, const struct call_probe *probes, u32 nr)
{
	struct call_probe *list;

	if (first > t->nr_probes)
		return -EINVAL;
	if (first + nr > t->nr_probes) {
		list = reallocarray(t->probes, first + nr, sizeof(*list));
		if (!list)
			return -ENOMEM;
		t->probes = list;
		t->nr_probes = first + nr;
	}
	memcpy(t->probes + first, probes, nr * sizeof(*probes));
	return 0;
}

int tracer_add_places(struct tracer *t, pid_t pid, const struct place *places, u32 nr, u32 *nr_done)
{
	struct traced *p = tracer_process(t, pid);
	int err = p ? 0 : -ESRCH;

	*nr_done = 0;
	while (!err && *nr_done < nr) {
		err = places[*nr_done].kind >= NR_PLACE_KINDS ? -EINVAL
							      : places_add(&p->places, &places[*nr_done]);
		*nr_done += !err;
	}
	/* What would have been seen there is not. */
	if (p && err)
		p->losses->other++;
	return err;
}

void tracer_remove_places(struct tracer *t, pid_t pid, taddr_t start, taddr_t end)
{
	struct traced *p = tracer_process(t, pid);

	if (p)
		places_remove_range(&p->places, start, end);
}

int tracer_set_table(struct tracer *t, u32 id, u16 machine, u8 word_size, u64 text_base, const void *rows,
		     size_t nr_rows)
{
	size_t nr = (size_t)id + 64;
	struct cfi_slot *tables;

	if (id >= t->nr_tables) {
		tables = reallocarray(t->tables, nr, sizeof(*tables));
		if (!tables)
			return -ENOMEM;
		memset(tables + t->nr_tables, 0, (nr - t->nr_tables) * sizeof(*tables));
		t->tables = tables;
		t->nr_tables = nr;
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
	struct traced *p = tracer_process(t, pid);
	struct tracer_map *list;

	if (!p)
		return -ESRCH;
	list = calloc(nr + 1, sizeof(*list));
	if (!list)
		return -ENOMEM;
	memcpy(list, maps, nr * sizeof(*list));
	free(p->maps);
	p->maps = list;
	p->nr_maps = nr;
	return 0;
}

void tracer_check(struct tracer *t, pid_t pid)
{
	struct traced *p = tracer_process(t, pid);

	if (p && p->mem_fd >= 0 && p->cpu)
		p->losses->other += places_repair(&p->places);
}

void tracer_forget_stacks(struct tracer *t)
{
	memset(t->stacks_seen, 0, STACKS_SEEN * sizeof(*t->stacks_seen));
}

void tracer_open(struct tracer *t, pid_t pid)
{
	struct traced *p = tracer_process(t, pid);

	if (p)
		p->is_open = true;
}

void tracer_pause(struct tracer *t, pid_t pid, bool is_paused)
{
	struct traced *p = tracer_process(t, pid);

	if (p)
		p->is_paused = is_paused;
}

void tracer_set_depth(struct tracer *t, u32 depth)
{
	t->options.depth = depth < STACK_MAX_FRAMES ? depth : STACK_MAX_FRAMES;
}

int tracer_regs(struct tracer *t, pid_t tid, struct arch_regs *regs)
{
	const struct thread *th = tracer_thread(t, tid);

	return th && th->stands ? arch_regs_read(regs, tid) : -ESRCH;
}

void tracer_detach(struct tracer *t, pid_t pid)
{
	struct traced *p = tracer_process(t, pid);

	if (p)
		tracer_let_go(t, p);
	if (pid)
		return;
	t->options.max_followed = 0;
	while (t->processes)
		tracer_let_go(t, t->processes);
}

/* Those whose time is up go on. True if somebody's is still to come. */
static bool check_limits(struct tracer *t, struct traced *p, u64 now)
{
	bool is_any = p->hold_end_ns != 0;

	for (struct thread *th = p->threads, *next; th; th = next) {
		next = th->next;
		if (!th->waits_for && !th->is_killed)
			continue;
		if (now < th->wait_end_ns) {
			is_any = true;
			continue;
		}
		/* What it did not wait for may have made calls that nobody has seen. */
		if (th->waits_for) {
			t->is_unanswered = true;
			p->losses->other++;
		}
		if (th->is_killed)
			p->futile_until_ns = now + default_wait_ns;
		th->waits_for = 0;
		th->is_killed = false;
		tracer_resume(t, th);
	}
	return is_any;
}

static void check_time(struct tracer *t)
{
	const struct itimerval never = { 0 };
	u64 now = clock_now_ns();
	bool is_any;

	tracer_settle_orphans(t, now - orphan_ns);
	is_any = t->orphans != NULL;
	for (struct traced *p = t->processes; p; p = p->next) {
		if (p->hold_end_ns && now >= p->hold_end_ns) {
			/* Processes may come to their ends meanwhile: the others have their turn next time. */
			tracer_release(t, p->pid);
			return;
		}
		is_any |= check_limits(t, p, now);
	}
	if (is_any)
		return;
	t->has_limits = false;
	setitimer(ITIMER_REAL, &never, NULL);
}

/*
 * wait() looks at the latest tracee first: threads that stop all the time would keep older ones standing for ever.
 * So each has its turn at times. 0 = it has not stopped.
 */
static pid_t take_turn(struct tracer *t, int *status)
{
	u32 at = t->turn++;

	for (struct traced *p = t->processes; p; p = p->next) {
		struct thread *th = p->threads;

		if (at >= p->nr_threads) {
			at -= p->nr_threads;
			continue;
		}
		while (th && at--)
			th = th->next;
		return th ? waitpid(th->tid, status, __WALL | WNOHANG) : 0;
	}
	t->turn = 0;
	return 0;
}

int tracer_wait(struct tracer *t)
{
	int status;
	pid_t tid = t->nr_waits++ % WAITS_PER_TURN ? 0 : take_turn(t, &status);
	int err;

	if (tid <= 0)
		tid = waitpid(-1, &status, __WALL);
	err = tid < 0 ? -errno : 0;
	if (!err)
		tracer_dispatch(t, tid, status);
	/* Where threads stop all the time the timer finds no wait to interrupt. */
	if (t->has_limits && (err || t->nr_waits % WAITS_PER_LOOK == 0))
		check_time(t);
	return err;
}
