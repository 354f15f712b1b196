/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The resident memory of a process with a census: what the books of its allocator have. */
#pragma once

#include "user/lib/types.h"

struct census;
struct residence;

/*
 * Read the resident memory of the process of @c, in two steps. Call the first one while the process is stopped, or as
 * soon as its copy runs, and the second one when the blocks are known, before the process runs again. On an error rss
 * is 0: as residence_read().
 */
int census_resident_read(struct residence *out, const struct census *c) __must_check;
void census_resident_split(struct residence *out, const struct census *c);

/*
 * The resident bytes of whole pages in which no block is live, as far as they are known (*@is_known): what the
 * allocator could give back. Of the moment of the call.
 */
u64 census_resident_free(const struct census *c, bool *is_known);
