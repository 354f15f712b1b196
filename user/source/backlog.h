/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Records put aside: the source is still read while a thread works on a heap that must not change. */
#pragma once

#include "user/source/source.h"

/* Records that have come in and were not handled yet, in their order. All zero: empty. */
struct backlog {
	u8 *bytes; /* owned; each record behind its length, at multiples of 8 */
	size_t used, size;
	u64 nr_dropped; /* for want of memory, ever */
};

void backlog_fini(struct backlog *b);

/* Keep a copy of @rec. A record that does not fit is counted. */
void backlog_add(struct backlog *b, const struct event_header *rec, size_t len);

/* True: put no more aside. Records are better left in the source, which counts losses by their kinds. */
bool backlog_is_full(const struct backlog *b);
/* True: it is half full, and what goes on meanwhile should come to an end. */
bool backlog_is_urgent(const struct backlog *b);

/* Hand all records to @sink, oldest first, and forget them, also after an error. 0 or the first error of @sink. */
int backlog_replay(struct backlog *b, const struct sink *sink) __must_check;

/*
 * Run @work in a thread, and @meanwhile every few ms in this one. The thread leaves the CPUs to others until @meanwhile
 * returns true, which means that the work is urgent, or until it gets hardly any time. Returns what @work returned.
 * Where there can be no thread, @work runs here.
 */
int backlog_work(int (*work)(void *arg), void *arg, bool (*meanwhile)(void *ctx), void *ctx) __must_check;
