/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Breaks lines that are wider than the terminal, where a reader would pause. */
#pragma once

#include <stdio.h>

#include "user/lib/types.h"

/*
 * A stream whose lines are written to @out with at most @width columns each: the rest of a longer line follows,
 * indented more than its beginning. Lines break at blanks only, so that a long path or name stays whole and is too
 * wide. With less than 40 columns, lines are indented less. Escape codes of colours take no columns. The caller ends
 * the stream by fclose(), before which @out may lack text, and looks for errors of @out after that. NULL: out of
 * memory.
 */
FILE *wrap_open(FILE *out, u32 width) __must_check;

/* Likewise, and adds the lines that it writes to *@nr_lines. */
FILE *wrap_open_counted(FILE *out, u32 width, u64 *nr_lines) __must_check;

/* More lines than these do not fit on a terminal of the usual size, beside a prompt: the answer scrolls away. */
enum { WRAP_SCREEN_LINES = 22 };

/* The columns of the terminal that @out is; 80 for a terminal that does not know them, and anything else. */
u32 wrap_width(FILE *out);
