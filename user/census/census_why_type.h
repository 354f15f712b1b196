/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The roots that hold the blocks of a type, each with the chain to one of them. */
#pragma once

#include <stdio.h>

#include "user/census/census_names.h"
#include "user/lib/json.h"

/*
 * Write the roots that hold blocks of the type @type, the name of a class, of a variable or a string that blocks begin
 * with; if there is none, of all types whose names contain @type. At most @top roots and at most 100. 0 or -ENOMEM.
 */
int census_why_type_text(FILE *out, const struct census *c, struct census_names *n, const char *type,
			 u32 top) __must_check;
int census_why_type_json(struct json *j, const struct census *c, struct census_names *n, const char *type,
			 u32 top) __must_check;
