/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Places where random programs hold shapes: memory of all kinds, the kernel, and the C library. */
#pragma once

#include <stddef.h>

enum { NR_WORKERS = 8, NR_STACK_CELLS = 48 };

enum place {
	IN_GLOBALS,
	IN_MODULE,  /* data of a module that dlopen loaded */
	IN_HEAP,    /* in a block that a global variable holds */
	IN_OLD,	    /* in a block that is older than the attach */
	IN_PRIVATE, /* memory from mmap */
	IN_SHARED,
	IN_FILE,
	IN_TIMER,
	IN_EPOLL,
	/* Places of a thread, which end with it. */
	IN_STACK,
	IN_TLS,
	IN_MODULE_TLS,
	IN_KEY,
	NR_PLACES
};

/* Cells of one thread, in each place. */
struct cells {
	void **of[NR_PLACES];
	size_t nr[NR_PLACES], used[NR_PLACES];
	int epoll;
};

struct cell {
	enum place place;
	size_t index;
};

/* Call this before the first thread starts. */
void roots_init(void);

/* Called by the thread that owns the cells. @stack lies in a frame that does not return. */
void cells_init(struct cells *c, unsigned worker, void **stack);

/* Take a free cell of @place. False if no cell is free. */
bool cell_take(struct cells *c, enum place place, struct cell *cell);

/* Store @p in the cell; NULL = empty the cell. */
void cell_put(struct cells *c, struct cell cell, void *p);
