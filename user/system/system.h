/* SPDX-License-Identifier: GPL-2.0-or-later */
/* heaptap system: all processes of this machine, those that grow, and where. */
#pragma once

#include "user/system/dump.h"
#include "user/system/everything.h"
#include "user/system/watch.h"
#include "user/system/zoom.h"

/* Strings and lists are borrowed. */
struct system_options {
	struct watch_choice choice;
	u32 max_procs;	 /* that are watched at one time */
	u64 interval_ns; /* between rows */
	u32 top;	 /* processes in rows; 0 = all */
	bool wants_json; /* rows as lines of JSON */
	struct zoom_options zoom;
	struct dump_options dump;
	bool wants_everything;	/* trace all processes at once, and none alone */
	bool samples_growth;	/* likewise those that grow, or were chosen, by samples */
	bool dumps_at_interval; /* a report on each traced process with each row */
	const char *metrics;	/* where to serve them; NULL = nowhere */
	const char *push;	/* where to send profiles; NULL = nowhere */
};

/* The state, for whoever shows it. One thread owns it, and it changes between two calls of that thread. */
struct system_state {
	const struct system_options *options;
	struct watch watch;
	struct zooms zooms;
	struct dumps dumps;
	struct everything everything;
	u32 cpu_permyriad; /* of one CPU, that heaptap used in the last second */
	u64 start_ns;
};

/* Watch until @c says that it is over. An exit status, logged if it is not STATUS_DONE. */
int system_run(const struct system_options *o, struct control *c);
