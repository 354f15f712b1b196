/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Pieces of reports, for the console: what it shows is what reports show. */
#pragma once

#include "user/report.h"

/* Parts of the text on each process: the head; callers, with leaks and wrong releases. */
int report_text_head(FILE *out, const struct report *r) __must_check;
int report_text_callers(FILE *out, const struct report *r) __must_check;
/* One line for each process: who holds how much, what became of it. */
int report_text_processes(FILE *out, const struct report *r) __must_check;

/* Is the live block @b one of those that the filters of @r let through? */
bool report_has_block(const struct report *r, const struct heap_block *b);

/*
 * The innermost two functions on the stack of row @id of the books, escaped: "make_node < add_node", "ls+0x18032" where
 * there is no name; "" without a stack. 0 or -ENOMEM.
 */
int report_callers(const struct report *r, const struct report_process *p, u32 id, char *text,
		   size_t size) __must_check;

/* Who it is, escaped, on a line: "redis-server (pid 26933)". The allocator function @fn, escaped. */
void report_name(FILE *out, const struct target *t);
void report_function(FILE *out, u16 fn);
