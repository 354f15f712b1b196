/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Leak verdicts as they come in with a stream, record by record. For source_recording.c. */
#pragma once

#include "user/leaks.h"
#include "user/leaks_why.h"
#include "user/stream_record.h"

struct process;
struct session;

struct stream_scan_row_key; /* where a caller's row is */

/* Zero is idle. */
struct stream_scan_state {
	struct process *process; /* borrowed; NULL = idle */
	struct leaks *leaks;	 /* owned until its end */
	const struct session *session;
	bool is_exiting;
	struct stream_scan_row_key *keys; /* owned; of the rows, sorted */
	size_t nr_keys;
	size_t max_links, max_whys;
	struct leak_why *why; /* whose steps come in */
	u32 nr_steps;	      /* still to come */
};

void stream_scan_fini(struct stream_scan_state *st);

/*
 * In the order of a scan; @fn_of are the functions' rows here. 0, -ENOMEM, or -EBADMSG for what cannot be. Callers
 * that the books do not have are left out.
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
