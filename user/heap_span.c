/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The books of a stretch of time: for reports on what was allocated between two moments of a recording. */
#include <string.h>

#include "user/heap_private.h"

/*
 * Each caller gets a new row, and the number of a block's row tells when it was allocated: nothing is kept for a span
 * that blocks do not have anyway.
 */
void heap_span_begin(struct heap *h)
{
	h->outside_bytes = h->totals.live_bytes;
	h->totals = (struct heap_totals){ .first_time_ns = h->totals.first_time_ns,
					  .last_time_ns = h->totals.last_time_ns };
	memset(h->calls, 0, sizeof(h->calls));
	row_table_begin_anew(&h->rows);
	h->first_row = h->rows.first;
}

void heap_span_end(struct heap *h)
{
	row_table_begin_anew(&h->rows);
	h->end_row = h->rows.first;
	h->is_past = true;
}
