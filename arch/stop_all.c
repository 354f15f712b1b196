/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Stops all threads of a process, and lets them go on. */
#include "arch/stop_all.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

#include "arch/waits.h"
#include "user/lib/array.h"
#include "user/lib/cleanup.h"
#include "user/lib/clock.h"
#include "user/lib/proc.h"

enum {
	MAX_PASSES = 30,       /* over the list of threads, while new ones appear */
	POLL_NS = 20 * 1000,   /* between two looks at threads that have not stopped yet */
	EACH_NS = 4 * 1000,    /* the same for each of them, about twice as long as a look takes */
	STRAGGLE_NS = 50000000 /* how long stop_all_end() waits for threads that have not stopped */
};

static bool is_listed(const struct stopped_threads *s, pid_t tid)
{
	u32 item, at = 0;

	while ((item = hash_index_next(&s->by_tid, hash_u64((u64)tid), &at)) != HASH_NO_ITEM)
		if (s->threads[item].tid == tid)
			return true;
	return false;
}

/* Ask thread @tid to stop, unless it is or will be. Its state, or -errno. */
static int ask_to_stop(const struct stopped_threads *s, pid_t tid)
{
	if (s->by == STOP_BY_OTHER)
		return proc_thread_has_ended(s->pid, tid) ? STOP_ENDED : STOP_BEFORE;
	if (s->by != STOP_BY_US && stop_is_there(tid))
		return STOP_BEFORE;
	/* A thread that has ended is listed until its tracer has waited for it. */
	if (s->by == STOP_BY_ITSELF || (s->by == STOP_BY_TRACER && !ptrace(PTRACE_INTERRUPT, tid, 0, 0)))
		return proc_thread_has_ended(s->pid, tid) ? STOP_ENDED : STOP_AWAITED;
	if (ptrace(PTRACE_SEIZE, tid, 0, PTRACE_O_TRACESYSGOOD))
		return errno == ESRCH || proc_thread_has_ended(s->pid, tid) ? STOP_ENDED : -errno;
	/* This fails only if the thread ends at this moment, which waitpid() shows. */
	ptrace(PTRACE_INTERRUPT, tid, 0, 0);
	return STOP_ASKED_FOR;
}

/* The room comes first: a thread that is seized must be in the list. */
static int add_thread(struct stopped_threads *s, pid_t tid)
{
	int err = array_reserve(s->threads, s->max, s->nr + 1), state;

	if (!err)
		err = hash_index_reserve(&s->by_tid, s->nr + 1);
	if (err)
		return err;
	state = ask_to_stop(s, tid);
	if (state < 0 || state == STOP_ENDED)
		return state < 0 ? state : 0;
	s->threads[s->nr] = (struct stopped_thread){ .tid = tid, .state = (enum stopped_state)state };
	return hash_index_add(&s->by_tid, hash_u64((u64)tid), (u32)s->nr++);
}

/* Ask all threads that are not in the list yet. Returns how many, or -errno. */
static int ask_new(struct stopped_threads *s, u64 end_ns)
{
	auto_free pid_t *tids = NULL;
	size_t nr = 0, before = s->nr;
	int err = proc_threads(s->pid, &tids, &nr);

	for (size_t i = 0; !err && i < nr; i++)
		if (!is_listed(s, tids[i]))
			err = clock_now_ns() > end_ns ? -ETIME : add_thread(s, tids[i]);
	return err ? err : (int)(s->nr - before);
}

/* Has @t, which was asked, stopped or ended by now? */
static void look_at_thread(const struct stopped_threads *s, struct stopped_thread *t)
{
	int status;
	pid_t got;

	if (t->state == STOP_AWAITED) {
		if (stop_is_there(t->tid)) {
			t->state = STOP_NOTED;
			if (stop_code(t->tid) == (SIGTRAP | PTRACE_EVENT_STOP << 8))
				waits_keep(t->tid);
		} else if (proc_thread_has_ended(s->pid, t->tid)) {
			t->state = STOP_ENDED;
		}
		return;
	}
	got = waitpid(t->tid, &status, __WALL | WNOHANG);
	if (got == t->tid && WIFSTOPPED(status)) {
		t->state = STOP_TAKEN;
		t->stop = stop_of(status);
		t->sig = stop_signal(status);
		if (s->is_switch && t->sig == SIGCHLD && stop_code(t->tid) == SI_KERNEL)
			t->sig = 0;
		if (t->stop == STOP_ASKED)
			waits_keep(t->tid);
	} else if (got || (t->tid == s->pid && proc_thread_has_ended(s->pid, t->tid))) {
		/* The end of a first thread that others survive is not reported. */
		t->state = STOP_ENDED;
	}
}

static bool is_running(const struct stopped_thread *t)
{
	return t->state == STOP_ASKED_FOR || t->state == STOP_AWAITED;
}

size_t stop_all_running(const struct stopped_threads *s)
{
	size_t nr = s->is_growing;

	for (size_t i = 0; i < s->nr; i++)
		nr += is_running(&s->threads[i]);
	return nr;
}

