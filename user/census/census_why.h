/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The chain of pointers to a block of a census, from its root or from the block that lost it. */
#pragma once

#include <stdio.h>

#include "user/census/census_names.h"
#include "user/lib/json.h"

/* Write the chain of pointers to the block that contains @addr. 0 or -ENOMEM. */
int census_why_text(FILE *out, const struct census *c, struct census_names *n, taddr_t addr) __must_check;
int census_why_json(struct json *j, const struct census *c, struct census_names *n,
		    taddr_t addr) __must_check;
