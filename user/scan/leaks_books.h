/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Verdicts on sampled blocks by those on all blocks of the process, which the books of its allocator list. */
#pragma once

#include "user/scan/scan.h"

/* Sums for reports. All zero: no books could be read. */
struct leak_books {
	char allocator[16];    /* escaped */
	struct scan_sums sums; /* of all blocks, also those from before the trace */
	struct scan_sum
		since; /* the lost ones of them at addresses that the trace knows: not from before it */
};

/* The blocks in the books, and how to judge them. */
struct leaks_listed {
	struct scan_books books;
	const char *allocator; /* static */
	u32 slack;	       /* scan_options */
	bool is_partial, has_others;
};

/* A reader of the books. */
struct leaks_lister {
	void *ctx;
	/*
	 * List the blocks at the moment of @snap, in any thread; *@out holds until the next call. @is_last: no further
	 * call can find other books. 0; -ENOENT there are no books that heaptap knows; -EBUSY a thread is changing
	 * them, so that another moment is better; -ETIME after @deadline_ns; -ENOMEM.
	 */
	int (*list)(void *ctx, struct snapshot *snap, u64 deadline_ns, bool is_last,
		    struct leaks_listed *out);
};

/* After scan_new() of both: 0; -ENOENT @all, whose books are others, does not have most blocks of @s; -ENOMEM. */
int scan_is_listed(struct scan *s, const struct scan *all) __must_check;

/*
 * In place of scan_read() and scan_judge() of @s, whose books have some of the blocks of @all: a block has the verdict
 * that it has in @all, and each lost block counts as definite, because its leader need not be in @s. Blocks that @all
 * does not have are unsure. After scan_is_listed().
 */
void scan_judge_by(struct scan *s, const struct scan *all);

/* After scan_is_listed(): the lost blocks of @all where @s has one, be it still the same or a later one. */
struct scan_sum scan_lost_by(const struct scan *s, const struct scan *all);
