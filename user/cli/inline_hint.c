/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Measures on this machine what a call costs by the probes of a trace that is over. */
#include "user/cli/inline_hint.h"

#include <string.h>

#include "user/cli/options.h"
#include "user/cli/options_rooms.h"
#include "user/inject/piece_object.h"
#include "user/lib/log.h"
#include "user/session/session_live.h"
#include "user/source/source_open.h"
#include "user/system/price.h"

enum {
	SHARE = 5,	     /* one part of so many of the time is much */
	MOST_CALL_NS = 5000, /* to measure takes time: only where probes of this price take so much */
	LEAST_CPU_NS = 300 * 1000 * 1000, /* in a short time nobody minds them */
	/* As doc/performance.md has it. A child of heaptap is under its filter, and so cannot be measured. */
	INLINE_CALL_NS = 100,
};

/* 0 = not known. */
static u64 call_ns(const struct session_options *so)
{
	struct session_options options = *so;
	struct price_of_call price;

	/* A session of its own, which nobody sees. */
	options.source.backend = BACKEND_BPF;
	options.recorder = (struct recorder_options){ 0 };
	options.scan = SCAN_NEVER;
	if (price_measure(&price, &options))
		return 0;
	return price.trap_ns + price.program_ns;
}

void inline_hint_measure(const struct options *o, struct session *s)
{
	const struct session_options so = options_session(o);
	struct session_load load = session_load(s);
	struct session_prices prices;

	if (o->backend != BACKEND_AUTO || o->follow || !piece_object_bytes() ||
	    strcmp(session_backend(s), "bpf"))
		return;
	if (load.cpu_ns < LEAST_CPU_NS || load.events * MOST_CALL_NS < load.cpu_ns / SHARE)
		return;
	prices.call_ns = call_ns(&so);
	/* The measurement suffers from other load. */
	if (prices.call_ns > load.cpu_ns / load.events)
		prices.call_ns = load.cpu_ns / load.events;
	if (load.events * prices.call_ns < load.cpu_ns / SHARE)
		return;
	prices.inline_call_ns = INLINE_CALL_NS;
	prices.permille = load.events * prices.call_ns / (load.cpu_ns / 1000 + 1);
	session_set_prices(s, &prices);
}
