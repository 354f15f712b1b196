/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Records put aside: the source is read on while a thread works on books that must not change. */
#pragma once

#include "user/source.h"

/* Records that have come in and are not entered yet, in their order. Zero is empty. */
struct backlog {
	u8 *bytes; /* owned; each record behind its length, at multiples of 8 */
	size_t used, size;
	u64 nr_dropped; /* for want of memory, ever */
};

void backlog_fini(struct backlog *b);

/* Keep a copy of @rec. What does not fit is counted. */
void backlog_add(struct backlog *b, const struct event_header *rec, size_t len);

/* No more should be put aside: what the source holds is better left there, where losses are counted apart. */
bool backlog_is_full(const struct backlog *b);

/* Hand all records to @sink, oldest first, and forget them. 0 or the first error of @sink; none is left then either. */
int backlog_replay(struct backlog *b, const struct sink *sink) __must_check;

/*
 * Run @work in a thread, and @meanwhile every few ms in this one. Returns what @work returned. Where there can be no
 * thread, @work runs here.
 */
int backlog_work(int (*work)(void *arg), void *arg, void (*meanwhile)(void *ctx), void *ctx) __must_check;
