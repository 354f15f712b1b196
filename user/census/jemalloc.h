/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A walk through the books of jemalloc (user/scan/jemalloc_tree.h). For user/census/jemalloc*.c only. */
#pragma once

#include "user/census/census_runs.h"
#include "user/scan/jemalloc_tree.h"

struct jemalloc_books {
	struct census_walk *w;
	struct jemalloc_tree tree;
	taddr_t last; /* description of the extent that was added last */
	struct census_runs runs;
	u32 *arenas; /* owned; by jemalloc's number: index in out->arenas, plus 1 */
};

/* user/census/jemalloc_cached.c */
/* Mark the blocks in the caches of threads as free, and these caches as the allocator's own. 0, -ENOMEM, -ETIME. */
int jemalloc_mark_cached(struct jemalloc_books *j) __must_check;
