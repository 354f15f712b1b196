/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Measures on this machine what a call costs by the probes of a trace that is over. */
#include "user/cli/attach_price.h"

#include <string.h>

#include "user/cli/options.h"
#include "user/cli/options_rooms.h"
#include "user/inject/piece_object.h"
#include "user/session/session_live.h"
#include "user/session/session_runs.h"
#include "user/source/call_price.h"
#include "user/source/source_open.h"
#include "user/system/price.h"

enum {
	SHARE = 5, /* one part of so many of the time is much, for a report */
	MOST_CALL_NS =
		5000, /* for that, to measure takes time: only where probes of this price take so much */
	LEAST_CPU_NS = 300 * 1000 * 1000, /* in a short time nobody minds them */
};

static int measure_call(struct price_of_call *price, const struct options *o)
{
	struct session_options options = options_session(o);

	/* A session of its own, which nobody sees. */
	options.source.backend = BACKEND_BPF;
	options.recorder = (struct recorder_options){ 0 };
	options.scan = SCAN_NEVER;
	return price_measure(price, &options);
}

static bool may_tell(const struct options *o, const struct session *s)
{
	return o->backend == BACKEND_AUTO && !o->follow && piece_object_bytes() &&
	       !strcmp(session_backend(s), "bpf");
}

void attach_price_begin(const struct options *o, struct session *s)
{
	if (may_tell(o, s))
		session_measure_runs(s);
}

/* The part of their CPU time that the processes spent in probes, in thousandths. */
static u64 probes_permille(const struct price_of_call *price, const struct session_runs *runs,
			   const struct session_load *load)
{
	u64 ns = load->events * (price->trap_ns + price->program_ns), cpu_ns = load->cpu_ns;

	/* A call of a program may have several traps, and longer stacks than that of the child. */
	if (runs->cpu_ns && price->one_trap_ns) {
		ns = price_of_runs(price, &runs->probes);
		cpu_ns = runs->cpu_ns;
	}
	/* The measurement suffers from other load. */
	return ns < cpu_ns ? ns * 1000 / cpu_ns : 1000;
}

void attach_price_end(const struct options *o, struct session *s)
{
	const struct session_runs runs = session_runs(s);
	struct session_load load = session_load(s);
	struct session_prices prices;
	struct price_of_call price;

	if (!may_tell(o, s) || load.cpu_ns < LEAST_CPU_NS ||
	    load.events * MOST_CALL_NS < load.cpu_ns / SHARE || measure_call(&price, o))
		return;
	prices.permille = (u32)probes_permille(&price, &runs, &load);
	if (prices.permille < 1000 / SHARE)
		return;
	prices.call_ns = load.cpu_ns / 1000 * prices.permille / load.events;
	/* A child of heaptap is under its filter, and so cannot be measured by inline. */
	prices.inline_call_ns = CALL_BY_CODE_NS;
	session_set_prices(s, &prices);
}
