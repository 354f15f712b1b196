/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Traces all processes of the watch with one set of probes for each file. */
#include "user/system/everything.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "user/lib/clock.h"
#include "user/lib/human.h"
#include "user/lib/log.h"
#include "user/lib/path.h"
#include "user/report/output.h"
#include "user/session/control.h"
#include "user/session/session.h"
#include "user/session/session_chosen.h"
#include "user/session/session_live.h"
#include "user/session/session_pace.h"
#include "user/session/session_price.h"
#include "user/source/sample_pace.h"
#include "user/system/answer.h"
#include "user/system/spare.h"
#include "user/system/zoom_price.h"

/* Keeps the price of tracing everything low: short stacks, then windows of single processes, then fewer files. */

static const u64 judge_after_ns = 3 * SECOND_NS, window_ns = 10 * SECOND_NS,
		 longest_gap_ns = 3600 * SECOND_NS;

/* The prices of one look, in ten-thousandths of a CPU. */
struct bill {
	u32 all;
	struct process_pace *dearest, *paused; /* that is traced; the dearest one that is not: NULL = none */
};

/* Processes that share probes pay for the trap also while they are paused. */
static u64 call_ns(const struct everything *e, bool is_paused)
{
	const struct call_price *price = session_call_price(e->session);

	return is_paused && price->traps_ns ? price->traps_ns : call_price_ns(price);
}

static u32 price_at(const struct process_pace *p, u64 ns)
{
	return (u32)(p->calls_per_s * (double)ns / 1e5);
}

/* A paused process goes on as before, as far as anybody knows. */
static void everything_price_measure(struct process_pace *p, u64 since_ns, u64 now_ns)
{
	double rate;

	/* Another program counts anew. */
	if (p->calls >= p->last_calls && p->first_ns && now_ns > since_ns && !p->until_ns) {
		rate = (double)(p->calls - p->last_calls) * 1e9 / (double)(now_ns - since_ns);
		p->calls_per_s = p->calls_per_s > 0 ? (p->calls_per_s + rate) / 2 : rate;
	}
	p->last_calls = p->calls;
	if (!p->first_ns)
		p->first_ns = p->begin_ns = now_ns;
}

static void everything_price_resume(struct everything *e, struct process_pace *p, u64 now_ns)
{
	if (session_resume_process(e->session, p->pid, now_ns))
		debug("system: PID %d: it is not traced again", (int)p->pid);
	else
		info("system: traces %s (pid %d) again: window %u", p->comm, (int)p->pid, p->window);
}

static struct bill everything_price_look(struct everything *e, u64 now_ns)
{
	struct bill b = { 0 };
	size_t nr = 1;

	for (size_t i = 0; i < nr; i++) {
		struct process_pace *p = session_pace(e->session, i, &nr), **slot;

		if (!p)
			continue;
		if (p->until_ns && now_ns >= p->until_ns)
			everything_price_resume(e, p, now_ns);
		everything_price_measure(p, e->price_ns, now_ns);
		p->permyriad = price_at(p, call_ns(e, p->until_ns));
		b.all += p->permyriad;
		slot = p->until_ns ? &b.paused : &b.dearest;
		if (!*slot || (*slot)->permyriad < p->permyriad)
			*slot = p;
	}
	e->price_ns = now_ns;
	return b;
}

/* "tracing costs it 12.0 % of a CPU, more than --max-cost 5 %" */
static void everything_price_write_price(const struct everything *e, const struct bill *b,
					 const struct process_pace *p, char *text, size_t size)
{
	u32 max = e->zooms->options->max_cost * 10;

	if (p->permyriad > max)
		snprintf(text, size, "tracing costs it %s of a CPU, more than --max-cost %s",
			 human_percent(p->permyriad, 10000).text, human_percent(max, 10000).text);
	else
		snprintf(text, size,
			 "tracing costs all processes %s of a CPU, more than --max-cost %s of the machine",
			 human_percent(b->all, 10000).text, human_percent(max, 10000).text);
}

