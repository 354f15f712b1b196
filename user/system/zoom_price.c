/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Keeps the price of tracing low: shorter stacks, then windows, then none. */
#include "user/system/zoom_price.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "user/lib/human.h"
#include "user/lib/log.h"
#include "user/session/session.h"
#include "user/session/session_live.h"

#define SECOND_NS 1000000000ULL

enum {
	FAR_TOO_DEAR = 20, /* times the limit: not even the first verdict is worth that */
};

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

/* "costs it 12.0 % of a CPU, more than --max-cost 5 %" */
static void zoom_price_write_price(const struct zooms *z, const struct zoom *zoom, char *text, size_t size)
{
	u32 max = z->options->max_cost * 10;

	if (zoom->price.permyriad > max)
		snprintf(text, size, "tracing costs it %s of a CPU, more than --max-cost %s",
			 human_percent(zoom->price.permyriad, 10000).text, human_percent(max, 10000).text);
	else
		snprintf(text, size,
			 "tracing costs all processes %s of a CPU, more than --max-cost %s of the machine",
			 human_percent(z->permyriad, 10000).text, human_percent(max, 10000).text);
}

/* Leave it for so long that its price is right on average. */
static void leave_for_a_while(struct zooms *z, struct watch *w, u32 i, double times)
{
	struct zoom *zoom = &z->list[i];
	struct zoom_answer *a = zoom_answer_of(z, zoom);
	u64 window_ns = w->now_ns - zoom->begin_ns;
	double gap = (double)window_ns * (times - 1);
	u64 gap_ns = gap > (double)longest_gap_ns ? longest_gap_ns : (u64)gap;
	char price[256], why[384];

	zoom_price_write_price(z, zoom, price, sizeof(price));
	snprintf(why, sizeof(why), "%s: it is traced again in %s", price,
		 human_duration(gap_ns / SECOND_NS * SECOND_NS + SECOND_NS).text);
	if (a->saving != SAVING_WINDOWS)
		a->nr_windows = 1;
	a->saving = SAVING_WINDOWS;
	watch_refuse(w, zoom->pid, w->now_ns + gap_ns);
	zoom_leave(z, w, i, why);
}

/* @times: the price by the limit. */
static void zoom_price_save(struct zooms *z, struct watch *w, u32 i, double times)
{
	struct zoom *zoom = &z->list[i];
	struct zoom_answer *a = zoom_answer_of(z, zoom);
	u64 since_ns = zoom->saved_ns ? zoom->saved_ns : zoom->begin_ns;
	char price[256];

	if (w->now_ns - since_ns < judge_after_ns)
		return;
	if (a->saving == SAVING_NOTHING) {
		zoom_price_write_price(z, zoom, price, sizeof(price));
		info("system: %s (pid %d): %s: stacks have %d frames from now on", a->comm, (int)a->pid,
		     price, PRICE_FEW_FRAMES);
		price_cut_stacks(zoom->session);
		a->saving = SAVING_FRAMES;
		zoom->saved_ns = w->now_ns;
	} else if (a->nr_verdicts || times >= FAR_TOO_DEAR) {
		leave_for_a_while(z, w, i, times);
	}
}

void zooms_price(struct zooms *z, struct watch *w)
{
	double max = z->options->max_cost * 10.0, machine = max * (double)sysconf(_SC_NPROCESSORS_ONLN);
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
	if (z->list[busiest].price.permyriad > max)
		zoom_price_save(z, w, busiest, z->list[busiest].price.permyriad / max);
	else if (z->permyriad > machine)
		zoom_price_save(z, w, busiest, z->permyriad / machine);
}
