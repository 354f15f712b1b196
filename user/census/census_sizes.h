/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Live blocks by size, with the verdicts on them. */
#pragma once

#include "user/census/census.h"

struct census_size {
	u64 size; /* bytes that the program may use */
	struct census_sum live, lost;
};

/*
 * The sizes of live blocks, those with the most bytes first. *@out is owned by the caller. 0 or -ENOMEM.
 */
int census_sizes(struct census_size **out, size_t *nr, const struct census *c) __must_check;
