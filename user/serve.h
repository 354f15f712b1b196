/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What serve does for its client: commands in, a stream of events out. */
#pragma once

#include "user/launch.h"
#include "user/options.h"
#include "user/serve_link.h"
#include "user/serve_trace.h"

struct serve_scan;

struct serve {
	const struct options *options;
	struct options wanted; /* with what the client asked for */
	struct tuning tuning;  /* that its trace begins with */
	struct serve_link *link;
	u32 client; /* whose connection the trace writes to; 0 = nobody */

	/* While there is something to trace for. */
	const struct source_ops *ops;
	struct source *source;
	struct probe_custom *custom;
	struct serve_trace *trace;
	u64 lost_ms;  /* since when its client is away; 0 = it is there */
	u64 alive_ms; /* when it was last looked whether targets live */

	struct launch *launch; /* NULL: targets run already, or a client is waited for */
	bool is_launched;      /* the program has been started, with success or without */
	bool is_over;	       /* nothing more to serve */
	int status;
	struct serve_scan *scan; /* NULL = none is going on */
	bool wants_exit_scan;	 /* the client, of a program that ends */
};

enum { SERVE_KEEP_MS = 60000 }; /* how long targets stay traced for a client that was lost */

/* Take a frame of the client's. */
void serve_command(struct serve *s, const struct wire_frame *f);

/* One round: the program's news, the client's frames, events. */
void serve_round(struct serve *s);

/* Start the program of the command line; it waits for serve_start() if @is_traced. 0 or -errno. */
int serve_launch(struct serve *s) __must_check;

/* Take the probes out; the client is told why. */
void serve_stop(struct serve *s, enum wire_end why, const char *text);
