/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Chooses the first way to see the calls of a running process by a count of a moment. */
#include "user/source/inline_count.h"

#include <string.h>

#include "user/lib/human.h"
#include "user/lib/log.h"
#include "user/lib/proc.h"
#include "user/source/call_price.h"
#include "user/source/inline_source.h"
#include "user/source/inline_target.h"

/*
 * The count is of a moment, in which there may have been more calls than later. Where breakpoints would take less than
 * so much of a CPU, in thousandths, they are put in, and watched (user/session/code_choice.h).
 */
enum { SURE_PERMILLE = 30 };

/* False also where it is not known, or where nothing else is possible. */
static bool inline_count_is_dear(const struct inline_source *s, struct target *t, struct inline_target *known,
				 struct call_rate *rate)
{
	u64 ns;
	int err;

	if (!s->options.max_cost || !s->may_decline || proc_reader(t->pid) != t->pid)
		return false;
	known->is_counting = true;
	err = source_bpf_count(s->below, t, rate);
	known->is_counting = false;
	if (err) {
		debug("inline: PID %d: its calls are not counted: %s", t->pid, strerror(-err));
		return false;
	}
	ns = rate->calls * s->breakpoint_ns;
	debug("inline: PID %d: %llu calls in %llu us, %llu us of CPU time in %llu us", t->pid,
	      (unsigned long long)rate->calls, (unsigned long long)rate->time_ns / 1000,
	      (unsigned long long)rate->own_ns / 1000, (unsigned long long)rate->own_time_ns / 1000);
	return ns * 1000 > rate->time_ns * SURE_PERMILLE &&
	       call_price_permille(rate, s->breakpoint_ns) > s->options.max_cost;
}

int inline_count_begin(struct inline_source *s, struct target *t)
{
	struct call_rate rate = { 0 };
	int err = inline_source_add(s, t->pid, t->start_time);
	struct inline_target *new = inline_source_find(s, t->pid);

	if (err)
		return err;
	new->sight = INLINE_AWAITS_CODE;
	if (!inline_count_is_dear(s, t, new, &rate))
		return 0;
	/* Code can still come later. */
	err = inline_waker_start(&s->waker);
	if (err) {
		debug("inline: PID %d: no thread for its rings: %s", t->pid, strerror(-err));
		return 0;
	}
	new->sight = INLINE_SEES;
	new->rate = rate;
	return 0;
}

/* A busy process was held up by the traps of the count: it makes more calls without them. */
void inline_count_tell(const struct inline_source *s, const struct target *t, const struct call_rate *rate)
{
	info("auto: inline: %s (pid %d): at least %s calls a second, which would cost it %s of its CPU time or more "
	     "by breakpoints; code in it takes some %d ns a call; --backend bpf puts none in",
	     t->comm, (int)t->pid, human_count(call_rate_per_s(rate)).text,
	     human_percent(call_price_permille(rate, s->breakpoint_ns), 1000).text, CALL_BY_CODE_NS);
}