static void short_stacks(struct everything *e, const struct bill *b, const struct process_pace *p)
{
	char price[256];

	everything_price_write_price(e, b, p, price, sizeof(price));
	info("system: %s (pid %d): %s: stacks of all processes have %d frames from now on", p->comm,
	     (int)p->pid, price, PRICE_FEW_FRAMES);
	price_cut_stacks(e->session);
	e->saving = SAVING_FRAMES;
}

/* A pause after which @p pays on average what it may, with its traps in the pause. */
static u64 gap_for(const struct everything *e, const struct bill *b, const struct process_pace *p,
		   u32 machine, u64 now_ns)
{
	u32 max = e->zooms->options->max_cost * 10, trap = price_at(p, call_ns(e, true)), may = max;
	double gap;

	if (p->permyriad <= max)
		may = b->all - machine < p->permyriad ? p->permyriad - (b->all - machine) : 0;
	if (trap >= may)
		return longest_gap_ns;
	gap = (double)(now_ns - p->begin_ns) * (p->permyriad - may) / (may - trap);
	return gap > (double)longest_gap_ns ? longest_gap_ns : (u64)gap;
}

static void pause_one(struct everything *e, const struct bill *b, struct process_pace *p, u32 machine,
		      u64 now_ns)
{
	u64 gap_ns = gap_for(e, b, p, machine, now_ns);
	char price[256];

	everything_price_write_price(e, b, p, price, sizeof(price));
	if (session_pause_process(e->session, p->pid, now_ns, now_ns + gap_ns)) {
		debug("system: PID %d: it cannot be paused", (int)p->pid);
		return;
	}
	e->saving = SAVING_WINDOWS;
	info("system: leaves %s (pid %d): %s: it is traced again in %s", p->comm, (int)p->pid, price,
	     human_duration(gap_ns / SECOND_NS * SECOND_NS + SECOND_NS).text);
}

/* The traps of @p, which is paused, cost too much: only without its probes they end, and those are shared. */
static void leave_file(struct everything *e, struct process_pace *p)
{
	const struct module *m = session_file_of(e->session, p->pid);
	int err = m ? session_leave_file(e->session, m) : -ENOENT;

	if (err) {
		debug("system: PID %d: its probes stay: %s", (int)p->pid, strerror(-err));
		return;
	}
	warn("system: takes the probes out of %s: their traps cost %s (pid %d) %s of a CPU, more than --max-cost: "
	     "calls in this file are not seen any more, in no process",
	     path_name(m->path), p->comm, (int)p->pid, human_percent(p->permyriad, 10000).text);
	for (size_t i = 0, nr = 1; i < nr; i++) {
		struct process_pace *other = session_pace(e->session, i, &nr);

		if (other && session_file_of(e->session, other->pid) == m)
			other->calls_per_s = 0;
	}
}

static u32 limit_cpus(void)
{
	return (u32)sysconf(_SC_NPROCESSORS_ONLN);
}

static void everything_price_save(struct everything *e, const struct bill *b, u64 now_ns)
{
	u32 max = e->zooms->options->max_cost * 10;
	u32 machine = max * limit_cpus();
	bool is_over = b->all > machine;
	struct process_pace *p = b->dearest, *paused = b->paused;

	if (now_ns - e->saved_ns < judge_after_ns)
		return;
	if (paused && (paused->permyriad > max || (is_over && (!p || paused->permyriad > p->permyriad)))) {
		leave_file(e, paused);
		e->saved_ns = now_ns;
		return;
	}
	if (!p || (p->permyriad <= max && !is_over) || now_ns - p->begin_ns < judge_after_ns)
		return;
	if (e->saving == SAVING_NOTHING)
		short_stacks(e, b, p);
	else if (now_ns - p->begin_ns >= window_ns)
		pause_one(e, b, p, machine, now_ns);
	else
		return;
	e->saved_ns = now_ns;
}

