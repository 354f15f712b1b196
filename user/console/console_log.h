/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Calls of allocator functions, printed as they come: the command `log`. */
#pragma once

#include <stdio.h>

#include "user/lib/types.h"

struct console;
struct heap_event;
struct report;

/* Free c->log, if there is one. */
void console_log_free(struct console *c);

/* Print the calls that have come since the last time; without @at_once, only if that is a moment ago. */
void console_log_flush(struct console *c, bool at_once);

/* Print the call of @ev, of a process of @r, on a line, with its arguments, its result and its callers. 0 or -errno. */
int console_log_print(FILE *out, const struct report *r, const struct heap_event *ev) __must_check;

/*
 * Set the numbers of all allocator functions of the name @text in @wants, an array of ALLOC_MAX_FNS (may be NULL), to
 * @is_wanted. Returns how many functions have the name.
 */
size_t console_log_choose(const struct console *c, const char *text, bool is_wanted, bool *wants);
