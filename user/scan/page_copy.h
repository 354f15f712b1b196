/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Pages of a process that heaptap keeps in its own memory, for what may change or go while the rest of the moment is
 * read: memory that processes share, and memory that a fork leaves out.
 */
#pragma once

#include "user/scan/snapshot.h"

enum { HAS_COPIES = !IS_AGENT /* the agent reads processes only while they are stopped */ };

struct kept_run {
	taddr_t start, end;
	const u8 *data;
	bool is_part; /* of an area */
};

/* Memory that mmap() gave, with the data of many runs. */
struct kept_area {
	void *data;
	size_t len;
};

/* A part of the process of which all is kept: between its runs it has no pages, or zero pages. */
struct kept_whole {
	taddr_t start, end;
};

struct page_copy {
	struct kept_run *runs; /* owned, with the data of those that are no parts; by address */
	size_t nr, max;
	u64 bytes;
	struct kept_area *areas; /* owned */
	size_t nr_areas, max_areas;
	struct kept_whole *wholes; /* owned; by address */
	size_t nr_wholes, max_wholes;
};

void page_copy_fini(struct page_copy *c);

/* Append @len bytes at @addr, which is beyond all before. 0 or -ENOMEM. */
int page_copy_add(struct page_copy *c, taddr_t addr, const u8 *data, size_t len) __must_check;

/* Append @len bytes at @addr, which is not below those before. @data stays where it is. 0 or -ENOMEM. */
int page_copy_add_part(struct page_copy *c, taddr_t addr, const u8 *data, size_t len) __must_check;

/* Let @c own the @len bytes at @data, which mmap() gave. 0; -ENOMEM: the caller still owns them. */
int page_copy_own(struct page_copy *c, void *data, size_t len) __must_check;

/*
 * All of [start, end), which is beyond all before, is kept. A page of it that could not be read counts as zero: whoever
 * failed to read it counts it. 0 or -ENOMEM.
 */
int page_copy_whole(struct page_copy *c, taddr_t start, taddr_t end) __must_check;

/* Bring the runs into order: those of one page_copy_move() may have come after others beyond them. */
void page_copy_sort(struct page_copy *c);

/* Move all runs of @from, which are beyond those of @c, to the end of @c. 0; -ENOMEM: nothing has moved. */
int page_copy_move(struct page_copy *c, struct page_copy *from) __must_check;

/* Index of the first run that ends after @addr; nr if there is none. */
size_t page_copy_find(const struct page_copy *c, taddr_t addr);

/* The data at @addr, of which *@len bytes or less are in one piece; NULL: the page is not kept. */
const u8 *page_copy_at(const struct page_copy *c, taddr_t addr, size_t *len);

/* Read up to @len bytes at @addr, also zeros between runs. Returns how many are known from there on, 0 for none. */
size_t page_copy_read(const struct page_copy *c, taddr_t addr, void *buf, size_t len);
