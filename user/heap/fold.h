/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Bounds the memory of callers and their stacks, in a table of stacks and the heaps that name them. A program may make
 * new stacks without end:
 *
 *	main < read < parse < malloc	4 blocks, live	kept
 *	main < read < skip < malloc	1 block, freed	folded to  main < read < [folded callers]
 *
 * The stack of a caller that is folded gets shorter, up to the frames that it shares with one that is kept. So many
 * callers become one, which has the sum of their counters: all totals stay as they are.
 */
#pragma once

#include "user/lib/types.h"

struct heap;
struct stack_table;

/* A row takes so much in a verdict and in a report; and all that is free without it. */
enum { REPORT_ROW_BYTES = 640, FOLD_ROW_BYTES = REPORT_ROW_BYTES + 96 };

/* The weight of a stack: the allocations of its callers, and whether one has live blocks. */
#define FOLD_IS_LIVE (1U << 31)

/* The numbers of rows have changed: row @i of heap number @heap is row @to[i] now. @to has @nr. */
typedef void fold_moved(void *ctx, size_t heap, const u32 *to, size_t nr);

/* Which callers may be folded, and how much is to become free. */
struct fold_wish {
	u64 bytes;    /* about */
	bool is_full; /* all callers, else the young ones; takes time for each of them */
};

/*
 * Fold the callers of @heaps that have least to say: those without live blocks first, and of these the ones with the
 * fewest allocations. Rows of heaps get new numbers: @moved, with @ctx. Pointers to stacks are invalid then. 0 or
 * -ENOMEM: as much as was possible is done. No caller is young then.
 */
int fold_callers(struct stack_table *t, struct heap *const *heaps, size_t nr, const struct fold_wish *wish,
		 fold_moved *moved, void *ctx) __must_check;

/* No caller is young from now on, but those that come. And: how many stacks of callers are young. */
void stack_table_age(struct stack_table *t);
u32 stack_table_young(const struct stack_table *t);
void heap_age(struct heap *h);

/* Callers of a heap that were folded so far, and how many of them had live blocks then. */
struct fold_counts {
	u64 callers, live_callers;
};
struct fold_counts heap_folded(const struct heap *h);

/* Set @is_used, by number of slot, for each stack that @h names. */
void heap_name_stacks(const struct heap *h, const struct stack_table *t, bool *is_used);

/* ---- for fold.c ---- */

/* Slots of @t, and the number of the slot that has the frames of the stack @id: HASH_NO_ITEM if there is none. */
u32 stack_table_slots(const struct stack_table *t);
u32 stack_table_number(const struct stack_table *t, u64 id);

/*
 * Shorten the stacks with the least of @weights, by number of slot, so that about @bytes become free. Their ids are
 * those of other stacks then: stack_canonical(). Without @is_full only young stacks. 0 or -ENOMEM: as
 * much as was possible is done.
 */
int stack_table_fold(struct stack_table *t, const u32 *weights, u64 bytes, bool is_full) __must_check;

/* Forget ids of stacks that were folded, if there are many: those that no event has named lately. */
void stack_table_forget(struct stack_table *t);

/* Add the weights of the rows of @h, all or the young ones, to @weights. */
void heap_weigh(const struct heap *h, const struct stack_table *t, bool is_full, u32 *weights);

/*
 * Give the rows of @h the stacks that they have in @t now, and join those that are of one caller then. @to, with
 * room for all rows as heap_row_get() knows them, gets the new number of each.
 */
int heap_fold(struct heap *h, const struct stack_table *t, bool is_full, u32 *to) __must_check;
