/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Live blocks by type: blocks that begin with a pointer to the same place of a file. */
#pragma once

#include "user/census/census.h"

struct census_type_row {
	taddr_t addr; /* that the blocks begin with */
	struct census_sum live, lost;
};

/* The types, those with the most bytes first. *@out is owned by the caller. 0 or -ENOMEM. */
int census_type_rows(struct census_type_row **out, size_t *nr, const struct census *c) __must_check;
