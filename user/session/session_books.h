/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The allocator's books, for the verdict on a process that is sampled or rests. For user/session/session*.c only. */
#pragma once

#include "user/scan/leaks.h"
#include "user/session/session_process.h"

/* Plain data; all zero: none. */
struct session_books {
	struct census_lister *census; /* owned */
	struct leaks_lister lister;
};

/*
 * Have the scan that @lo describes judge by the books, if @p is sampled, or rests because of --max-cost: without them
 * memory between the blocks that are known hides leaks. @b must live as long as the scan.
 */
void session_books_init(struct session_books *b, const struct process *p, struct leaks_options *lo);
void session_books_fini(struct session_books *b);

/*
 * Are the books of @p's allocator such that no census can read them, so that its verdict, which finds no leak among the
 * blocks of the trace, must not name one? Nothing is stopped; the memory of @p is read once, and only where the verdict
 * is such. False also if it cannot be read (any more).
 */
bool session_lacks_books(struct process *p);
