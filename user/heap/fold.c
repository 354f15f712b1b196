/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Folds callers of all heaps of a session, when memory is short: weighs stacks, shortens them, joins rows. */
#include "user/heap/fold.h"

#include <errno.h>
#include <stdlib.h>

#include "user/heap/heap.h"
#include "user/lib/cleanup.h"

/* The heap number @i follows its stacks. */
static int fold_follow(struct heap *h, const struct stack_table *t, bool is_full, size_t i, fold_moved *moved,
		       void *ctx)
{
	size_t nr = heap_row_count(h);
	auto_free u32 *to = calloc(nr + 1, sizeof(*to));
	int err = to ? heap_fold(h, t, is_full, to) : -ENOMEM;

	if (!err)
		moved(ctx, i, to, nr);
	return err;
}

int fold_callers(struct stack_table *t, struct heap *const *heaps, size_t nr, const struct fold_wish *wish,
		 fold_moved *moved, void *ctx)
{
	u32 *weights = calloc((size_t)stack_table_slots(t) + 1, sizeof(*weights));
	int err;

	if (!weights)
		return -ENOMEM;
	for (size_t i = 0; i < nr; i++)
		heap_weigh(heaps[i], t, wish->is_full, weights);
	err = stack_table_fold(t, weights, wish->bytes, wish->is_full);
	free(weights);
	for (size_t i = 0; i < nr; i++) {
		int failed = fold_follow(heaps[i], t, wish->is_full, i, moved, ctx);

		err = err ? err : failed;
	}
	stack_table_forget(t);
	return err;
}
