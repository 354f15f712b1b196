/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Live blocks by type, and by what other ones begin with. */
#pragma once

#include "user/census/census_names.h"

struct census_type_row {
	u64 word; /* that the blocks begin with: FIRST_FILE, FIRST_TEXT */
	enum census_first first;
	struct census_sum live, lost;
};

/*
 * The rows, those with the most bytes first. @is_file: blocks that begin with a pointer to a file; else all other ones
 * whose first word was read. *@out is owned by the caller. 0 or -ENOMEM.
 */
int census_type_rows(struct census_type_row **out, size_t *nr, const struct census *c,
		     bool is_file) __must_check;

/* Describe a row that is not FIRST_FILE, in words of the text report: "text", "zero", ... */
const char *census_first_name(enum census_first first);
/* Write its text, escaped, to @text of CENSUS_FIRST_TEXT bytes; "" = it has none. */
enum { CENSUS_FIRST_TEXT = 64 };
void census_row_text(const struct census *c, const struct census_type_row *row, char *text);

/* Name any row in one text: "class zoo::Cat", "data x in /usr/lib/x.so", "text GET /ind", "zero". 0 or -ENOMEM. */
enum { CENSUS_TYPE_TEXT = 480 };
int census_type_text(const struct census *c, struct census_names *names, const struct census_type_row *row,
		     char *text) __must_check;
