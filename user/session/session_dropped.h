/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Inside of a session: what stays of processes that have ended and left its books, session_drop_ended(). */
#pragma once

#include "user/scan/scan_result.h"

struct process;
struct session;

/* The sums of some of them. */
struct dropped {
	u64 nr, allocs, frees;
	u64 live_bytes, live_blocks; /* at their ends */
	u64 lost;		     /* events and stacks */
	u64 unfollowed;		     /* their children that were not traced */
};

/* The findings that the rules of --fail-on look at. */
struct session_found {
	struct scan_sum lost, with; /* for sure; and only they lead to these */
	struct scan_sum
		maybe_old;  /* of both: blocks that only the books know, which may be from before the trace */
	u64 nr_misuses;	    /* wrong releases */
	u32 growth;	    /* the most that a process grew, trend_permille() */
	size_t nr_unjudged; /* processes without a verdict */
	size_t nr_unwatched; /* processes in which nothing could be watched */
	size_t nr_rested;    /* process_saw_few() */
	size_t nr_parents;   /* processes with children whose calls nobody sees */
};

/* Add the findings in @p, whose suppressions were applied, to @f. */
void session_count_findings(const struct process *p, struct session_found *f);

/* Leave out what suppressions match in the verdict of @p, if it has one. 0 or -ENOMEM. */
int session_suppress(struct session *s, struct process *p) __must_check;
