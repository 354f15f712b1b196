/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Words of the moment, a page at a time, for those who read the books of allocators. In user/scan/ and user/census/. */
#pragma once

#include "user/lib/types.h"

enum { READER_PAGE = 4096 };

/* A page of memory that was read last, in words of 8 bytes. */
struct page_reader {
	struct snapshot *snap;
	u64 deadline_ns; /* 0 = no hurry */
	taddr_t addr;	 /* multiple of READER_PAGE; 1 = none */
	u32 nr_looks;	 /* pages that were read */
	bool may_fetch;	 /* also what was swapped out */
	bool is_there;
	u64 words[READER_PAGE / 8];
};

/* Set all but may_fetch. */
void page_reader_init(struct page_reader *r, struct snapshot *snap, u64 deadline_ns);
/* Is it past the deadline? */
bool page_reader_is_late(const struct page_reader *r);
/* The page at @page; NULL if it is not in memory, or if it is too late: so each search ends soon. */
const u64 *page_reader_page(struct page_reader *r, taddr_t page);
/* The word at @addr. 0 if its page is not there, or @addr is no multiple of 8. */
u64 page_reader_at(struct page_reader *r, taddr_t addr);
/* The next word of [*@at, @end) that is not 0, with *@at behind it. 0 = there is none in memory that is mapped. */
u64 page_reader_next(struct page_reader *r, taddr_t *at, taddr_t end);

/* The private memory without a file that @addr, a multiple of 8, lies in; NULL = none. */
const struct snapshot_map *page_reader_own(const struct snapshot *snap, taddr_t addr);
/*
 * The end of the data of a file that begins with mapping @map: the .bss behind counts, which may lie in several
 * mappings. 0: this is no data of a file.
 */
taddr_t page_reader_data_end(const struct snapshot *snap, size_t map);
