/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Keeps the price of tracing low: shorter stacks, and windows. */
#include "user/system/zoom_price.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "user/lib/clock.h"
#include "user/lib/human.h"
#include "user/lib/log.h"
#include "user/session/session.h"
#include "user/session/session_code.h"
#include "user/session/session_live.h"
#include "user/session/session_pace.h"
#include "user/system/answer.h"

enum {
	FAR_TOO_DEAR = 20, /* times the limit: not even the first verdict is worth that */
};

static const u64 ahead_ns = 3 * SECOND_NS / 10; /* probes are out so much later: there is a verdict before */
static const u64 verdict_every_ns = 60 * SECOND_NS;

static const u64 judge_after_ns = 3 * SECOND_NS; /* a start is busier than what follows */
static const u64 longest_gap_ns = 3600 * SECOND_NS;

void price_cut_stacks(struct session *s)
{
	struct tuning t = session_tuning(s);

	if (t.depth <= PRICE_FEW_FRAMES)
		return;
	t.depth = PRICE_FEW_FRAMES;
	if (session_tune(s, &t))
		debug("system: the depth of stacks stays");
}

void zoom_save_again(struct zoom_answer *a, struct session *s)
{
	if (a->saving >= SAVING_FRAMES)
		price_cut_stacks(s);
	a->nr_windows += a->saving == SAVING_WINDOWS;
	if (a->nr_windows > 1)
		session_set_window(s, a->nr_windows, a->first_ns);
}

/* The most that all processes may cost, in ten-thousandths of a CPU. */
static double zoom_price_machine(const struct zooms *z)
{
	return z->options->max_cost * 10.0 * (double)sysconf(_SC_NPROCESSORS_ONLN);
}

/* "tracing costs it 12.0 % of a CPU, more than --max-cost 5 %"; it rests before the limit is reached, too */
static void zoom_price_write_price(const struct zooms *z, const struct zoom *zoom, char *text, size_t size)
{
	u32 max = z->options->max_cost * 10, own = zoom->price.permyriad > max ? zoom->price.permyriad : max;

	if (z->permyriad <= zoom_price_machine(z))
		snprintf(text, size, "tracing costs it %s of a CPU, more than --max-cost %s",
			 human_percent(own, 10000).text, human_percent(max, 10000).text);
	else
		snprintf(text, size,
			 "tracing costs all processes %s of a CPU, more than --max-cost %s of the machine",
			 human_percent(z->permyriad, 10000).text, human_percent(max, 10000).text);
}

static void zoom_leave_for(struct zooms *z, struct watch *w, u32 i, u64 gap_ns, u64 now_ns)
{
	struct zoom *zoom = &z->list[i];
	struct zoom_answer *a = zoom_answer_of(z, zoom);
	char price[256], why[384];

	zoom_price_write_price(z, zoom, price, sizeof(price));
	snprintf(why, sizeof(why), "%s: it is traced again in %s", price,
		 human_duration(gap_ns / SECOND_NS * SECOND_NS + SECOND_NS).text);
	if (a->saving != SAVING_WINDOWS)
		a->nr_windows = 1;
	a->saving = SAVING_WINDOWS;
	watch_refuse(w, zoom->pid, now_ns + gap_ns);
	/* There may be one window each six seconds. */
	zoom_leave(z, w, i, a->nr_windows == 1 ? why : NULL);
}

/* Leave it for so long that its price is right on average. */
static void leave_for_a_while(struct zooms *z, struct watch *w, u32 i, double times)
{
	double gap = (double)(w->now_ns - z->list[i].begin_ns) * (times - 1);

	zoom_leave_for(z, w, i, gap > (double)longest_gap_ns ? longest_gap_ns : (u64)gap, w->now_ns);
}

static void zoom_price_say_frames(const struct zooms *z, const struct zoom *zoom, const struct zoom_answer *a)
{
	char price[256];

	zoom_price_write_price(z, zoom, price, sizeof(price));
	info("system: %s (pid %d): %s: stacks have %d frames from now on", a->comm, (int)a->pid, price,
	     PRICE_FEW_FRAMES);
}

