/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A module that comes by dlopen: its data, and thread-local memory that the C library takes from the heap. */
#include <stddef.h>

enum { NR_CELLS = 1024 }; /* too many for what is kept for late modules in static TLS */

static void *cells[NR_CELLS];
static __thread void *own_cells[NR_CELLS];

void **plug_cells(size_t *nr);
void **plug_own_cells(size_t *nr);

void **plug_cells(size_t *nr)
{
	*nr = NR_CELLS;
	return cells;
}

void **plug_own_cells(size_t *nr)
{
	*nr = NR_CELLS;
	return own_cells;
}
