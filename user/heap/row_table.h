/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Counters per caller, for user/heap/heap.c. A caller is a stack and an allocator function. Each row
 * keeps its bytes at the peak of the process, without a copy of all rows at each new peak.
 */
#pragma once

#include "user/heap/budget.h"
#include "user/lib/hash_index.h"

enum {
	ROWS_MAX = 1 << 26, /* a block has so many bits for its row */
	ROWS_CACHED = 64,   /* found without a search */
	ROW_ALIGNMENTS =
		255 /* alignment_log of a caller that asks for different alignments, or for a bad one */
};

/* One caller. Sizes are bytes. */
struct row {
	u64 stack; /* stack id */
	u64 allocs, frees;
	u64 alloc_bytes, live_bytes;
	u64 at_peak;	/* bytes that the caller held at the peak number at_peak_nr */
	u64 at_peak_nr; /* peaks of the process are numbered from 1 */
	u64 temporary;
	double spread; /* of sampled blocks: struct heap_row */
	u32 nr_folded; /* callers whose counters are here because their stacks were folded (user/heap/fold.h) */
	u16 fn;	       /* allocator function */
	u8 alignment_log; /* 1 + the binary logarithm of the alignment that its calls ask for; 0 = they ask for none */
};

/* Plain data. Only user/heap/row_table.c writes it, but user/heap/heap.c writes the counters in rows. */
struct row_table {
	struct row *rows; /* owned; in order of first use */
	u32 nr, max;
	u32 nr_old;		 /* rows that are not young: user/heap/fold.h */
	u32 first;		 /* rows before this one are not found any more */
	struct hash_index index; /* rows by stack and function */
	u32 cache[ROWS_CACHED];	 /* rows by the low bits of their stack and function */
	u64 mul;		 /* random and odd, for the hashes */
	struct budget *budget;	 /* borrowed */
};

/* Make an empty table, which takes no memory yet. @seed should be hard to guess. @budget must outlive the table. */
void row_table_init(struct row_table *t, u64 seed, struct budget *budget);
void row_table_fini(struct row_table *t);
/* Make *@out, which is not initialized, a copy with memory from @budget. 0 or -ENOMEM. */
int row_table_copy(struct row_table *out, const struct row_table *t, struct budget *budget) __must_check;

/* As row_table_get(), with a search: for rows that come once. */
int row_table_find(struct row_table *t, u64 stack, u16 fn, u32 *out) __must_check;

/* Put the index of the row of @stack and @fn into *@out. A new caller gets a new row. 0 or -ENOMEM. */
static inline int __must_check row_table_get(struct row_table *t, u64 stack, u16 fn, u32 *out)
{
	u32 row = t->cache[(stack + fn) % ROWS_CACHED];

	if (row < t->first || row >= t->nr || t->rows[row].stack != stack || t->rows[row].fn != fn)
		return row_table_find(t, stack, fn, out);
	*out = row;
	return 0;
}

/* Find no row of before any more: each caller gets a new one. The old rows stay in the array. */
void row_table_begin_anew(struct row_table *t);

/*
 * Enter the rows from @from on anew, in order, to join those that have become equal: row_table_fold() for each of them,
 * between row_table_fold_begin() and row_table_fold_end(). It returns the new number, which is not above the old one.
 * Without @may_join equal rows stay apart, and the first one is found.
 */
void row_table_fold_begin(struct row_table *t, u32 from);
u32 row_table_fold(struct row_table *t, const struct row *row, u64 peak_nr, bool may_join);
void row_table_fold_end(struct row_table *t);

/* Call this before live_bytes of @row changes: keeps the bytes that it held at @peak_nr, the latest peak. */
static inline void row_keep_peak(struct row *row, u64 peak_nr)
{
	if (row->at_peak_nr == peak_nr)
		return;
	row->at_peak = row->live_bytes;
	row->at_peak_nr = peak_nr;
}

/* Bytes that @row held at @peak_nr, the latest peak. A row that has not changed since holds the same bytes now. */
static inline u64 row_at_peak(const struct row *row, u64 peak_nr)
{
	return row->at_peak_nr == peak_nr ? row->at_peak : row->live_bytes;
}