/* @times: the price by the limit. */
static void zoom_price_save(struct zooms *z, struct watch *w, u32 i, double times)
{
	struct zoom *zoom = &z->list[i];
	struct zoom_answer *a = zoom_answer_of(z, zoom);
	u64 since_ns = zoom->saved_ns ? zoom->saved_ns : zoom->begin_ns;

	if (w->now_ns - since_ns < judge_after_ns)
		return;
	if (a->saving == SAVING_NOTHING) {
		zoom_price_say_frames(z, zoom, a);
		price_cut_stacks(zoom->session);
		a->saving = SAVING_FRAMES;
		zoom->saved_ns = w->now_ns;
	} else if (a->nr_verdicts || times >= FAR_TOO_DEAR) {
		leave_for_a_while(z, w, i, times);
	}
}

static bool zoom_price_awaits_code(const struct zoom *zoom)
{
	size_t nr;
	const struct process_pace *pace = session_pace(zoom->session, 0, &nr);

	return pace && session_awaits_code(zoom->session, pace);
}

void zooms_price(struct zooms *z, struct watch *w)
{
	double machine = zoom_price_machine(z);
	u32 busiest = 0;

	z->permyriad = 0;
	for (u32 i = 0; i < z->nr; i++) {
		struct zoom *zoom = &z->list[i];

		price_look(&zoom->price, zoom->session, w->now_ns);
		zoom_answer_of(z, zoom)->permyriad = zoom->price.permyriad;
		z->permyriad += zoom->price.permyriad;
		if (zoom->price.permyriad > z->list[busiest].price.permyriad)
			busiest = i;
	}
	if (!z->options->max_cost || !z->nr)
		return;
	if (z->permyriad > machine && !zoom_price_awaits_code(&z->list[busiest]))
		zoom_price_save(z, w, busiest, z->permyriad / machine);
}

bool zoom_limit_look(struct zooms *z, struct watch *w, u32 i, u64 cost_ns, u64 now_ns)
{
	struct zoom *zoom = &z->list[i];
	struct zoom_answer *a = zoom_answer_of(z, zoom);
	u32 max = z->options->max_cost;
	u64 time_ns, gap_ns;

	zoom->book.is_of_cpu = true;
	cost_book_look(&zoom->book, now_ns, 0, cost_ns);
	if (!cost_book_must_rest(&zoom->book, max, ahead_ns))
		return false;
	time_ns = now_ns - zoom->begin_ns;
	time_ns = time_ns < COST_SPAN_NS ? time_ns : COST_SPAN_NS;
	zoom->price.permyriad = (u32)(cost_book_sum(&zoom->book) * 10000 / (time_ns ? time_ns : 1));
	a->permyriad = zoom->price.permyriad;
	if (a->saving == SAVING_NOTHING)
		zoom_price_say_frames(z, zoom, a);
	/* A window in five seconds, and each with a stop for a verdict, would be too many. */
	if (!a->time_ns || now_ns - a->time_ns >= verdict_every_ns)
		zoom_judge(z, a, zoom->session, false);
	else
		a->nr_verdicts++;
	gap_ns = cost_book_rest(&zoom->book, max);
	zoom_leave_for(z, w, i, gap_ns > longest_gap_ns ? longest_gap_ns : gap_ns, now_ns);
	return true;
}

void zooms_limit(struct zooms *z, struct watch *w, u64 now_ns)
{
	for (u32 i = z->nr; i-- > 0 && z->options->max_cost;) {
		struct zoom *zoom = &z->list[i];
		struct session_sums sums = session_sums(zoom->session, 0);
		u64 calls = sums.allocs + sums.frees, nr = calls >= zoom->calls ? calls - zoom->calls : calls;

		zoom->calls = calls;
		if (zoom_price_awaits_code(zoom))
			continue;
		zoom_limit_look(z, w, i, nr * price_call_ns(zoom->session), now_ns);
	}
}
