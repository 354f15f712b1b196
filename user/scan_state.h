/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Inside of the scan, shared by scan*.c only: blocks by address, the index over them, the pointers found. */
#pragma once

#include "user/scan.h"

enum {
	BLOCK_NONE = UINT32_MAX,
	BLOCK_BIG = (1 << 28) - 1, /* size is in the table of big ones */
	BLOCK_GONE = 7,		   /* verdict of a block freed in the drain, until it is dropped */
	GROUP = 16,		   /* blocks per entry of edges.groups */
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
	u64 flags : 8;	   /* enum block_flag */
	u32 size : 28;	   /* bytes, or BLOCK_BIG */
	u32 verdict : 3;   /* enum scan_verdict */
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
	taddr_t start, end; /* end of its last block */
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

/*
 * Pointers from blocks to blocks, in the order of the blocks, as variable-length numbers:
 * 0 ends a block; 1, offset / word size: there is an address of a virtual table;
 * else (zigzag of target - source) << 1 | is_interior, and if interior the offset in the target.
 */
struct edge_store {
	u8 *bytes; /* owned */
	u64 nr, capacity, limit;
	u64 *groups; /* owned; position of each GROUP-th block */
	u32 open;    /* block being written */
	u32 last_target;
	u64 last_offset;
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
	u64 first_ns;	      /* when the oldest was allocated */
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
	struct snapshot *snap; /* borrowed */
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
/* Last of blocks [lo, hi) that starts at or below @p, given that lo or the one before does. */
u32 scan_last_below(const struct scan *s, u32 lo, u32 hi, taddr_t p);
/* Ask for large pages: searches in large arrays miss the TLB at each step otherwise. */
void scan_use_huge_pages(void *p, size_t len);

/* [0], [1]: blocks that start in the bucket of @p, in @span. */
static inline const u32 *scan_bucket(const struct scan *s, const struct scan_span *span, taddr_t p)
{
	u64 at = (p - span->start) >> span->shift;

	return s->buckets + span->bucket + (at < span->nr_buckets ? at : span->nr_buckets - 1);
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

/* scan_edges.c */
int edges_init(struct edge_store *e, u32 nr_blocks, u64 limit) __must_check;
void edges_fini(struct edge_store *e);
/* @source never goes down. */
int edges_add(struct edge_store *e, u32 source, u32 target, u64 offset) __must_check;
int edges_add_vptr(struct edge_store *e, u32 source, u64 offset_words) __must_check;
/* No more pointers: end all blocks. */
int edges_finish(struct edge_store *e, u32 nr_blocks) __must_check;

/* Walk over the pointers of a block. */
struct edge_iter {
	const u8 *at;
	u32 source;
	u32 target;
	u64 offset; /* 0 = start */
};
void edge_begin(struct edge_iter *it, const struct edge_store *e, u32 source);
bool edge_next(struct edge_iter *it);
/* True if @block holds the address of a virtual table at @offset_words. */
bool edge_has_vptr(const struct edge_store *e, u32 block, u64 offset_words);

/* True if a pointer @offset bytes into @block counts as one to its start. */
bool scan_is_start(const struct scan *s, u32 block, u64 offset);

/* scan_regions.c: bytes outside blocks that are no roots. */
enum region_kind {
	REGION_NEVER, /* no byte of it */
	REGION_PAGES, /* not those pages that hold a part of a block */
	REGION_HEAP,  /* no byte of it, unless a thread's stack or TLS lies there */
};

struct region {
	taddr_t start, end;
	enum region_kind kind;
};

/* An address that a thread stands on: its stack pointer or thread pointer. */
struct point {
	taddr_t addr;
	u32 word; /* index in snapshot.words */
};

struct region_list {
	struct region *regions; /* owned; by address */
	size_t nr;
	struct point *points; /* owned; by address */
	size_t nr_points;
};

int region_list_init(struct region_list *list, const struct scan *s) __must_check;
void region_list_fini(struct region_list *list);
/* True if a thread stands in [start, end). */
bool region_has_point(const struct region_list *list, taddr_t start, taddr_t end);
