/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Counters per caller (stack, function), for heap.c; what each held at the peak is kept without copying. */
#pragma once

#include "user/budget.h"

/* One caller. at_peak is what it held when the process had its peak number at_peak_nr. */
struct row {
	u64 stack;
	u64 allocs, frees;
	u64 alloc_bytes, live_bytes;
	u64 at_peak, at_peak_nr;
	u64 temporary;
	u16 fn;
};

/* Plain data; only row_table.c writes it, and counters in rows are heap.c's. */
struct row_table {
	struct row *rows; /* owned; in order of first use */
	u32 nr, max;
	u32 first;     /* rows before it are not found any more */
	u32 *slots;    /* owned; open addressing, row + 1, 0 = empty */
	u32 slot_bits; /* 1 << slot_bits of them, 0 = none yet */
	u64 mul;       /* random and odd */
	struct budget *budget;
};

/* An empty table; takes no memory yet. @seed should be hard to guess; @budget must outlive it. */
void row_table_init(struct row_table *t, u64 seed, struct budget *budget);
void row_table_fini(struct row_table *t);
/* Make *@out, not initialized before, a copy with memory from @budget. 0 or -ENOMEM. */
int row_table_copy(struct row_table *out, const struct row_table *t, struct budget *budget) __must_check;

/* Index of the row of @stack and @fn into *@out, made if it is new. 0 or -ENOMEM. */
int row_table_get(struct row_table *t, u64 stack, u16 fn, u32 *out) __must_check;

/* From now on no row of before is found: each caller gets a new one. */
void row_table_begin_anew(struct row_table *t);

/* Before live_bytes of @row changes: keep what it held at the peak number @peak_nr, the latest one. */
static inline void row_keep_peak(struct row *row, u64 peak_nr)
{
	if (row->at_peak_nr == peak_nr)
		return;
	row->at_peak = row->live_bytes;
	row->at_peak_nr = peak_nr;
}

/* What @row held at the latest peak, number @peak_nr: if it did not change since, what it holds now. */
static inline u64 row_at_peak(const struct row *row, u64 peak_nr)
{
	return row->at_peak_nr == peak_nr ? row->at_peak : row->live_bytes;
}
