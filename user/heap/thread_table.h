/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The allocations of each thread of a process. The heap fills the table event by event. */
#pragma once

#include "user/heap/budget.h"
#include "user/lib/hash_index.h"

struct heap;

enum {
	THREADS_MAX = 4095,  /* later threads share a row: a process may start threads without end */
	THREADS_CACHED = 64, /* found without a search */
	THREAD_NAME_LEN = 16,
};

/* One thread. Threads that had the same number one after the other share a row. */
struct thread_row {
	u32 tid;		    /* 0 = all threads that have no row */
	u8 nr_looks;		    /* for its name, by session_threads_look() */
	char name[THREAD_NAME_LEN]; /* "" = not known */
	u64 due_ns;		    /* the next look */
	u64 allocs, alloc_bytes;    /* 0 allocs: reports leave it out */
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

/* For thread_table_number() only: the number of the row of @tid, which may be new; or THREADS_MAX for others. */
u32 thread_table_find(struct thread_table *t, u32 tid);

/* The number of the row of @tid, which may be new; or THREADS_MAX. */
static inline u32 thread_table_number(struct thread_table *t, u32 tid)
{
	u32 number = t->cache[tid % THREADS_CACHED];

	return number < t->nr && t->rows[number].tid == tid ? number : thread_table_find(t, tid);
}

/* Count @nr blocks of @bytes in all for @tid. Returns the number of its row, or THREADS_MAX. */
static inline u32 thread_table_count(struct thread_table *t, u32 tid, u64 nr, u64 bytes)
{
	u32 number = thread_table_number(t, tid);
	struct thread_row *row = number == THREADS_MAX ? &t->others : &t->rows[number];

	row->allocs += nr;
	row->alloc_bytes += bytes;
	return number;
}

/*
 * Thread @i of @h, from 0, in order of first use; behind them those without a row, if there are any. False behind the
 * last one. The sums over all are those of heap_totals().
 */
bool heap_thread(const struct heap *h, size_t i, struct thread_row *out);

/* That row, to be changed; NULL behind the last one. And the row of @tid, which may be new; NULL = there is no room. */
struct thread_row *heap_thread_row(struct heap *h, size_t i);
struct thread_row *heap_add_thread(struct heap *h, u32 tid);
