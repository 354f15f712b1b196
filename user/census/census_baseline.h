/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Growth since an earlier census, which was saved as JSON. */
#pragma once

#include <stdio.h>

#include "user/lib/json.h"

struct census;
struct census_baseline;
struct census_names;

/*
 * Read the census in the file at @path. *@out is owned by the caller: census_baseline_free(). 0; -EBADMSG it is no
 * census in JSON; -EFBIG above 256 MiB; -ENOMEM or -errno.
 */
int census_baseline_new(struct census_baseline **out, const char *path) __must_check;
void census_baseline_free(struct census_baseline *b); /* NULL is fine */

/* Write the growth of @c: in all, by type, by size and by owner, at most @top rows each (0 = all). 0 or -ENOMEM. */
int census_baseline_text(FILE *out, const struct census_baseline *b, const struct census *c,
			 struct census_names *names, u32 top) __must_check;
/* Write each change as the value of "growth". */
int census_baseline_json(struct json *j, const struct census_baseline *b, const struct census *c,
			 struct census_names *names) __must_check;
