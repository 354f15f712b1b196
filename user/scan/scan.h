/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One leak scan: which live blocks can the program still reach?
 *
 * In come the live blocks of a heap (user/heap/heap.h) and one moment of the process (user/scan/snapshot.h): its
 * registers and memory. Out comes a verdict for each block. Memory outside blocks is a root, except where
 * user/scan/scan_regions.c can prove that no pointer of the program lies there.
 *
 * user/scan/leaks.h does all of this for a session. Only the steps are here:
 *   scan_new()     sort the blocks                                     the process runs
 *   scan_event()   take in the events that come meanwhile              runs, then stopped
 *   scan_read()    read registers and memory, keep each pointer found  stopped
 *   scan_judge()   follow the pointers                                 runs again
 *   scan_result(), scan_for_each(), ...; scan_free()
 */
#pragma once

#include "user/lib/types.h"
#include "user/scan/scan_result.h"

struct heap;
struct heap_block;
struct heap_event;
struct scan;
struct snapshot;

/* Pointers into the middle of a block that count as pointers to its start: C++, GLib, Rust and others make them. */
enum scan_heuristic {
	SCAN_STDSTRING = 1, /* the text of a counted string, behind length, capacity and counter */
	SCAN_LENGTH64 = 2,  /* behind 8 bytes that hold the size of the rest */
	SCAN_NEWARRAY = 4,  /* behind the number of elements of new T[n], also of new T[0] */
	SCAN_MULTIPLE = 8,  /* a second base class: both words are addresses of virtual tables */
	SCAN_GLIB = 16,	    /* an object behind its private data, known by its class; pointers in 32 bits */
	SCAN_TABLE = 32,    /* a hash table of Rust behind its entries, of Abseil behind a header */
	SCAN_SELF = 64,	    /* an object that keeps where its block begins, or where it begins itself */
	SCAN_HEURISTICS = 127,
	SCAN_RULES = 128 /* ends, headers, marks: off only to measure their price */
};

struct scan_options {
	u64 pointer_mask;    /* bits of a word that are the address, for tagged pointers; 0 = all bits */
	bool want_unaligned; /* look for pointers at every byte, not only at multiples of the word size */
	bool is_partial; /* blocks may be live that the heap does not know: all memory outside blocks is a root */
	bool has_others; /* blocks of another allocator are not known: only books.for_each_own() has no roots */
	bool keeps_freed; /* the allocators do not give memory of freed blocks back that lies close to a live one */
	u32 no_heuristics; /* bits of enum scan_heuristic to leave out */
	u32 slack;	   /* sizes of blocks may be so many bytes more than the program asked for */
	u64 max_memory;	   /* bytes for pointers found; 0 = as many as the bytes of the blocks can hold */
	bool (*is_unwanted)(void); /* break the scan off, by -ECANCELED? Called in any thread. NULL = no */
};

/* Where a scan gets its blocks. scan_books_of() makes this for a heap. */
struct scan_books {
	const void *ctx;
	u64 nr_blocks; /* about so many; 0 = not known */
	/* Visit each block, in any order. Stops when @visit returns another value than 0, and returns it. */
	int (*for_each)(const void *ctx, int (*visit)(void *visit_ctx, const struct heap_block *block),
			void *visit_ctx);
	/* The block at @addr. NULL if for_each() is the only way. */
	bool (*find)(const void *ctx, taddr_t addr, struct heap_block *out);
	/* May the program have been given an aligned address within the block at @addr, not its start? NULL: no. */
	bool (*may_begin_within)(const void *ctx, taddr_t addr);
	/* For is_partial and keeps_freed: heap_cover() at the moment of the stop. NULL, or returns NULL: not known. */
	const struct cover_map *(*cover)(const void *ctx);
	const struct stack_table
		*stacks; /* borrowed; only where ctx is a heap: of its rows. NULL: not known */
	/* The blocks that a block stands for. NULL: for itself. */
	struct heap_worth (*worth)(const void *ctx, const struct heap_block *block);
	/* Visit the memory that belongs to the allocator alone, by address, as for_each(). NULL: not known. */
	int (*for_each_own)(const void *ctx, int (*visit)(void *visit_ctx, taddr_t start, taddr_t end),
			    void *visit_ctx);
};

/* The verdict on one block. */
struct scan_block_info {
	taddr_t addr;
	u64 size; /* bytes */
	enum scan_verdict verdict;
	u32 index;	/* in the order of scan_for_each() */
	taddr_t leader; /* of a lost block: the definite block that leads to it; else 0 */
	u64 indirect_blocks, indirect_bytes; /* lost through this block; only scan_leaders() fills them */
};

/* The blocks of @heap. @has_all: no allocation was lost, so that heap_cover() can be used. */
struct scan_books scan_books_of(const struct heap *heap, bool has_all);

/*
 * Take the blocks of @books and sort them. @books must live as long as the scan. From now on to the stop, each event
 * that changes the heap must come to scan_event() too. Takes 16 bytes per block, later 1 to 3 per pointer. *@out is
 * owned by the caller: scan_free(). 0; -ENOMEM; -ECANCELED; -EOVERFLOW for more than 2^32 blocks.
 */
int scan_new(struct scan **out, const struct scan_books *books,
	     const struct scan_options *options) __must_check;
void scan_free(struct scan *s);

/*
 * An event of the process between scan_new() and scan_read(). Blocks that are new since scan_new(), or in the middle
 * of a call, are never lost. 0 or -ENOMEM.
 */
int scan_event(struct scan *s, const struct heap_event *ev) __must_check;

/*
 * Read all of @snap, which is stopped; the process may be resumed afterwards. @snap must live as long as the scan,
 * because user/scan/scan_why.h reads names from it. Blocks for as long as the snapshot's pause allows. 0; -ETIME past
 * the pause; -ESRCH the process has ended; -E2BIG more pointers than max_memory; -ENOMEM. An error means: no verdict.
 */
int scan_read(struct scan *s, struct snapshot *snap) __must_check;

/* Find the verdicts. Needs neither the process nor its memory. 0 or -ENOMEM. */
int scan_judge(struct scan *s) __must_check;

/* Reading the verdicts, after scan_judge(). */
struct scan_result scan_result(const struct scan *s);
u32 scan_count(const struct scan *s);					    /* blocks */
void scan_at(const struct scan *s, u32 index, struct scan_block_info *out); /* by address */
u64 scan_memory(const struct scan *s);					    /* bytes that the scan uses */
const char *scan_verdict_name(enum scan_verdict verdict);		    /* "definite", ... */

/* The verdict on the block that begins at @addr, or that contains @addr. False if there is no such block. */
bool scan_find(const struct scan *s, taddr_t addr, struct scan_block_info *out);
bool scan_find_around(const struct scan *s, taddr_t addr, struct scan_block_info *out);

/* Visit each block by address. Stops when @visit returns another value than 0, and returns that value. */
int scan_for_each(const struct scan *s, int (*visit)(void *ctx, const struct scan_block_info *info),
		  void *ctx);

/* The definite blocks by address, with what is lost through each. *@out is owned by the caller. 0 or -ENOMEM. */
int scan_leaders(const struct scan *s, struct scan_block_info **out, size_t *nr) __must_check;

/* Sums by caller into @rows, an array of @nr (heap_row_count()). Blocks of later rows are left out. 0 or -ENOMEM. */
int scan_rows(const struct scan *s, struct scan_sums *rows, size_t nr) __must_check;
