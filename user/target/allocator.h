/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The table of allocator functions: names, kind, family, positions of arguments. */
#pragma once

#include "call/probe.h"
#include "user/lib/types.h"

enum alloc_family {
	FAMILY_MALLOC,
	FAMILY_NEW,
	FAMILY_NEW_ARRAY,
	FAMILY_MMAP,
	FAMILY_CUSTOM,
	FAMILY_POOL,
	FAMILY_SAMPLER, /* blocks that the program itself samples, with their weights */
	NR_FAMILIES
};

/* One row. Argument positions count from 1; 0 = the function does not have the argument. */
struct alloc_fn {
	const char *symbol; /* ELF symbol */
	const char *name;   /* as reports print it */
	enum alloc_kind kind;
	enum alloc_family family;
	u8 size_arg;		    /* bytes; of a release: the size that the caller says */
	u8 count_arg;		    /* times this */
	u8 old_arg;		    /* block handed in */
	u8 out_arg;		    /* where the block's address is stored */
	u8 align_arg;		    /* alignment; of a release: the one that the caller says */
	const char *first, *second; /* of a function with two names (alloc_fn_join()); else NULL */
	bool can_throw; /* operator new: gets no return probe, because the unwinder would stop at its trampoline */
};

enum { ALLOC_MAX_FNS = 256 }; /* fn of an event is a row number; row 0 is "none" */

/* The built-in rows, which all tables share, then rows of custom allocators. NULL: the built-in rows alone. */
struct alloc_table;

/* A table without custom rows. *@out is owned by the caller: alloc_table_free(). 0 or -ENOMEM. */
int alloc_table_new(struct alloc_table **out) __must_check;
void alloc_table_free(struct alloc_table *t);

/* Number of rows, row 0 included. Grows by alloc_fn_add(). */
size_t alloc_fn_count(const struct alloc_table *t);

/* Row @fn; row 0 ("unknown") for a number beyond the table. Never NULL; valid as long as @t. */
const struct alloc_fn *alloc_fn(const struct alloc_table *t, u16 fn);

/* Row of the ELF symbol @symbol, of any kind, family and origin; 0 = not in the table. */
u16 alloc_fn_find(const struct alloc_table *t, const char *symbol);

/* The row of a function that has the names of @a and @b; 0 = there is none. */
u16 alloc_fn_join(const struct alloc_table *t, u16 a, u16 b);

/*
 * Add a function of a custom allocator. @row and its strings are copied.
 * Returns its row, or -ENOSPC when the table is full, -ENOMEM.
 */
int alloc_fn_add(struct alloc_table *t, const struct alloc_fn *row) __must_check;

/* Is it an operator new or delete with an alignment? */
static inline bool alloc_fn_is_aligned_operator(const struct alloc_fn *fn)
{
	return fn->align_arg && (fn->family == FAMILY_NEW || fn->family == FAMILY_NEW_ARRAY);
}

/* "malloc", "new", ...: the JSON report's word. */
const char *alloc_family_name(enum alloc_family family);
