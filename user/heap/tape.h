/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A tape of a heap: each block that came or went, in order, for reports that show events. In an unlinked file of TMPDIR
 * or /tmp, because the events of a recording may be more than memory holds.
 */
#pragma once

#include "user/lib/types.h"

struct heap;
struct tape;

/* One block that came or went. A mapping may go in pieces. */
struct tape_entry {
	u64 time_ms; /* CLOCK_MONOTONIC; not less than that of the entry before */
	u64 bytes;
	u32 row; /* heap_row_get() */
	bool is_free;
};

/* Events have kinds: a row and a number of bytes. They are numbered from 0; some row and bytes have several numbers. */
enum tape_what {
	TAPE_EVENTS, /* the next events, of the kinds so far */
	TAPE_KIND,   /* the next kind */
	TAPE_TIME,   /* the time of the following events */
};

/* A part of a tape that is read. */
struct tape_part {
	enum tape_what what;
	/* TAPE_EVENTS: whole lines, "+ 1f" for a block of kind 31 that came and "- 1f" if one went. Borrowed. */
	const char *lines;
	size_t len;
	/* TAPE_KIND */
	u64 bytes;
	u32 row;
	u64 time_ms; /* TAPE_TIME */
};

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

/* Read the next part; its lines last until the next call. 1; 0 at the end; -EIO. Nothing may be appended meanwhile. */
int tape_next(struct tape *t, struct tape_part *p) __must_check;

/* Keep a tape of @h, from its first event on. 0 or -ENOMEM. */
int heap_keep_tape(struct heap *h) __must_check;
struct tape *heap_tape(const struct heap *h); /* borrowed; to be read; NULL = not kept */
