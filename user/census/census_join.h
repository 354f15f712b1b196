/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The blocks of several allocators of one process, as one list. */
#pragma once

#include "user/census/census_blocks.h"

/* The live blocks of @b, before census_add_up(). */
struct census_sum census_count_live(const struct census_blocks *b) __attribute__((pure));

/*
 * Move what was found of another allocator into @to, before census_add_up(). @from is empty afterwards. Parts of its
 * memory that @to has, too, are left out: *@nr_nested are their live blocks, within blocks of @to. 0; or -ENOMEM, and
 * the contents of @to are for census_blocks_fini() only.
 */
int census_join(struct census_blocks *to, struct census_blocks *from, u64 *nr_nested) __must_check;
