/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Live blocks by owner: the variable, stack or register from which the program reaches them. */
#pragma once

#include "user/census/census_names.h"

struct census_owner_row {
	struct census_name name;
	struct census_sum held;
};

/*
 * The rows, those with the most bytes first; none without verdicts. Roots beyond a limit are summed up in a row of kind
 * "unknown". *@out is owned by the caller: free(). 0 or -ENOMEM.
 */
int census_owner_rows(struct census_owner_row **out, size_t *nr, const struct census *c,
		      struct census_names *names) __must_check;
