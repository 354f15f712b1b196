/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Ids of callers that are the same in the next run of a program: made of places in files, and of no address. */
#pragma once

#include "user/report/report.h"

/* The ids of the callers of one process. No two of them are equal. All zero: none. */
struct caller_ids {
	u64 *list; /* owned; by row of the heap */
	size_t nr;
	u64 nr_changed; /* callers that have another id, because theirs was taken */
};

/*
 * Compute the ids of all rows of @p: a hash of the allocator function's name, and of build ID (or path) and offset of
 * each frame. A frame in no file counts with its address, which the next run may have elsewhere. 0 or -ENOMEM.
 */
int caller_ids_init(struct caller_ids *ids, const struct report *r,
		    const struct report_process *p) __must_check;
void caller_ids_fini(struct caller_ids *ids);

/* The id of the caller in row @row of the heap; 0 for a row that came later. */
u64 caller_id(const struct caller_ids *ids, u32 row);

enum { CALLER_ID_TEXT = 17 /* bytes of the text of an id, with its end */ };

/* The id as 16 hexadecimal digits, as all reports have it. */
void caller_id_text(const struct caller_ids *ids, u32 row, char text[CALLER_ID_TEXT]);
