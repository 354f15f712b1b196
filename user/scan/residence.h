/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The resident memory of a process, by owner. The parts add up to Rss in /proc/PID/smaps. */
#pragma once

#include "user/heap/heap.h"

enum resident_part {
	RESIDENT_ALLOCATOR, /* pages of arenas and of blocks with a mapping of their own */
	RESIDENT_STACKS,    /* of threads, also of those that have ended */
	RESIDENT_FILES,	    /* private mappings of files: code and data */
	RESIDENT_SHARED,    /* shared memory and shared mappings of files */
	RESIDENT_ANONYMOUS, /* mapped by the program itself or its libraries */
	NR_RESIDENT_PARTS
};

struct resident_mapping; /* a mapping, with what smaps says of it */

struct residence {
	struct resident_mapping *maps; /* owned; by address */
	size_t nr_maps, max_maps;
	u64 of[NR_RESIDENT_PARTS]; /* bytes; with rss */
	u64 rss;		   /* their sum; 0 = not known */
	u64 live;		   /* of RESIDENT_ALLOCATOR in live blocks, at most */
	u64 swapped, huge;	   /* in swap; in huge pages, a part of rss */
	u64 heap;		   /* mapped bytes of [heap], which grows by brk */
	u64 page_tables;	   /* of the kernel for the process; not a part of rss */
	/* Stacks whose threads have ended: how many; resident bytes, a part of RESIDENT_STACKS; mapped bytes. */
	u64 nr_ended, ended, ended_mapped;
};

/* More mappings than the kernel allows by default are not read, because they take too long. */
enum { RESIDENT_MAX_MAPS = 1 << 16 };

/*
 * Read smaps of the thread @tid, or of all of its process: 28 MB and 0.2 s of 40,000 mappings. Does not stop it. All
 * parts are still 0. On an error rss is 0: -ESRCH, -EACCES, -E2BIG, -ENOMEM or -errno.
 */
int residence_read(struct residence *out, pid_t tid) __must_check;
void residence_fini(struct residence *r);

/*
 * A mapping that contains one of the @nr stack pointers @sps is a stack. A mapping that looks like one of a thread and
 * contains none is that of an ended thread, but for @nr_unknown of them: threads whose stack pointer is not known.
 */
void residence_find_stacks(struct residence *r, const taddr_t *sps, size_t nr, size_t nr_unknown);

/* As residence_find_stacks(), with the threads of @pid, which runs on. Without the right to look none has ended. */
void residence_find_threads(struct residence *r, pid_t pid);

/* The mapping number @i may be the allocator's, and has resident pages: its range. @bytes of them are. */
bool residence_may_be_allocator(const struct residence *r, size_t i, taddr_t *start, taddr_t *end, u64 *rss);
void residence_set_allocator(struct residence *r, size_t i, u64 bytes);

/*
 * Find the memory of the allocator by the live blocks of @heap, in @now and in @before, an earlier reading that may be
 * NULL: heaps of glibc by their form, and mappings with blocks. @has_own_mappings: outside its heaps, only the pages of
 * blocks are the allocator's, as with glibc.
 */
void residence_find_blocks(struct residence *now, struct residence *before, const struct heap *heap,
			   bool has_own_mappings);

/* All mappings have an owner: add up the parts. */
void residence_add_up(struct residence *r);

const char *residence_name(enum resident_part part); /* "stacks of threads", ... */
const char *residence_key(enum resident_part part);  /* for JSON */
