/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Chooses between breakpoints and code in a running process by the CPU time that breakpoints take. */
#include "user/session/code_choice.h"

#include <errno.h>
#include <string.h>

#include "user/lib/clock.h"
#include "user/lib/human.h"
#include "user/lib/log.h"
#include "user/session/session_code.h"
#include "user/session/session_live.h"
#include "user/session/session_pace.h"
#include "user/session/session_price.h"

#define MS 1000000ULL
/* The choice is told after so much time. What has cost little is forgotten after so much time, or so much CPU time. */
static const u64 enough_ns = 1000 * MS, longest_ns = 5000 * MS, enough_cpu_ns = 1000 * MS;
/* How often processes are looked at: at first, and later. */
static const u64 early_ns = 2000 * MS, early_look_ns = 20 * MS, look_ns = 200 * MS;

/* To stop a process while no thread of it is in a call. After each try it has twice the time until the next one. */
enum { MAX_TRIES = 10 };
static const u64 try_again_ns = 200 * MS;

/* A child of a process with code is stopped, and gets rings of its own (doc/inline.md, Children). */
static const u64 birth_ns = 15 * MS;

/* The time of a process since the last look. */
struct load {
	u64 calls, cpu_ns, time_ns, probes_ns; /* probes_ns: of cpu_ns, within SESSION_PRICE_TICKS_NS */
	u64 births_ns; /* that births of children would take more by code, with --follow */
};

/*
 * Have breakpoints cost more than they may? Nobody minds one part of a hundred of a CPU. Code must save more than it
 * takes: who makes a child each moment, as a shell does, keeps breakpoints.
 */
static bool code_choice_is_dear(const struct load *l, u32 max_cost)
{
	u64 sure_ns = l->probes_ns > SESSION_PRICE_TICKS_NS ? l->probes_ns - SESSION_PRICE_TICKS_NS : 0;

	return sure_ns * 1000 > l->cpu_ns * max_cost && sure_ns > l->time_ns / 100 && sure_ns > l->births_ns;
}

/* The part of @l's CPU time that went to breakpoints, and would go to code: then it has the time of those, too. */
static struct human probes_share(const struct load *l)
{
	return human_percent(l->probes_ns, l->cpu_ns ? l->cpu_ns : 1);
}

static void code_choice_tell(struct code_choice *c, const struct process_pace *pace, const struct load *l,
			     bool is_dear, bool is_code)
{
	char code[SESSION_PRICE_TEXT];
	u64 rate = l->time_ns ? (u64)((double)l->calls * 1e9 / (double)l->time_ns) : 0;

	if (!is_code && (is_dear ? c->has_told_dear : c->has_told))
		return;
	c->has_told = true;
	c->has_told_dear |= is_dear && !is_code;
	/* With --follow there may be a thousand children: one line tells of the first. */
	if (is_code)
		log_line(c->put && c->has_told_code ? LOG_DEBUG : LOG_INFO,
			 "auto: inline: %s (pid %d): %s calls a second cost it about %s of its CPU time by "
			 "breakpoints, and %s by code in it; --backend bpf puts none in",
			 pace->comm, (int)pace->pid, human_count(rate).text, probes_share(l).text,
			 session_price_by_code(code, l->calls, l->cpu_ns - l->probes_ns, l->cpu_ns));
	else if (l->probes_ns < SESSION_PRICE_TICKS_NS)
		info("auto: bpf: %s (pid %d): %s call%s a second cost it %s of CPU time in %s", pace->comm,
		     (int)pace->pid, human_count(rate).text, rate == 1 ? "" : "s",
		     human_duration(l->probes_ns).text, human_duration(l->time_ns).text);
	else
		info("auto: bpf: %s (pid %d): %s calls a second cost it about %s of its CPU time", pace->comm,
		     (int)pace->pid, human_count(rate).text, probes_share(l).text);
	c->has_told_code |= is_code;
}

static void code_choice_choose(struct code_choice *c, struct session *s, struct process_pace *pace,
			       const struct load *l, bool is_dear)
{
	int err = 1;

	if (is_dear)
		err = c->put ? c->put(c->ctx, s, pace->pid) : session_put_code(s, pace->pid);

	if (err < 0)
		debug("PID %d: breakpoints stay in it: %s", (int)pace->pid, strerror(-err));
	if (is_dear)
		pace->next_try_ns = clock_now_ns() + (try_again_ns << pace->nr_tries++);
	pace->is_settled = is_dear && (err != -EAGAIN || pace->nr_tries == MAX_TRIES);
	if (err != -EAGAIN || pace->is_settled)
		code_choice_tell(c, pace, l, is_dear, !err);
}

/*
 * The first calls of a program that a process with code executes are missed; those of one with breakpoints are not. A
 * process that has executed a program may do so again soon.
 */
static bool may_have_code(const struct process_pace *pace, u64 now_ns)
{
	return now_ns >= pace->next_try_ns && (!pace->is_image || now_ns - pace->seen_ns >= early_ns);
}

/* Look at one process. Its counts begin anew with another program, and with code. */
static void code_choice_look(struct code_choice *c, struct session *s, struct process_pace *pace, u64 now_ns,
			     u32 max_cost)
{
	const struct process_moment then = pace->last;
	struct process_moment now;
	bool is_too_dear;
	struct load l;

	if (!session_price_look(&now, pace->pid))
		return;
	now.calls = pace->calls;
	now.births = pace->nr_births;
	if (!then.time_ns)
		pace->seen_ns = now_ns;
	if (then.time_ns && now.calls >= then.calls) {
		l = (struct load){ .calls = now.calls - then.calls,
				   .cpu_ns = now.cpu_ns - then.cpu_ns,
				   .time_ns = now_ns - then.time_ns,
				   .births_ns = c->put ? (now.births - then.births) * birth_ns : 0,
				   .probes_ns = session_price(&then, &now, session_call_price(s)) };
		is_too_dear = may_have_code(pace, now_ns) && code_choice_is_dear(&l, max_cost);
		if (is_too_dear || l.time_ns >= enough_ns)
			code_choice_choose(c, s, pace, &l, is_too_dear);
		if ((l.calls || !c->has_told) && l.time_ns < longest_ns && l.cpu_ns < enough_cpu_ns)
			return;
	}
	pace->last = now;
}

void code_choice_round(struct code_choice *c, struct session *s, u32 max_cost, bool is_quiet)
{
	u64 now_ns = clock_now_ns();
	size_t nr = 1;

	if (!max_cost || now_ns < c->next_ns || !session_may_put_code(s))
		return;
	if (!c->begin_ns)
		*c = (struct code_choice){ .begin_ns = now_ns,
					   .has_told = is_quiet,
					   .has_told_dear = is_quiet,
					   .put = c->put,
					   .ctx = c->ctx };
	c->next_ns = now_ns + (now_ns < c->begin_ns + early_ns ? early_look_ns : look_ns);
	for (size_t i = 0; i < nr; i++) {
		struct process_pace *pace = session_pace(s, i, &nr);

		if (pace && session_awaits_code(s, pace))
			code_choice_look(c, s, pace, now_ns, max_cost);
	}
}
