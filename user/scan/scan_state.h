/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The inside of a scan: blocks by address, the index over them, the pointers found. For user/scan/scan*.c only. */
#pragma once

#include "user/scan/scan.h"
#include "user/scan/scan_roots.h"
#include "user/scan/snapshot.h"

enum {
	BLOCK_NONE = UINT32_MAX,
	BLOCK_BIG = (1 << 28) - 1, /* the size is in scan.big */
	BLOCK_GONE = 7,		   /* verdict of a block that the drained events freed, until it is dropped */
};

enum block_flag {
	BLOCK_TAINTED = 1, /* unsure, whatever leads to it */
	BLOCK_YOUNG = 2,   /* unsure, unless it is reachable */
	BLOCK_ROOT = 4,	   /* a root points to its start */
	BLOCK_SEED = 8,	   /* a root or a reachable block points to its middle */
	/* The first words of the block look like those of enum scan_heuristic. */
	BLOCK_NEWARRAY = 16,
	BLOCK_LENGTH64 = 32,
	BLOCK_STDSTRING = 64,
	BLOCK_VPTRS = 128,
	BLOCK_SHAPES = BLOCK_NEWARRAY | BLOCK_LENGTH64 | BLOCK_STDSTRING | BLOCK_VPTRS,
};

/* One block; the array is sorted by addr. */
struct scan_block {
	u64 addr : 56;
	u8 flags;	   /* enum block_flag; no bit field: a thread writes it while others read the rest */
	u32 size : 28;	   /* bytes, or BLOCK_BIG */
	u32 verdict : 3;   /* enum scan_verdict */
	u32 is_marked : 1; /* seen by the present search */
	u32 link;	   /* in order of time: its age, the next block on a stack, its leader */
};
_Static_assert(sizeof(struct scan_block) == 16, "memory per block");

/* The size of a large block. */
struct scan_big {
	taddr_t addr;
	u64 size;
};

/* Blocks without a large hole between them. Bucket i: the first block at or above start + (i << shift). */
struct scan_span {
	taddr_t start, end; /* one byte behind the end of the last block */
	u32 first, nr;	    /* blocks */
	size_t bucket;	    /* index in buckets[] */
	u32 nr_buckets;
	u8 shift;
};

/* The place of a word: an address, an index in snapshot.words, or a block. */
enum where_kind { WHERE_MEMORY, WHERE_WORD, WHERE_BLOCK };
#define WHERE(kind, value) ((u64)(kind) << 56 | (value))
#define WHERE_KIND(where)  ((enum where_kind)((where) >> 56))
#define WHERE_VALUE(where) ((where) & ((1ULL << 56) - 1))

/* Events between scan_new() and the stop. */
enum drained_kind { DRAINED_ALLOC, DRAINED_FREE, DRAINED_BEGIN, DRAINED_FAIL, DRAINED_SETTLE, DRAINED_UNMAP };

struct drained {
	taddr_t addr;
	u64 size;
	u32 order;
	u32 kind; /* enum drained_kind */
};
struct scan {
	struct scan_books books;
	struct scan_options options;
	struct scan_block *blocks; /* owned */
	u32 nr;
	u64 bytes;		     /* sum of their sizes */
	u64 first_order, last_order; /* of the oldest and of the youngest block */
	u8 order_shift;		     /* units of their ages: scan_judge.c */
	struct end_bits ends;
	/* Owned; bits or NULL: pointers to the middle count; words with marks lead here; the block knows its start. */
	u64 *behind, *tagged, *aware;
	bool has_low_marks;	  /* such words have marks in the low bits, too */
	bool has_links;		  /* some pointers may be links of free lists */
	bool has_ends;		  /* some pointers may mean the end of the block before */
	bool has_touching;	  /* some blocks end where the next one begins; the agent does not ask */
	bool has_pending;	  /* a block is in a realloc: its contents may lie in a new copy already */
	struct scan_parts *parts; /* owned; NULL unless a mapping was split */
	struct scan_big *big;	  /* owned; by address */
	size_t nr_big, max_big;
	struct scan_span *spans; /* owned */
	size_t nr_spans;
	u32 *buckets; /* owned */
	size_t nr_buckets;
	taddr_t lo, hi;		 /* all blocks lie between */
	struct drained *drained; /* owned */
	size_t nr_drained, max_drained;
	struct edge_store edges;
	struct root_store roots;
	struct snapshot *snap;	       /* borrowed */
	const struct cover_map *cover; /* borrowed; NULL unless is_partial and known */
	const struct cover_map *freed; /* borrowed; bytes that blocks ever covered; NULL unless keeps_freed */
	u8 word_size;
	struct scan_result result;
};
bool scan_is_unwanted(const struct scan *s); /* by scan_options */

/* scan_blocks.c */
/* The block that contains @p, or BLOCK_NONE. An empty block counts as one byte. */
u32 scan_lookup(const struct scan *s, taddr_t p);
u64 scan_block_size(const struct scan *s, u32 block);
/* Apply the events of scan_event() to the blocks. 0, -ENOMEM or -EOVERFLOW. */
int scan_apply_drained(struct scan *s) __must_check;
/* The block that starts at @addr, or BLOCK_NONE. */
u32 scan_find_start(const struct scan *s, taddr_t addr);
/* The span that contains @p, or NULL. */
const struct scan_span *scan_span_find(const struct scan *s, taddr_t p);
/* The last of blocks [lo, hi) that starts at or below @p, else lo - 1. Likely near @guess. */
u32 scan_last_below(const struct scan *s, u32 lo, u32 hi, u32 guess, taddr_t p);
/* Ask for large pages: searches in large arrays miss the TLB less. @is_filled: the memory was written already. */
void scan_use_huge_pages(void *p, size_t len, bool is_filled);

/* Index in buckets[] of the bucket of @p, in @span. */
static inline size_t scan_bucket(const struct scan_span *span, taddr_t p)
{
	u64 at = (p - span->start) >> span->shift;

	return span->bucket + (at < span->nr_buckets ? at : span->nr_buckets - 1);
}

/* Guess which of the blocks [lo, hi) of a bucket contains @p, as if they were spread evenly. */
static inline u32 scan_guess(const struct scan_span *span, u32 lo, u32 hi, taddr_t p)
{
	u64 inside = (p - span->start) & ((1ULL << span->shift) - 1);

	return span->shift < 32 ? lo + (u32)((hi - lo) * inside >> span->shift) : lo;
}

/* The first block that starts at or above @addr, or nr. */
u32 scan_lower_bound(const struct scan *s, taddr_t addr);

/* The end of @block, or the start of the next block if that is lower. An empty block has one byte. */
static inline taddr_t scan_block_end(const struct scan *s, u32 block)
{
	const struct scan_block *b = &s->blocks[block];
	u64 size = b->size == BLOCK_BIG ? scan_block_size(s, block) : b->size;
	taddr_t end = b->addr + (size ? size : 1);

	return block + 1 < s->nr && s->blocks[block + 1].addr < end ? s->blocks[block + 1].addr : end;
}

/* True if a pointer @offset bytes into @block counts as one to its start. */
bool scan_is_start(const struct scan *s, u32 block, u64 offset);
