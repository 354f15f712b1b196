/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The allocations of each thread of a process. The heap fills the table event by event. */
#pragma once

#include "user/heap/budget.h"
#include "user/lib/hash_index.h"

struct heap;

enum {
	THREADS_MAX = 4095,  /* later threads share a row: a process may start threads without end */
	THREADS_CACHED = 64, /* found without a search */
};

/* One thread. Threads that had the same number one after the other share a row. */
struct thread_row {
	u32 tid; /* 0 = all threads that have no row */
	u64 allocs, alloc_bytes;
};

/* Plain data. With the budget alone: empty. */
struct thread_table {
	struct thread_row *rows; /* owned; in order of first use */
	u32 nr, max;
	struct hash_index index; /* rows by tid */
	struct thread_row others;
	u32 cache[THREADS_CACHED]; /* numbers of rows, by the low bits of their tid */
	struct budget *budget;	   /* borrowed */
};

void thread_table_init(struct thread_table *t, struct budget *budget);
void thread_table_fini(struct thread_table *t);

/* Make *@out, which is not initialized, a copy with memory from @budget. 0 or -ENOMEM. */
int thread_table_copy(struct thread_table *out, const struct thread_table *t,
		      struct budget *budget) __must_check;

/* For thread_table_count() only: the number of the row of @tid, which may be new; or THREADS_MAX for others. */
u32 thread_table_find(struct thread_table *t, u32 tid);

/* Count @nr blocks of @bytes in all for @tid. Returns the number of its row, or THREADS_MAX. */
static inline u32 thread_table_count(struct thread_table *t, u32 tid, u64 nr, u64 bytes)
{
	u32 number = t->cache[tid % THREADS_CACHED];
	struct thread_row *row;

	if (number >= t->nr || t->rows[number].tid != tid)
		number = thread_table_find(t, tid);
	row = number == THREADS_MAX ? &t->others : &t->rows[number];
	row->allocs += nr;
	row->alloc_bytes += bytes;
	return number;
}

/*
 * Thread @i of @h, from 0, in order of first use; behind them those without a row, if there are any. False behind the
 * last one. The sums over all are those of heap_totals().
 */
bool heap_thread(const struct heap *h, size_t i, struct thread_row *out);
