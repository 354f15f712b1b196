/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The books of musl's malloc since 1.2.1 (mallocng), for 64 and 32 bits. For user/census/musl*.c only.
 *
 * Blocks of one size lie in groups of at most 32 slots. Each group has a description, in a page of descriptions. Such
 * pages begin with a secret number and are linked; a structure in the data of libc has the number, and the first page.
 * A group begins with the address of its description, so each is proved by the other. A small group lies in a slot of a
 * larger one.
 */
#pragma once

#include "user/census/census_walk.h"

enum {
	MUSL_UNIT = 16,
	MUSL_AREA = 4096, /* bytes of a page of descriptions */
	MUSL_NR_CLASSES = 48,
	MUSL_ALONE = 63, /* in place of a size class: a block with a mapping of its own */
};

struct musl_group {
	taddr_t meta; /* of its description */
	taddr_t base; /* of the group; slots begin MUSL_UNIT later */
	u64 stride;   /* bytes of a slot */
	u64 mapped;   /* bytes of the mapping that it fills; 0 = it has none of its own */
	u32 nr;	      /* slots */
	u32 free;     /* one bit for each slot that is free */
	bool is_alone;
};

struct musl {
	struct census_walk *w;
	u64 secret;
	taddr_t area;		   /* the first page of descriptions */
	struct musl_group *groups; /* owned; also those in a slot of another one */
	size_t nr_groups, max_groups;
	size_t nr_damaged;
	/* The pages of descriptions that were read, because a damaged list may lead back. */
	taddr_t *areas; /* owned */
	size_t nr_areas, max_areas;
	struct hash_index seen; /* owned; of areas */
};

/* user/census/musl_group.c */
/* The descriptions of the page at @area: their number and the bytes of each. *@header: bytes before the first. */
u32 musl_descriptions(const struct musl *m, taddr_t area, u32 *header, u32 *size);
/* Read the description at @meta. 0; -ENOENT it is not in use; -EINVAL it is damaged. */
int musl_read_group(const struct musl *m, taddr_t meta, struct musl_group *out) __must_check;
/*
 * The block in slot @i of @g: its address and the bytes that the program may use. 0; -ENOENT a group lies there;
 * -EINVAL what is there is no block.
 */
int musl_read_block(const struct musl *m, const struct musl_group *g, u32 i, taddr_t *addr,
		    u64 *size) __must_check;
