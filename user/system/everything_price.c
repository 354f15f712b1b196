/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Keeps the price of tracing everything low: short stacks, then windows of single processes, then fewer files. */
#include "user/system/everything_price.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "user/lib/clock.h"
#include "user/lib/human.h"
#include "user/lib/log.h"
#include "user/lib/path.h"
#include "user/session/session_live.h"
#include "user/session/session_pace.h"
#include "user/session/session_price.h"
#include "user/system/zoom_price.h"

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

static void everything_price_save(struct everything *e, const struct bill *b, u64 now_ns)
{
	u32 max = e->zooms->options->max_cost * 10;
	u32 machine = max * (u32)sysconf(_SC_NPROCESSORS_ONLN);
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

void everything_price(struct everything *e, u64 now_ns)
{
	struct bill b;

	/* The programs are measured for all processes together. */
	price_look(&e->price, e->session, now_ns);
	b = everything_price_look(e, now_ns);
	e->zooms->permyriad = b.all;
	if (e->zooms->options->max_cost)
		everything_price_save(e, &b, now_ns);
}
