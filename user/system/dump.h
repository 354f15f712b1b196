/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Heap reports on traced processes: now and then, on request, and when a process needs or grows too much. */
#pragma once

#include "user/report/output.h"
#include "user/system/zoom.h"

struct dump_options {
	const struct output_options *output; /* borrowed */
	bool wants_scan;
	u64 max_bytes;	/* that a process may need; 0 = no rule */
	u32 max_growth; /* tenths of a percent an hour; 0 = no rule */
};

struct dumps {
	const struct dump_options *options; /* borrowed */
	struct outputs *outs;		    /* owned; NULL = no reports */
	struct session *all; /* borrowed; traces all processes (everything.h), NULL = none does */
	bool awaits_verdicts; /* of @all: a process is traced since it grows, and has nothing to report at first */
	bool has_failed;
};

/* Prepares the outputs; without names reports go to standard output, if @has_stdout. 0 or -errno, logged. */
int dumps_init(struct dumps *d, const struct dump_options *options, bool has_stdout) __must_check;
void dumps_fini(struct dumps *d);

/* After zooms_decide(): ask for processes that meet a rule to be traced, and report on those that have a verdict. */
void dumps_look(struct dumps *d, struct watch *w, struct zooms *z);

/* Report on all processes that are traced now, with new verdicts. */
void dumps_write_all(struct dumps *d, struct zooms *z);

/* zoom_end_fn of a struct dumps @ctx: report on a process that is left, if there are files for it. */
void dumps_write_last(void *ctx, struct session *s);