enum { SAMPLE_NS = 5000 /* that a sample takes in the process */ };

/* @cost, and the limit, in ten-thousandths of a CPU. */
static void everything_price_bound(struct everything *e, u32 cost, u32 limit)
{
	u32 sum = sample_pace_sum(e->bill.sum, cost, limit), whole = 10000 * limit_cpus();
	bool can = session_limit_samples(e->session, sum), is_less = sum < e->bill.sum;

	if (can && is_less)
		info("system: samples cost %s of the machine, more than --max-cost %s: at most %u a second from now on",
		     human_percent(cost, whole).text, human_percent(limit, whole).text, sum);
	else if (cost > limit && !e->bill.is_told)
		warn("system: heaptap costs %s of the machine, more than --max-cost %s: %s",
		     human_percent(cost, whole).text, human_percent(limit, whole).text,
		     can ? "fewer samples would not change that; fewer processes would"
			 : "--sample auto would take fewer samples");
	e->bill.is_told |= cost > limit && !(can && is_less);
	e->bill.sum = can ? sum : e->bill.sum;
}

void everything_price_samples(struct everything *e, u64 now_ns, u64 cpu_ns, u64 events)
{
	struct sample_bill *b = &e->bill;
	u64 time_ns = now_ns - b->time_ns, cost_ns;

	if (b->time_ns && time_ns < window_ns)
		return;
	/* Events of processes that were dropped are missing. */
	cost_ns = cpu_ns - b->cpu_ns + (events > b->events ? (events - b->events) * SAMPLE_NS : 0);
	if (b->time_ns)
		everything_price_bound(e, (u32)(cost_ns * 10000 / time_ns),
				       e->zooms->options->max_cost * 10 * limit_cpus());
	else
		b->sum = SAMPLE_SUM;
	b->time_ns = now_ns;
	b->cpu_ns = cpu_ns;
	b->events = events;
}

void everything_price(struct everything *e, u64 now_ns)
{
	struct bill b;
	u32 max_cost = e->zooms->options->max_cost;

	/* The programs are measured for all processes together. */
	price_look(&e->price, e->session, now_ns);
	b = everything_price_look(e, now_ns);
	e->zooms->permyriad = b.all;
	if (max_cost && e->options.source.sample_bytes)
		everything_price_samples(e, now_ns, clock_ns(CLOCK_PROCESS_CPUTIME_ID),
					 session_events(e->session));
	else if (max_cost)
		everything_price_save(e, &b, now_ns);
}

static const u64 budget_ns = 500000000, answers_every_ns = 60000000000ULL;
static const u64 refuse_for_ns =
	600000000000ULL; /* what hinders code in a process may pass: another tracer */

/* The user has chosen processes, and @p, one of them, is not traced. One line is enough. */
static void tell_spared(struct everything *e, const struct watched *p, const char *why)
{
	if (e->zooms->options->is_chosen && !e->nr_spared++)
		warn("system: does not trace %s (pid %d), and processes like it: %s", p->comm, (int)p->pid,
		     why);
}

/* The name of @pid fits, and it is traced already. Does the rest of the choice fit? */
static bool is_chosen(void *ctx, pid_t pid)
{
	struct everything *e = ctx;
	const struct watch_choice *c = e->watch->choice;
	struct proc_stat stat;
	struct watched p;

	if (watch_identify(e->watch, pid, &p)) {
		const char *why = spare_reason(e->zooms->options->spare, &p);

		if (why)
			tell_spared(e, &p, why);
		return !why;
	}
	if (!proc_read_stat(&stat, pid) && stat.state != 'Z')
		return false;
	/* The process has ended. */
	if (!c->exes && !c->cgroups && !c->containers && !c->pids && !c->uids)
		return true;
	e->nr_unknown++;
	return false;
}

