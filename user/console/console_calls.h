/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Calls of any function of a file of the process, for the commands `log` and `break`. */
#pragma once

#include "user/lib/types.h"

struct console;

/*
 * Print the calls of the function @text, "FILE:FUNCTION" or "FUNCTION", of the one process that commands are about, at
 * most @rate a second; or no more, with @is_off. 0 or -errno, logged.
 */
int console_calls_log(struct console *c, const char *text, bool is_off, u64 rate) __must_check;

/* Print which functions these are. Returns how many. */
size_t console_calls_list(const struct console *c);

/* Print the calls that have come since the last time; without @at_once, only if that is a moment ago. */
void console_calls_flush(struct console *c, bool at_once);
void console_calls_free(struct console *c);

/* Wait until the process calls the function @text; it is stopped then until `continue`. As console_break(). */
int console_calls_break(struct console *c, const char *text) __must_check;
