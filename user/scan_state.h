/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Inside of the scan, shared by scan*.c only: blocks by address, the index over them, the pointers found. */
#pragma once

#include "user/scan.h"
#include "user/scan_edges.h"

enum {
	BLOCK_NONE = UINT32_MAX,
	BLOCK_BIG = (1 << 28) - 1, /* size is in the table of big ones */
	BLOCK_GONE = 7,		   /* verdict of a block freed in the drain, until it is dropped */
};

enum block_flag {
	BLOCK_TAINTED = 1, /* unsure whatever is found */
	BLOCK_YOUNG = 2,   /* unsure unless reached */
	BLOCK_ROOT = 4,	   /* a root points to its start */
	BLOCK_SEED = 8,	   /* a root or a reachable block points to its middle */
	/* What its first words look like. */
	BLOCK_NEWARRAY = 16,
	BLOCK_LENGTH64 = 32,
	BLOCK_STDSTRING = 64,
	BLOCK_VPTRS = 128,
};

/* One block; the array is sorted by addr. */
struct scan_block {
	u64 addr : 56;
	u8 flags;	 /* enum block_flag; no bit field: one thread writes it while others read the rest */
	u32 size : 28;	 /* bytes, or BLOCK_BIG */
	u32 verdict : 3; /* enum scan_verdict */
	u32 is_marked : 1; /* seen by the search that is running */
	u32 link;	   /* next on the stack; then its leader; before, its age */
};
_Static_assert(sizeof(struct scan_block) == 16, "memory per block");

struct scan_big {
	taddr_t addr;
	u64 size;
};

/* Blocks without a large hole between them. bucket + i: first block at or above start + (i << shift). */
struct scan_span {
	taddr_t start, end; /* end of its last block, or the byte behind that */
	u32 first, nr;	    /* blocks */
	size_t bucket;	    /* index in buckets[] */
	u32 nr_buckets;
	u8 shift;
};

/* Where a pointer was found. */
enum where_kind { WHERE_MEMORY, WHERE_WORD, WHERE_BLOCK };
#define WHERE(kind, value) ((u64)(kind) << 56 | (value))
#define WHERE_KIND(where)  ((enum where_kind)((where) >> 56))
#define WHERE_VALUE(where) ((where) & ((1ULL << 56) - 1))

/* A root that points to a block. */
struct root_ref {
	u64 where; /* address, or index in snapshot.words */
	u32 block;
	u32 offset; /* in the block, saturated */
};

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
	u64 bytes;	      /* that they hold */
	u64 first_ns;	      /* when the oldest was allocated */
	bool has_pending;     /* a block is in a realloc: what it holds may lie in a copy already */
	struct scan_big *big; /* owned; by address */
	size_t nr_big;
	struct scan_span *spans; /* owned */
	size_t nr_spans;
	u32 *buckets; /* owned */
	size_t nr_buckets;
	taddr_t lo, hi;		 /* all blocks lie between */
	struct drained *drained; /* owned */
	size_t nr_drained;
	struct edge_store edges;
	struct root_ref *roots; /* owned */
	size_t nr_roots, capacity_roots;
	struct snapshot *snap;	       /* borrowed */
	const struct cover_map *cover; /* borrowed; set if is_partial and it can be used */
	u8 word_size;
	struct scan_result result;
};

/* scan_blocks.c */
/* Sort by address, drop duplicates, build the index. */
int scan_index(struct scan *s) __must_check;
/* Block whose bytes contain @p (an empty block counts as one byte), or BLOCK_NONE. */
u32 scan_lookup(const struct scan *s, taddr_t p);
u64 scan_block_size(const struct scan *s, u32 block);
/* Take the drained events into the array. */
int scan_apply_drained(struct scan *s) __must_check;

/* Block that starts at @addr, or BLOCK_NONE. */
u32 scan_find_start(const struct scan *s, taddr_t addr);
/* Span that holds @p, or NULL. */
const struct scan_span *scan_span_find(const struct scan *s, taddr_t p);
/* Last of blocks [lo, hi) that starts at or below @p, given that lo or the one before does; likely near @guess. */
u32 scan_last_below(const struct scan *s, u32 lo, u32 hi, u32 guess, taddr_t p);
/* Ask for large pages: searches in large arrays miss the TLB at each step otherwise. @is_filled: it has pages. */
void scan_use_huge_pages(void *p, size_t len, bool is_filled);

/* Index in buckets[] of the bucket of @p, in @span. */
static inline size_t scan_bucket(const struct scan_span *span, taddr_t p)
{
	u64 at = (p - span->start) >> span->shift;

	return span->bucket + (at < span->nr_buckets ? at : span->nr_buckets - 1);
}

/* Where among blocks [lo, hi) of its bucket the one of @p lies, if they are spread evenly. */
static inline u32 scan_guess(const struct scan_span *span, u32 lo, u32 hi, taddr_t p)
{
	u64 inside = (p - span->start) & ((1ULL << span->shift) - 1);

	return span->shift < 32 ? lo + (u32)((hi - lo) * inside >> span->shift) : lo;
}

/* First block at or above @addr. */
u32 scan_lower_bound(const struct scan *s, taddr_t addr);

/* End of the bytes of @block that lie before the next block; an empty one has one byte. */
static inline taddr_t scan_block_end(const struct scan *s, u32 block)
{
	const struct scan_block *b = &s->blocks[block];
	u64 size = b->size == BLOCK_BIG ? scan_block_size(s, block) : b->size;
	taddr_t end = b->addr + (size ? size : 1);

	return block + 1 < s->nr && s->blocks[block + 1].addr < end ? s->blocks[block + 1].addr : end;
}

/* True if a pointer @offset bytes into @block counts as one to its start. */
bool scan_is_start(const struct scan *s, u32 block, u64 offset);