/*
 * Most programs have the C library of this machine, as heaptap has: put its probes in before the first chosen program
 * begins. In a static heaptap there is none.
 */
static void everything_prepare(const struct everything *e)
{
	pid_t pid = getauxval(AT_BASE) ? fork() : -1;

	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			pause();
	}
	if (pid < 0)
		return;
	session_prepare(e->session, pid);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

int everything_init(struct everything *e, struct zooms *z, const struct watch *w, u32 max, bool only_growing)
{
	struct epoll_event event = { .events = EPOLLIN };
	u64 nr, nr_left_out;
	int err;

	*e = (struct everything){ .zooms = z, .watch = w, .options = *z->options->session };
	e->only_growing = only_growing;
	e->max = max < EVERYTHING_MAX ? max : EVERYTHING_MAX;
	/* Processes that share probes are told apart by their PIDs, as followed children are. Code needs no probes. */
	if (!e->options.source.sample_bytes) {
		e->options.source.max_followed = e->max;
		e->options.source.chosen = w->choice->comms;
	}
	e->options.is_chosen = is_chosen;
	e->options.chosen_ctx = e;
	err = session_new(&e->session, &e->options, NULL, false);
	if (err) {
		e->session = NULL;
		return err;
	}
	if (!session_chosen(e->session, &nr, &nr_left_out))
		return 0;
	everything_prepare(e);
	/* The files of a short process can be read for a moment only. */
	if (epoll_ctl(z->epoll, EPOLL_CTL_ADD, session_wait_fd(e->session), &event))
		debug("system: epoll: %s", strerror(errno));
	return 0;
}

void everything_fini(struct everything *e)
{
	session_free(e->session);
}

/* The answer on @p, whose tracing begins now. */
static void everything_begin_answer(struct everything *e, struct watch *w, const struct watched *p)
{
	struct zoom_answer *a = zoom_new_answer(e->zooms, p);

	if (!a)
		return;
	zoom_say_begin(p);
	watch_measure_again(w, p->pid);
	zoom_begin_answer(a, p, w->now_ns);
}

/* Trace @p, unless it is spared. A child of a traced process is traced already. */
static void everything_begin(struct everything *e, struct watch *w, struct watched *p)
{
	const char *why = spare_reason(e->zooms->options->spare, p);

	if (why) {
		tell_spared(e, p, why);
		return;
	}
	/* A failure was logged. */
	if (session_attach(e->session, p->pid, false)) {
		p->refused_ns = w->now_ns + refuse_for_ns;
		p->is_tried = !e->options.source.sample_bytes;
		return;
	}
	e->nr_traced++;
	if (e->only_growing)
		everything_begin_answer(e, w, p);
}

/* Verdicts on processes that are traced because they grow. */
static void everything_judge(struct everything *e, const struct watch *w)
{
	for (u32 i = 0; i < e->zooms->nr_answers; i++) {
		struct zoom_answer *a = &e->zooms->answers[i];
		const struct watched *p = watch_find(w, a->pid);

		if (a->end_ns)
			continue;
		if (p && p->start_time == a->start_time && session_traces(e->session, a->pid)) {
			a->needs = watched_needs(p);
			a->bytes_per_s = p->line.bytes_per_s;
			if (w->now_ns >= zoom_next_verdict_ns(a))
				zoom_judge(e->zooms, a, e->session, true);
			continue;
		}
		if (!a->nr_verdicts && answer_take(a, e->session, a->pid))
			debug("system: no answer on PID %d", (int)a->pid);
		a->end_ns = w->now_ns;
	}
}

/* Is @p one of the processes to be traced? */
static bool everything_wants(const struct everything *e, const struct watched *p)
{
	return !e->only_growing || p->state == WATCHED_GROWS || e->zooms->options->is_chosen || p->is_asked;
}

/* Is there no room for @p now? Then another look may trace it. */
static bool is_too_many(struct everything *e, struct watched *p)
{
	bool is_full = e->nr_traced >= e->max;

	e->nr_left_out += is_full - p->is_left_out;
	p->is_left_out = is_full;
	return is_full;
}

