/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Live blocks by owner: the variable, stack or register from which the program reaches them. */
#pragma once

#include "user/census/census_names.h"

struct census_owner_row {
	struct census_name name;
	struct census_sum held;
	u32 number; /* for user/census/census_owners.c */
};

/*
 * The rows, those with the most bytes first; none without verdicts. Roots beyond a limit are summed up in a row of kind
 * "unknown". *@out is owned by the caller: free(). *@of, unless @of is NULL, has for each block of the scan, by
 * scan_block_info.index, the index of its row, or SCAN_NO_OWNER; owned by the caller, NULL without verdicts. 0 or
 * -ENOMEM.
 */
int census_owner_rows(struct census_owner_row **out, size_t *nr, const struct census *c,
		      struct census_names *names, u32 **of) __must_check;

/* The words for an owner, as in the text report: "data cache in /usr/bin/x". */
enum { CENSUS_OWNER_TEXT = 480 };
void census_owner_text(const struct census_owner_row *row, char *text);
