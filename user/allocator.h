/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The table of allocator functions: what each is called, what its arguments mean, which family it belongs to. */
#pragma once

#include "user/lib/types.h"

/* What a function does with blocks; decides which events it leads to. */
enum alloc_kind {
	ALLOC_MALLOC,  /* returns a block of size (times count) bytes */
	ALLOC_REALLOC, /* moves a block */
	ALLOC_OUT,     /* returns 0 and stores the block through a pointer (posix_memalign) */
	ALLOC_FREE,    /* releases a block */
	ALLOC_MMAP,    /* returns a mapping, -1 on failure */
	ALLOC_MREMAP,  /* moves a mapping, -1 on failure */
	ALLOC_MUNMAP,  /* releases a range of addresses */
};

enum alloc_family { FAMILY_MALLOC, FAMILY_NEW, FAMILY_NEW_ARRAY, FAMILY_MMAP, FAMILY_CUSTOM, NR_FAMILIES };

/* One row. Argument positions count from 1; 0 = the function has none. */
struct alloc_fn {
	const char *symbol; /* ELF symbol */
	const char *name;   /* as reports print it */
	enum alloc_kind kind;
	enum alloc_family family;
	u8 size_arg;	/* bytes */
	u8 count_arg;	/* times this */
	u8 old_arg;	/* block handed in */
	u8 out_arg;	/* where the block's address is stored */
	bool can_throw; /* operator new: no return probe, the unwinder would meet it */
};

enum { ALLOC_MAX_FNS = 256 }; /* fn of an event is a row number; row 0 is "none" */

/* Number of rows, row 0 included. Grows by alloc_fn_add(). */
size_t alloc_fn_count(void);

/* Row @fn; row 0 ("unknown") for a number beyond the table. Never NULL. */
const struct alloc_fn *alloc_fn(u16 fn);

/* Row of the ELF symbol @symbol (any row: the caller looks at its kind), 0 if it is none. */
u16 alloc_fn_find(const char *symbol);

/*
 * Add a custom allocator's function; @row is copied, its strings too. For the whole run of the program.
 * Returns its row, or -ENOSPC when the table is full, -ENOMEM.
 */
int alloc_fn_add(const struct alloc_fn *row) __must_check;

/* "malloc", "new", ...: the JSON report's word. */
const char *alloc_family_name(enum alloc_family family);