static void everything_answer(struct everything *e, const struct watched *p)
{
	struct zoom_answer *a = p->state == WATCHED_QUIET ? NULL : zoom_new_answer(e->zooms, p);

	if (!a)
		return;
	if (a->pid != p->pid || a->start_time != p->start_time)
		zoom_begin_answer(a, p, p->first_ns);
	a->needs = watched_needs(p);
	a->bytes_per_s = p->line.bytes_per_s;
	if (answer_take(a, e->session, p->pid))
		debug("system: no answer on PID %d", (int)p->pid);
}

void everything_look(struct everything *e, struct watch *w)
{
	u64 end_ns = clock_now_ns() + budget_ns;

	if (!e->session)
		return;
	e->nr_traced = (u32)session_running(e->session);
	for (size_t i = 0; i < w->nr && clock_now_ns() < end_ns; i++) {
		struct watched *p = &w->list[i];

		/* A new process may be about to execute a program. */
		if (p->is_tried || p->is_new || w->now_ns < p->refused_ns || !everything_wants(e, p))
			continue;
		p->is_tried = session_traces(e->session, p->pid);
		if (p->is_tried || is_too_many(e, p))
			continue;
		p->is_tried = true;
		everything_begin(e, w, p);
	}
	if (e->nr_traced > e->nr_told)
		info("system: %u processes are traced", e->nr_traced);
	e->nr_told = e->nr_traced;
	e->nr_forgotten += session_drop_ended(e->session, EVERYTHING_MAX_ENDED, false);
	if (e->only_growing)
		everything_judge(e, w);
	everything_price(e, w->now_ns);
	if (e->only_growing || w->now_ns < e->next_answers_ns)
		return;
	e->next_answers_ns = w->now_ns + answers_every_ns;
	for (size_t i = 0; i < w->nr; i++)
		everything_answer(e, &w->list[i]);
}

void everything_poll(struct everything *e)
{
	if (e->session && session_poll(e->session))
		debug("system: no more events");
}

/* Say which processes can be missing because they were short. */
static void tell_missed(const struct everything *e, const struct watch *w)
{
	u64 nr_chosen, nr_left_out;

	if (!session_chosen(e->session, &nr_chosen, &nr_left_out)) {
		if (e->zooms->options->is_chosen && w->nr_missed)
			warn("system: %" PRIu64
			     " processes ended before heaptap could look at them, which it does once a "
			     "second: those that fit the choice are missing, unless their parents were traced",
			     w->nr_missed);
		return;
	}
	if (nr_chosen)
		info("system: %" PRIu64 " programs of the chosen names were traced from their exec on",
		     nr_chosen);
	if (nr_left_out + e->nr_unknown)
		warn("system: %" PRIu64
		     " programs of the chosen names were not traced: too many at a time, no room for their "
		     "events, or they ended before the rest of the choice could be asked",
		     nr_left_out + e->nr_unknown);
}

int everything_end(struct everything *e, const struct watch *w, struct outputs *outs)
{
	int err = 0;

	if (!e->session)
		return 0;
	if (e->nr_forgotten)
		warn("system: %" PRIu64
		     " traced processes that have ended are not in the report: the last %d are kept",
		     e->nr_forgotten, EVERYTHING_MAX_ENDED);
	tell_missed(e, w);
	if (e->nr_left_out)
		warn("system: %u processes were not traced: at most %u can be at a time", e->nr_left_out,
		     e->max);
	if (e->zooms->options->wants_scan && !control_is_cut(e->zooms->control))
		session_scan(e->session, NULL, true);
	session_stop(e->session);
	for (size_t i = 0; i < w->nr; i++)
		everything_answer(e, &w->list[i]);
	if (outs)
		err = session_show(e->session, 0, outputs_write_to, outs);
	return err;
}
