/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Looks at what each process pays, and lets it rest. */
#include "user/session/cost_limit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "user/lib/array.h"
#include "user/lib/clock.h"
#include "user/lib/human.h"
#include "user/lib/log.h"
#include "user/session/cost_book.h"
#include "user/session/session.h"
#include "user/session/session_code.h"
#include "user/session/session_live.h"
#include "user/session/session_pace.h"
#include "user/session/session_price.h"
#include "user/source/call_price.h"

#define MS 1000000ULL
/* How often processes are looked at, and how long it takes to take probes out until that was measured. */
static const u64 look_ns = 10 * MS, ahead_ns = 60 * MS;
/* The part of a CPU that tracing may cost before looks must come that often. */
static const double near_rate = 0.01;

static struct cost_book *book_of(struct cost_limit *c, pid_t pid)
{
	for (size_t i = 0; i < c->nr; i++)
		if (c->books[i].pid == pid)
			return &c->books[i];
	if (array_reserve(c->books, c->max, c->nr + 1))
		return NULL;
	c->books[c->nr] = (struct cost_book){ .pid = pid };
	return &c->books[c->nr++];
}

/* Books of processes that have ended. */
static void cost_limit_sweep(struct cost_limit *c)
{
	struct process_moment now;

	for (size_t i = c->nr; i-- > 0;)
		if (!session_price_look(&now, c->books[i].pid))
			c->books[i] = c->books[--c->nr];
}

static void cost_limit_cut_stacks(struct cost_limit *c, struct session *s)
{
	struct tuning t = session_tuning(s);

	/* The depth is that of all processes, also of those that have code. */
	if (c->has_cut || t.depth <= COST_FEW_FRAMES ||
	    (c->is_default && !strcmp(session_backend(s), "inline")))
		return;
	c->has_cut = true;
	t.depth = COST_FEW_FRAMES;
	if (session_tune(s, &t))
		debug("the depth of stacks stays");
}

static void cost_limit_tell(struct cost_limit *c, const struct process_pace *pace, const struct cost_book *b)
{
	struct human limit = human_percent(c->max_cost, 1000);
	const char *all = c->is_default ? "; --max-cost 100% or --backend bpf traces all" : "";
	char few[48] = "";

	if (c->has_cut)
		snprintf(few, sizeof(few), "stacks have at most %d frames, and ", COST_FEW_FRAMES);
	if (b->is_left)
		warn("%s (pid %d): even a moment of tracing in 5 s costs it more than --max-cost %s: it is left: "
		     "its later calls are not seen%s",
		     pace->comm, (int)pace->pid, limit.text, all);
	else if (!c->has_told && !c->is_quiet)
		info("%s (pid %d): tracing costs it more than --max-cost %s of its CPU time: %sit is traced for a "
		     "moment of each 5 s; numbers are of the last one, and leaks are judged by the books of its "
		     "allocator, if heaptap can read those%s",
		     pace->comm, (int)pace->pid, limit.text, few, all);
	c->has_told = true;
}

static void cost_limit_pay_change(struct cost_book *b)
{
	struct process_moment now;

	if (session_price_look(&now, b->pid))
		cost_book_change(b, now.time_ns, now.cpu_ns);
}

static void cost_limit_let_rest(struct cost_limit *c, struct session *s, struct process_pace *pace,
				struct cost_book *b)
{
	u64 rest_ns;

	cost_limit_cut_stacks(c, s);
	if (session_pause_process(s, pace->pid, clock_now_ns(), UINT64_MAX)) {
		debug("PID %d: it cannot rest", (int)pace->pid);
		return;
	}
	pace->rests = true;
	cost_limit_pay_change(b);
	rest_ns = cost_book_rest(b, c->max_cost);
	if (!b->is_left)
		pace->until_ns = clock_now_ns() + rest_ns;
	cost_limit_tell(c, pace, b);
	debug("PID %d: rests: tracing took %llu us of %llu us", (int)pace->pid,
	      (unsigned long long)cost_book_sum(b) / 1000,
	      (unsigned long long)cost_book_may(b, c->max_cost) / 1000);
}

static void cost_limit_trace_again(struct session *s, const struct process_pace *pace, struct cost_book *b)
{
	if (session_resume_process(s, pace->pid, clock_now_ns()))
		debug("PID %d: it is not traced again", (int)pace->pid);
	cost_limit_pay_change(b);
	cost_book_open(b);
}

static u64 call_cost_ns(const struct session *s, const struct process_pace *pace)
{
	return pace->way == SOURCE_BY_CODE ? CALL_BY_CODE_NS : call_price_ns(session_call_price(s));
}

/* May the limit act on a process that is traced at this moment? A rest must end what it costs. */
static bool cost_limit_holds(const struct cost_limit *c, const struct session *s,
			     const struct process_pace *pace)
{
	return pace->way != SOURCE_BY_OTHERS && !(c->is_default && pace->way == SOURCE_BY_CODE) &&
	       !session_awaits_code(s, pace);
}

static void cost_limit_look(struct cost_limit *c, struct session *s, struct process_pace *pace)
{
	struct cost_book *b = book_of(c, pace->pid);
	struct process_moment now;
	u64 calls;

	if (!b || b->is_left || !session_price_look(&now, pace->pid))
		return;
	if (!b->begin_ns) {
		b->age_ns = session_price_age_ns(pace->pid);
		b->calls = 0;
		pace->first_ns = pace->begin_ns = now.time_ns;
	}
	/* With another program, and after a rest, its counts begin anew. */
	calls = pace->until_ns ? 0 : pace->calls >= b->calls ? pace->calls - b->calls : pace->calls;
	b->calls = pace->calls;
	cost_book_look(b, now.time_ns, now.cpu_ns, calls * call_cost_ns(s, pace));
	c->is_near |= !pace->until_ns && cost_limit_holds(c, s, pace) && b->rate > near_rate;
	if (pace->until_ns && now.time_ns >= pace->until_ns)
		cost_limit_trace_again(s, pace, b);
	else if (!pace->until_ns && cost_limit_holds(c, s, pace) &&
		 cost_book_must_rest(b, c->max_cost, ahead_ns))
		cost_limit_let_rest(c, s, pace, b);
}

void cost_limit_round(struct cost_limit *c, struct session *s)
{
	u64 now_ns = clock_now_ns();
	size_t nr = 1;

	if (!c->max_cost || now_ns < c->next_ns)
		return;
	c->next_ns = now_ns + look_ns;
	c->is_near = false;
	for (size_t i = 0; i < nr; i++) {
		struct process_pace *pace = session_pace(s, i, &nr);

		if (pace)
			cost_limit_look(c, s, pace);
	}
	if (c->nr > 2 * nr)
		cost_limit_sweep(c);
}

void cost_limit_fini(struct cost_limit *c)
{
	free(c->books);
	c->books = NULL;
}
