/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The resident memory of a process, by owner. The parts add up to Rss in /proc/PID/smaps. */
#pragma once

#include <stddef.h>

#include "user/lib/types.h"

struct census;

enum resident_part {
	RESIDENT_ALLOCATOR, /* pages of arenas and of blocks with a mapping of their own */
	RESIDENT_STACKS,
	RESIDENT_FILES,	    /* private mappings of files: code and data */
	RESIDENT_SHARED,    /* shared memory and shared mappings of files */
	RESIDENT_ANONYMOUS, /* mapped by the program itself or its libraries */
	NR_RESIDENT_PARTS
};

struct resident_mapping; /* a mapping, with what smaps says of it */

struct census_resident {
	struct resident_mapping *maps; /* owned; by address */
	size_t nr_maps, max_maps;
	u64 of[NR_RESIDENT_PARTS]; /* bytes; with rss */
	u64 rss;		   /* their sum; 0 = not known */
	u64 swapped, huge;	   /* in swap; in huge pages, a part of rss */
	u64 page_tables;	   /* of the kernel for the process; not a part of rss */
};

/*
 * Read smaps of the process of @c, in two steps. Call the first one while the process is stopped, or as soon as its
 * copy runs, and the second one when the blocks are known, before the process runs again. On an error rss is 0: -ESRCH,
 * -EACCES, -ENOMEM or -errno.
 */
int census_resident_read(struct census_resident *out, const struct census *c) __must_check;
void census_resident_split(struct census_resident *out, const struct census *c);
void census_resident_fini(struct census_resident *r);

const char *census_resident_name(enum resident_part part); /* "stacks of threads", ... */
const char *census_resident_key(enum resident_part part);  /* for JSON */
