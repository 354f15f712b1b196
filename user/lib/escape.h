/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Makes text from a target safe for terminals and JSON. */
#pragma once

#include <stdio.h>

#include "user/lib/types.h"

/*
 * Write @text to @out so that a terminal cannot act on it: valid UTF-8 stays, control characters
 * (C0, DEL, C1) and invalid bytes become \xNN, a backslash becomes two.
 */
void escape_text(FILE *out, const char *text);

/* Like escape_text(), and the character @also becomes \xNN too, because it means something in the format. */
void escape_text_and(FILE *out, const char *text, char also);

/* Like escape_text(), into @buf of @size bytes: always terminated, cut if it does not fit. Returns @buf. */
char *escape_buf(char *buf, size_t size, const char *text);

/* Write @text for a pattern of shells: each byte that escape_text() would escape becomes ?, a backslash stays. */
void escape_pattern(FILE *out, const char *text);

/* Like escape_text(), into memory that the caller owns. NULL: out of memory. */
char *escape_new(const char *text);

/* Write @text as a JSON string with its quotes; invalid UTF-8 bytes become U+FFFD. */
void escape_json(FILE *out, const char *text);

/* Like escape_json(), for the inside of a <script> element of HTML: '<' becomes \u003c too. */
void escape_script(FILE *out, const char *text);

/*
 * Write @text as one field of CSV, in quotes, with escapes as escape_text(). A spreadsheet would take a text that
 * begins with = + - or @ for a formula: such a text gets a ' in front.
 */
void escape_csv(FILE *out, const char *text);
