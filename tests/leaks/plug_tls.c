/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A module for dlopen, with data, and with thread-local memory that the C library takes from the heap. */
#include <stddef.h>

enum { NR_CELLS = 1024 }; /* too large for the spare room in static TLS */

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
