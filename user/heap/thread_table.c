/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A bounded table of threads, which never loses a count. */
#include "user/heap/thread_table.h"

#include <errno.h>
#include <stdlib.h>

void thread_table_init(struct thread_table *t, struct budget *budget)
{
	*t = (struct thread_table){ .budget = budget };
}

void thread_table_fini(struct thread_table *t)
{
	budget_give(t->budget, t->max * sizeof(*t->rows));
	budget_free_index(t->budget, &t->index);
	free(t->rows);
	thread_table_init(t, t->budget);
}

int thread_table_copy(struct thread_table *out, const struct thread_table *t, struct budget *budget)
{
	int err;

	*out = (struct thread_table){ .others = t->others, .budget = budget };
	err = budget_copy(budget, &out->rows, t->rows, t->nr * sizeof(*t->rows));
	if (err)
		return err;
	out->nr = out->max = t->nr;
	err = budget_copy_index(budget, &out->index, &t->index);
	if (err)
		thread_table_fini(out);
	return err;
}

/* 0 or -ENOMEM: nothing has changed. */
static int thread_table_add_row(struct thread_table *t, u32 tid)
{
	int err;

	if (!tid || t->nr >= THREADS_MAX)
		return -ENOMEM;
	err = budget_array(t->budget, t->rows, t->max, (size_t)t->nr + 1);
	if (!err)
		err = budget_index(t->budget, &t->index, (size_t)t->nr + 1);
	if (!err)
		err = hash_index_add(&t->index, hash_u64(tid), t->nr);
	if (!err)
		t->rows[t->nr++] = (struct thread_row){ .tid = tid };
	return err;
}

u32 thread_table_find(struct thread_table *t, u32 tid)
{
	u32 at = 0, row;

	while ((row = hash_index_next(&t->index, hash_u64(tid), &at)) != HASH_NO_ITEM)
		if (t->rows[row].tid == tid)
			break;
	if (row == HASH_NO_ITEM) {
		row = t->nr;
		if (thread_table_add_row(t, tid))
			return THREADS_MAX;
	}
	t->cache[tid % THREADS_CACHED] = row;
	return row;
}
