/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A tape of a heap: each block that came or went, in order, for reports that show events. In an unlinked file of TMPDIR
 * or /tmp, about 3 bytes for an event, because the events of a recording may be more than memory holds.
 */
#pragma once

#include "user/lib/types.h"

struct heap;
struct tape;

/*
 * One block that came or went. A mapping may go in pieces. An entry that is read has a slot, which stands for row and
 * bytes: they are set in an entry with is_new, and are the same in the following ones of this slot. So a reader looks
 * only few of them up.
 */
struct tape_entry {
	u64 time_ms; /* CLOCK_MONOTONIC; not less than that of the entry before */
	u64 bytes;
	u32 row; /* heap_row_get() */
	bool is_free;
	bool is_new; /* set by tape_next() */
	u32 slot;    /* set by tape_next(); below TAPE_SLOTS_MAX */
};

enum { TAPE_SLOTS_MAX = 9 << 14 };

/* An empty tape. *@out is owned by the caller: tape_free(). 0 or -ENOMEM. */
int tape_new(struct tape **out) __must_check;
void tape_free(struct tape *t); /* NULL is fine */

/* *@out is a copy, owned by the caller. Errors of files show in its tape_rewind(). 0 or -ENOMEM. */
int tape_copy(struct tape **out, struct tape *t) __must_check;

/* Append an entry. Errors show in tape_rewind(). */
void tape_put(struct tape *t, const struct tape_entry *e);

/* Remove all entries. */
void tape_reset(struct tape *t);

/* Read from the start. 0, or -errno: the tape is not complete. */
int tape_rewind(struct tape *t) __must_check;

/*
 * Read the next entry, its row and bytes only if it has is_new. 1; 0 at the end; or -EIO. No entry may be appended
 * between tape_rewind() and the last call.
 */
int tape_next(struct tape *t, struct tape_entry *e) __must_check;

/* Keep a tape of @h, from its first event on. 0 or -ENOMEM. */
int heap_keep_tape(struct heap *h) __must_check;
struct tape *heap_tape(const struct heap *h); /* borrowed; to be read; NULL = not kept */
