/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Count only the blocks of a span of time, for reports on a part of a recording. */
#include <string.h>

#include "user/heap/heap_private.h"

/*
 * Each caller gets a new row at the start and at the end of the span. The row of a block then says whether the block
 * was allocated within the span, and blocks need no field for that.
 */
void heap_span_begin(struct heap *h)
{
	h->outside_bytes = h->totals.live_bytes;
	h->totals = (struct heap_totals){ .first_time_ns = h->totals.first_time_ns,
					  .last_time_ns = h->totals.last_time_ns };
	timeline_reset(&h->timeline);
	thread_table_fini(&h->threads);
	if (HAS_TAPE && h->tape)
		tape_reset(h->tape);
	if (HAS_SLICES && h->slices)
		slices_reset(h->slices);
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
