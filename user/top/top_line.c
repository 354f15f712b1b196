/* SPDX-License-Identifier: GPL-2.0-or-later */
/* One line of a screen. */
#include "user/top/top_line.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>
#include <wctype.h>

/* A character that takes columns. */
struct letter {
	char text[8];
	size_t len;  /* bytes of it */
	size_t used; /* bytes of the source */
	u32 columns;
};

/* The bytes behind the first one of a character that the locale does not know. */
static size_t top_line_skip(const char *s)
{
	size_t len = 1;

	while (((u8)s[len] & 0xc0) == 0x80)
		len++;
	return len;
}

/* The first character of @s, which is not empty. Of an unknown, invisible or combining one: '?'. */
static struct letter next_letter(const char *s)
{
	struct letter u = { .text = "?", .len = 1, .columns = 1 };
	mbstate_t state = { 0 };
	wchar_t c = 0;
	size_t len = MB_CUR_MAX > 1 ? mbrtowc(&c, s, strlen(s), &state) : (u8)*s < 0x80;

	if (len == 0 || len >= sizeof(u.text) || (len > 1 && wcwidth(c) < 1)) {
		u.used = top_line_skip(s);
		return u;
	}
	u.used = len;
	if (len == 1 && (*s < 0x20 || *s == 0x7f))
		return u;
	memcpy(u.text, s, len);
	u.len = len;
	u.columns = len > 1 ? (u32)wcwidth(c) : 1;
	return u;
}

u32 top_columns(const char *text)
{
	u32 columns = 0;

	while (*text) {
		struct letter u = next_letter(text);

		columns += u.columns;
		text += u.used;
	}
	return columns;
}

size_t top_wrap(const char *text, u32 columns)
{
	size_t len = 0, space = 0;
	u32 used = 0;

	while (text[len] && text[len] != '\n') {
		struct letter u = next_letter(text + len);

		if (used + u.columns > columns)
			return space ? space : len ? len : u.used;
		used += u.columns;
		len += u.used;
		if (text[len - 1] == ' ' && used > columns / 2)
			space = len;
	}
	return len;
}

void top_shorten_paths(char *text, u32 columns)
{
	for (char *line = text; *line; line += strcspn(line, "\n"), line += *line == '\n') {
		size_t len = strcspn(line, "\n");
		char *path = memmem(line, len, " at ", 4), *end, *name;

		if (len <= columns || !path)
			continue;
		path += 4;
		end = path + strcspn(path, " \n");
		name = memrchr(path, '/', (size_t)(end - path));
		if (!name || name - path < 4)
			continue;
		memcpy(path, "...", 3);
		memmove(path + 3, name, strlen(name) + 1);
	}
}

void top_line_init(struct top_line *l, u32 columns)
{
	l->len = l->columns = l->nr_parts = 0;
	l->text[0] = '\0';
	l->max_columns = columns;
	l->has_items = false;
}

/* Bytes from @begin to the end have @style. */
static void top_line_mark(struct top_line *l, size_t begin, enum top_style style)
{
	struct top_part *last = l->nr_parts ? &l->parts[l->nr_parts - 1] : NULL;

	if (begin == l->len)
		return;
	if (last && last->end == begin && (last->style == style || l->nr_parts == TOP_LINE_PARTS))
		last->end = (u16)l->len;
	else
		l->parts[l->nr_parts++] =
			(struct top_part){ .begin = (u16)begin, .end = (u16)l->len, .style = style };
}

bool top_line_put(struct top_line *l, enum top_style style, const char *text)
{
	size_t begin = l->len;
	bool fits = true;

	while (*text && fits) {
		struct letter u = next_letter(text);

		fits = l->columns + u.columns <= l->max_columns && l->len + u.len < sizeof(l->text);
		if (!fits)
			break;
		memcpy(l->text + l->len, u.text, u.len);
		l->len += u.len;
		l->columns += u.columns;
		text += u.used;
	}
	l->text[l->len] = '\0';
	top_line_mark(l, begin, style);
	return fits;
}

void top_line_printf(struct top_line *l, enum top_style style, const char *fmt, ...)
{
	char text[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	top_line_put(l, style, text);
}

static void put_spaces(struct top_line *l, enum top_style style, u32 nr)
{
	while (nr-- && top_line_put(l, style, " "))
		;
}

void top_line_cell(struct top_line *l, enum top_style style, int width, const char *text)
{
	u32 wanted = (u32)abs(width), columns = top_columns(text);
	u32 rest = wanted > columns ? wanted - columns : 0;

	if (width > 0)
		put_spaces(l, style, rest);
	top_line_put(l, style, text);
	if (width < 0)
		put_spaces(l, style, rest);
}

static void top_line_add_item(struct top_line *l, enum top_style style, u32 between, const char *text)
{
	between = l->has_items ? between : 0;
	if (l->columns + between + top_columns(text) > l->max_columns)
		return;
	put_spaces(l, TOP_PLAIN, between);
	top_line_put(l, style, text);
	l->has_items = true;
}

void top_line_item(struct top_line *l, enum top_style style, const char *fmt, ...)
{
	char text[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	top_line_add_item(l, style, 3, text);
}

void top_line_join(struct top_line *l, enum top_style style, const char *fmt, ...)
{
	char text[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	top_line_add_item(l, style, 1, text);
}

void top_line_fill(struct top_line *l, enum top_style style)
{
	put_spaces(l, style, l->max_columns - l->columns);
}

void top_line_restyle(struct top_line *l, enum top_style style)
{
	l->nr_parts = 0;
	top_line_mark(l, 0, style);
}
