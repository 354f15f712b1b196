/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Leak verdicts that arrive with a stream, record by record; for user/session/source_recording.c. */
#pragma once

#include "user/scan/leaks.h"
#include "user/scan/leaks_why.h"
#include "user/stream/stream_record.h"

struct stream_scan_row_key; /* the row of a caller */

/* Zero is idle. */
struct stream_scan_state {
	struct process *process; /* borrowed; NULL = idle */
	struct leaks *leaks;	 /* owned until its end */
	const struct session *session;
	bool is_exiting;
	struct stream_scan_row_key *keys; /* owned; of the rows, sorted */
	size_t nr_keys;
	size_t max_links, max_whys;
	struct leak_why *why; /* the chain whose steps arrive */
	u32 nr_steps;	      /* steps still to come */
};

void stream_scan_fini(struct stream_scan_state *st);

/*
 * In the order of a scan. @fn_of has the rows of functions in the allocator table. 0, -ENOMEM, or -EBADMSG for
 * impossible values. Callers that the heap does not have are left out.
 */
int stream_scan_begin(struct stream_scan_state *st, const struct session *s, struct process *p,
		      const struct stream_scan *rec) __must_check;
int stream_scan_row(struct stream_scan_state *st, const u16 *fn_of,
		    const struct stream_scan_row *rec) __must_check;
int stream_scan_link(struct stream_scan_state *st, const u16 *fn_of,
		     const struct stream_scan_link *rec) __must_check;
int stream_scan_why(struct stream_scan_state *st, const u16 *fn_of,
		    const struct stream_scan_why *rec) __must_check;
int stream_scan_step(struct stream_scan_state *st, const u16 *fn_of,
		     const struct stream_scan_step *rec) __must_check;

/* The process has the verdicts now. */
int stream_scan_end(struct stream_scan_state *st, struct session *s) __must_check;
