/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Formats of the command `print`, as gdb's `x` has them: a count, a letter, a size. Has no state. */
#pragma once

#include <stdio.h>

#include "user/lib/types.h"

enum { PRINT_MAX_BYTES = 64 * 1024 };

struct print_format {
	u32 count;   /* values */
	char letter; /* x z d u o t c a f s */
	u8 size;     /* bytes of a value; 1 for c and s */
};

/*
 * Parse @text ("4xg"): a number, then a letter and a size (b 1, h 2, w 4, g 8 bytes), each of which may be missing:
 * 1 x w. For a, and for f without a size, the size is that of a word or of a double. 0; -EINVAL; -ERANGE: more than
 * PRINT_MAX_BYTES.
 */
int print_format_parse(struct print_format *f, const char *text, u8 word_size) __must_check;

/* Values in a line, as gdb has them. */
u32 print_format_columns(const struct print_format *f);

/* The value of f->size bytes at @bytes. */
u64 print_format_value(const struct print_format *f, const u8 *bytes);

/* Write the value at @bytes. Not for the letter s. */
void print_format_write(FILE *out, const struct print_format *f, const u8 *bytes);