/* Wait until all have stopped. */
static void await_threads(struct stopped_threads *s, u64 end_ns)
{
	size_t nr;

	do {
		nr = 0;
		for (size_t i = 0; i < s->nr; i++) {
			if (!is_running(&s->threads[i]))
				continue;
			look_at_thread(s, &s->threads[i]);
			nr += is_running(&s->threads[i]);
		}
	} while (nr && clock_pause(POLL_NS + nr * EACH_NS, end_ns));
}

/* Take threads that have ended out of the list. */
static void forget_ended(struct stopped_threads *s)
{
	for (u32 i = 0; i < s->nr;) {
		u32 last = (u32)s->nr - 1;

		if (s->threads[i].state != STOP_ENDED) {
			i++;
			continue;
		}
		hash_index_del(&s->by_tid, hash_u64((u64)s->threads[i].tid), i);
		if (i != last)
			hash_index_renumber(&s->by_tid, hash_u64((u64)s->threads[last].tid), last, i);
		s->threads[i] = s->threads[last];
		s->nr--;
	}
}

int stop_all_begin(struct stopped_threads *s, u64 end_ns)
{
	int nr = 1;

	for (int pass = 0; pass < MAX_PASSES && nr > 0; pass++) {
		nr = ask_new(s, end_ns);
		await_threads(s, end_ns);
		forget_ended(s);
	}
	s->is_growing = nr > 0;
	if (nr >= 0 && stop_all_running(s) < s->nr)
		return 0;
	if (nr >= 0)
		nr = s->nr ? -ETIME : -ESRCH;
	if (!s->is_switch)
		stop_all_end(s);
	return nr;
}

int stop_all_step(struct stopped_threads *s, bool (*wants)(void *ctx, const struct stopped_thread *t),
		  void *ctx, u64 ns, u64 end_ns)
{
	for (size_t i = 0; i < s->nr; i++) {
		struct stopped_thread *t = &s->threads[i];

		if (t->state != STOP_TAKEN || !wants(ctx, t) ||
		    stop_end(t->tid, t->stop, PTRACE_CONT, t->sig))
			continue;
		t->state = STOP_ASKED_FOR;
		t->sig = 0;
	}
	await_threads(s, clock_now_ns() + ns);
	for (size_t i = 0; i < s->nr; i++)
		if (s->threads[i].state == STOP_ASKED_FOR)
			ptrace(PTRACE_INTERRUPT, s->threads[i].tid, 0, 0);
	return stop_all_begin(s, end_ns);
}

bool stop_all_take(struct stopped_thread *t)
{
	siginfo_t si = { .si_pid = 0 };
	int status;

	if (t->state == STOP_HANDLED)
		return true;
	if (t->state != STOP_NOTED ||
	    waitid(P_PID, (id_t)t->tid, &si, WSTOPPED | WNOHANG | WNOWAIT | __WALL) || !si.si_pid ||
	    si.si_status != (PTRACE_EVENT_STOP << 8 | SIGTRAP) ||
	    waitpid(t->tid, &status, WNOHANG | __WALL) != t->tid)
		return false;
	t->state = STOP_HANDLED;
	return true;
}

/* How a thread goes on that was seized here. */
static int request_of(const struct stopped_threads *s, pid_t tid)
{
	return IS_AGENT || !s->stay_options || ptrace(PTRACE_SETOPTIONS, tid, 0, s->stay_options)
		       ? PTRACE_DETACH
		       : PTRACE_CONT;
}

static void let_go(const struct stopped_threads *s, struct stopped_thread *t)
{
	bool is_killed = t->state == STOP_TAKEN && stop_end(t->tid, t->stop, request_of(s, t->tid), t->sig);

	if (stop_all_take(t))
		stop_end(t->tid, STOP_ASKED,
			 s->first_request && t->tid == s->pid ? s->first_request : PTRACE_CONT, 0);
	/* A signal to another thread has ended it: its end is to be waited for, or its parent would not see it. */
	if (is_killed)
		t->state = STOP_ASKED_FOR;
	if (!is_running(t))
		t->state = STOP_ENDED;
}

void stop_all_end(struct stopped_threads *s)
{
	for (size_t i = 0; i < s->nr; i++)
		let_go(s, &s->threads[i]);
	/* A thread that stops only now would stay stopped until our thread ends. */
	if (stop_all_running(s) > s->is_growing) {
		await_threads(s, clock_now_ns() + STRAGGLE_NS);
		for (size_t i = 0; i < s->nr; i++)
			let_go(s, &s->threads[i]);
	}
	stop_all_forget(s);
}

size_t stop_all_release(struct stopped_threads *s)
{
	await_threads(s, 0);
	for (size_t i = 0; i < s->nr; i++)
		let_go(s, &s->threads[i]);
	forget_ended(s);
	if (!s->nr)
		stop_all_forget(s);
	return s->nr;
}

void stop_all_forget(struct stopped_threads *s)
{
	free(s->threads);
	hash_index_fini(&s->by_tid);
	*s = (struct stopped_threads){ .pid = s->pid };
}
