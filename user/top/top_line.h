/* SPDX-License-Identifier: GPL-2.0-or-later */
/* One line of a screen: text in the columns of a terminal, and how its parts look. */
#pragma once

#include "user/lib/types.h"

enum top_style { TOP_PLAIN, TOP_FAINT, TOP_STRONG, TOP_WARN, TOP_BAD, TOP_BAR, TOP_SELECTED, NR_TOP_STYLES };

enum { TOP_LINE_BYTES = 2048, TOP_LINE_PARTS = 24 };

struct top_line {
	char text[TOP_LINE_BYTES]; /* UTF-8 that the locale can show; no control characters */
	size_t len;
	u32 columns, max_columns;
	struct top_part {
		u16 begin, end; /* bytes */
		enum top_style style;
	} parts[TOP_LINE_PARTS];
	u32 nr_parts;
	bool has_items;
};

/* An empty line for a terminal of @columns. */
void top_line_init(struct top_line *l, u32 columns);

/* Add @text, as far as it fits. What the terminal could act on or cannot show becomes '?'. False if it was cut. */
bool top_line_put(struct top_line *l, enum top_style style, const char *text);
void top_line_printf(struct top_line *l, enum top_style style, const char *fmt, ...) __printf(3, 4);

/* Add @text as a cell of @width columns: to the right if @width is positive, else to the left. */
void top_line_cell(struct top_line *l, enum top_style style, int width, const char *text);

/* Add an item of a list, after three spaces if it is not the first. One that does not fit is left out. */
void top_line_item(struct top_line *l, enum top_style style, const char *fmt, ...) __printf(3, 4);

/* Like top_line_item(), after one space: it belongs to the item before. */
void top_line_join(struct top_line *l, enum top_style style, const char *fmt, ...) __printf(3, 4);

/* Fill the rest of the line with spaces of this style. */
void top_line_fill(struct top_line *l, enum top_style style);

/* Give all parts the style @style. */
void top_line_restyle(struct top_line *l, enum top_style style);

/* The columns that @text takes. */
u32 top_columns(const char *text);

/* The bytes of the first line of @text when it is wrapped at @columns, at a space if there is one; at least 1. */
size_t top_wrap(const char *text, u32 columns);

/* In lines of @text that are too long leave out the directories of "at /src/list.c:7": the file's name says more. */
void top_shorten_paths(char *text, u32 columns);
