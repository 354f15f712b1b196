/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Pages of a process that heaptap keeps in its own memory, for what may change or go while the rest of the moment is
 * read: memory that processes share, and memory that a fork leaves out.
 */
#pragma once

#include "user/scan/snapshot.h"

struct kept_run {
	taddr_t start, end;
	const u8 *data;
};

struct page_copy {
	struct kept_run *runs; /* owned, with their data; by address */
	size_t nr, max;
	u64 bytes;
};

void page_copy_fini(struct page_copy *c);

/* Append @len bytes at @addr, which is beyond all before. 0 or -ENOMEM. */
int page_copy_add(struct page_copy *c, taddr_t addr, const u8 *data, size_t len) __must_check;

/* Move all runs of @from, which are beyond those of @c, to the end of @c. 0; -ENOMEM: nothing has moved. */
int page_copy_move(struct page_copy *c, struct page_copy *from) __must_check;

/* Index of the first run that ends after @addr; nr if there is none. */
size_t page_copy_find(const struct page_copy *c, taddr_t addr);

/* Read up to @len bytes at @addr. Returns how many were kept from there on in one piece, 0 for none. */
size_t page_copy_read(const struct page_copy *c, taddr_t addr, void *buf, size_t len);
