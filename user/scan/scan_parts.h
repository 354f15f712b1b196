/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Mappings that munmap has split: each part is a block of the scan, but all parts have one verdict, and count as one
 * block. For user/scan/scan*.c only.
 */
#pragma once

#include "user/scan/scan_spread.h"

/* Note @block of the heap if it is a part. 0 or -ENOMEM. */
int parts_note(struct scan *s, const struct heap_block *block) __must_check;
void parts_free(struct scan *s);

/* The blocks of @s are final: find the parts among them. */
void parts_settle(struct scan *s);

/* The first part of the mapping that @block is a part of, else @block. */
u32 parts_first(const struct scan *s, u32 block);

/* Is @block a part, and not the first one of its mapping? */
bool parts_has(const struct scan *s, u32 block);

/* As spread_from(), and from each part also to the other parts of its mapping. */
int parts_spread_from(struct spread *sp, u32 flags, enum scan_verdict verdict) __must_check;

/* Lost blocks have their leaders: parts get the verdict of the first one, and lose blocks through it. */
void parts_join_lost(struct scan *s);
