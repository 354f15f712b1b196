/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Where random programs hold their shapes: memory of all kinds, and what the kernel and the C library keep. */
#pragma once

#include <stddef.h>

enum { NR_WORKERS = 8, NR_STACK_CELLS = 48 };

enum place {
	IN_GLOBALS,
	IN_MODULE,  /* data of a module that came by dlopen */
	IN_HEAP,    /* a block that a global holds */
	IN_OLD,	    /* a block from before heaptap came */
	IN_PRIVATE, /* memory from mmap */
	IN_SHARED,
	IN_FILE,
	IN_TIMER,
	IN_EPOLL,
	/* Those of a thread, which go with it. */
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

/* Before the first thread. */
void roots_init(void);

/* By the thread whose cells they are; @stack lies in a frame that stays. */
void cells_init(struct cells *c, unsigned worker, void **stack);

/* Take a free cell of @place. False: there is none. */
bool cell_take(struct cells *c, enum place place, struct cell *cell);

/* Let the cell hold @p; NULL = nothing any more. */
void cell_put(struct cells *c, struct cell cell, void *p);
