/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Leak verdicts: which blocks a process can still reach, found on a snapshot of it. What is a root: scan_regions.c. */
#pragma once

#include "user/lib/types.h"
#include "user/heap.h"
#include "user/snapshot.h"

struct scan;
struct cover_map;

/* As memcheck defines them, plus unsure. */
enum scan_verdict {
	SCAN_NONE,	/* not judged yet */
	SCAN_REACHABLE, /* a chain of pointers to starts of blocks leads to it from a root */
	SCAN_POSSIBLE,	/* chains lead to it, but each goes through the middle of a block */
	SCAN_DEFINITE,	/* no chain, and no other lost block leads to it; of a cycle, the oldest block */
	SCAN_INDIRECT,	/* lost because its leader is */
	SCAN_UNSURE,	/* not known */
	NR_SCAN_VERDICTS
};

/* Interior pointers that count as pointers to the start, because C++ makes them. */
enum scan_heuristic {
	SCAN_STDSTRING = 1, /* text of a counted string behind length, capacity, counter */
	SCAN_LENGTH64 = 2,  /* behind 8 bytes that hold the size of the rest */
	SCAN_NEWARRAY = 4,  /* behind the number of elements of new T[n]; n may be 0 */
	SCAN_MULTIPLE = 8,  /* second base class: both words are addresses of virtual tables */
	SCAN_HEURISTICS = 15
};

struct scan_options {
	u64 pointer_mask;    /* bits of a word that make the address; 0 = all (tagged pointers) */
	bool want_unaligned; /* pointers at any byte, not only at multiples of the word size */
	/*
	 * Blocks may be alive that the books do not know: the target was attached to, or allocations were
	 * lost. Then every writable byte outside known blocks is a root.
	 */
	bool is_partial;
	u32 no_heuristics; /* enum scan_heuristic: bits switched off */
	u64 max_memory;	   /* bytes for the pointers found; 0 = no limit but half of what the blocks hold */
};

/* The books, as heap_for_each_block() shows them; in any order. A heap: scan_books_of(). */
struct scan_books {
	const void *ctx;
	u64 nr_blocks; /* about so many; 0 = not known */
	int (*for_each)(const void *ctx, int (*visit)(void *visit_ctx, const struct heap_block *block),
			void *visit_ctx);
	/* The block at @addr, if that is quicker than to go over all. NULL: there is no such way. */
	bool (*find)(const void *ctx, taddr_t addr, struct heap_block *out);
	/*
	 * For is_partial, at the moment of the stop: bytes that blocks have covered since the books began. No
	 * block from before can be there. NULL, or it returns NULL: not known.
	 */
	const struct cover_map *(*cover)(const void *ctx);
};

struct scan_sum {
	u64 blocks, bytes;
};

/* Sums by verdict; [SCAN_DEFINITE] is without what is indirect. */
struct scan_sums {
	struct scan_sum of[NR_SCAN_VERDICTS];
};

struct scan_result {
	struct scan_sums sums;
	u64 scanned_bytes; /* roots and blocks looked at */
	u64 skipped_bytes;
	u64 nr_unstopped; /* threads that ran on */
	u64 nr_overlaps;  /* blocks that overlap others: the books are wrong or allocators nest; unsure */
	bool is_complete; /* false: what would be definite or indirect is unsure */
};

/* A verdict on one block. */
struct scan_block_info {
	taddr_t addr;
	u64 size;
	enum scan_verdict verdict;
	taddr_t leader; /* definite, indirect (and unsure for want of completeness): who lost it; else 0 */
	u64 indirect_blocks; /* of a leader; see scan_leaders() */
	u64 indirect_bytes;
};

/* Life of a scan, in order. */

/*
 * Take the blocks of @books (which must stay while the scan lives) and sort them. Before the stop; nothing may be
 * entered in the books from here to the stop but what scan_event() is told. 16 bytes per block plus
 * 1 to 3 for each pointer found. *@out is owned by the caller. 0 or -ENOMEM; -EOVERFLOW beyond 2^32 blocks.
 */
int scan_new(struct scan **out, const struct scan_books *books,
	     const struct scan_options *options) __must_check;
void scan_free(struct scan *s);

/* The books of a process. @has_all: no allocation since their begin was lost. */
struct scan_books scan_books_of(const struct heap *heap, bool has_all);

/*
 * An event of the process that was drained after it was stopped and entered in the books. Blocks
 * that are in the middle of a call, or came since scan_new(), are never called leaked. 0 or -ENOMEM.
 */
int scan_event(struct scan *s, const struct heap_event *ev) __must_check;

/*
 * Read the moment @snap (borrowed as long as the scan lives, for scan_why()); the process can go on afterwards.
 * 0; -ETIME past the pause; -ESRCH it ended; -E2BIG more pointers than max_memory; -ENOMEM. On error there is
 * no verdict.
 */
int scan_read(struct scan *s, struct snapshot *snap) __must_check;

/* Find the verdicts. Needs neither the process nor its memory. 0 or -ENOMEM. */
int scan_judge(struct scan *s) __must_check;

/* After scan_judge(). */
struct scan_result scan_result(const struct scan *s);
u64 scan_memory(const struct scan *s); /* bytes in use */

u32 scan_count(const struct scan *s); /* blocks, as scan_for_each() goes through */

/* Verdict on the block at @addr. False if there is none that starts there. */
bool scan_find(const struct scan *s, taddr_t addr, struct scan_block_info *out);

/* The same for the block around @addr. */
bool scan_find_around(const struct scan *s, taddr_t addr, struct scan_block_info *out);

/* Each block by address. @visit returns 0 to go on, else its value is returned. indirect_* are not filled. */
int scan_for_each(const struct scan *s, int (*visit)(void *ctx, const struct scan_block_info *info),
		  void *ctx);

/*
 * The definite blocks, by address, with what is lost through each. *@out is owned by the caller.
 * 0 or -ENOMEM.
 */
int scan_leaders(const struct scan *s, struct scan_block_info **out, size_t *nr) __must_check;

/* Sums by caller: @rows has room for @nr rows (heap_row_count()); other rows are left out. 0 or -ENOMEM. */
int scan_rows(const struct scan *s, struct scan_sums *rows, size_t nr) __must_check;

/* "definite", ... */
const char *scan_verdict_name(enum scan_verdict verdict);
