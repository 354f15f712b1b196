/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The table of allocator functions: names, kind, family, positions of arguments. */
#pragma once

#include "call/probe.h"
#include "user/lib/types.h"

enum alloc_family { FAMILY_MALLOC, FAMILY_NEW, FAMILY_NEW_ARRAY, FAMILY_MMAP, FAMILY_CUSTOM, NR_FAMILIES };

/* One row. Argument positions count from 1; 0 = the function does not have the argument. */
struct alloc_fn {
	const char *symbol; /* ELF symbol */
	const char *name;   /* as reports print it */
	enum alloc_kind kind;
	enum alloc_family family;
	u8 size_arg;  /* bytes */
	u8 count_arg; /* times this */
	u8 old_arg;   /* block handed in */
	u8 out_arg;   /* where the block's address is stored */
	bool can_throw; /* operator new: gets no return probe, because the unwinder would stop at its trampoline */
};

enum { ALLOC_MAX_FNS = 256 }; /* fn of an event is a row number; row 0 is "none" */

/* Number of rows, row 0 included. Grows by alloc_fn_add(). */
size_t alloc_fn_count(void);

/* Row @fn; row 0 ("unknown") for a number beyond the table. Never NULL. */
const struct alloc_fn *alloc_fn(u16 fn);

/* Row of the ELF symbol @symbol, of any kind, family and origin; 0 = not in the table. */
u16 alloc_fn_find(const char *symbol);

/*
 * Add a function of a custom allocator, which stays until the program ends. @row and its strings are copied.
 * Returns its row, or -ENOSPC when the table is full, -ENOMEM.
 */
int alloc_fn_add(const struct alloc_fn *row) __must_check;

/* Note that a mapped file defines the custom allocator's function @fn; and ask whether one does. */
void alloc_fn_note_found(u16 fn);
bool alloc_fn_is_found(u16 fn);

/* "malloc", "new", ...: the JSON report's word. */
const char *alloc_family_name(enum alloc_family family);
