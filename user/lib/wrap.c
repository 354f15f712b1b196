/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Breaks long lines of text reports on their way to the terminal or the file. */
#include "user/lib/wrap.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

enum { MAX_LINE = 8192, HANGING = 4, BEST = 4, NARROW = 40, DEFAULT_WIDTH = 80 };

struct wrapped_lines {
	FILE *out;     /* borrowed */
	u64 *nr_lines; /* borrowed; NULL = nobody counts */
	u32 width;
	size_t len;
	bool is_long; /* the beginning of this line was too long to be kept, and is written */
	char line[MAX_LINE];
};

/* The bytes of the character or escape code at @s, and whether it takes a column. */
static size_t wrap_step(const char *s, const char *end, u32 *columns)
{
	const char *at = s + 1;

	*columns = *s != '\033';
	if (*s == '\033') {
		while (at < end && *at != 'm')
			at++;
		return (size_t)(at < end ? at + 1 - s : at - s);
	}
	while (at < end && ((u8)*at & 0xc0) == 0x80)
		at++;
	return (size_t)(at - s);
}

static bool wrap_begins(const char *s, const char *end, const char *word)
{
	return (size_t)(end - s) >= strlen(word) && !strncmp(s, word, strlen(word));
}

/* " at file.c:12" or " in libx.so" at the end of a line, perhaps with " (inlined)"; not " in blocks (from f)". */
static bool is_place(const char *s, const char *end)
{
	const char *blank;

	if (!wrap_begins(s, end, " at ") && !wrap_begins(s, end, " in "))
		return false;
	blank = memchr(s + 4, ' ', (size_t)(end - s) - 4);
	return blank ? wrap_begins(blank, end, " (inlined)") : end[-1] != ')';
}

/* How good a place the blank at @s is to break a line that ends at @end: BEST or less. */
static u32 wrap_rank(const char *begin, const char *s, const char *end)
{
	char before = s > begin ? s[-1] : '\0';

	if (is_place(s, end))
		return BEST;
	if (before == ';' || (wrap_begins(s, end, " (") && end[-1] == ')'))
		return 3;
	if (before == ',' || wrap_begins(s, end, "  ") || wrap_begins(s, end, " < "))
		return 2;
	return 1;
}

/* The blank that ends the part of @s to @end that fits @width columns after @indent; @end = all fits, or no blank. */
static const char *find_break(const char *s, const char *end, u32 indent, u32 width)
{
	const char *begin = s, *best[BEST + 1] = { NULL };
	u32 column = indent, columns, first, how;
	bool is_any = false;

	/* The blanks in front of a line are no place to break it, nor is one behind a short word such as "at". */
	while (s < end && *s == ' ')
		s++, column++;
	first = column + (HANGING < width / 2 ? HANGING : width / 2);
	for (; s < end; s += wrap_step(s, end, &columns), column += columns) {
		if (column > width && is_any)
			break;
		if (*s != ' ' || s[-1] == ' ' || column < first)
			continue;
		if (column > width)
			return s;
		/* A short beginning looks worse than a break at a worse place. */
		how = wrap_rank(begin, s, end);
		is_any = true;
		best[how == BEST || column > (how == 3 ? width / 3 : width * 3 / 5) ? how : 1] = s;
	}
	if (column <= width)
		return end;
	for (how = BEST; how && !best[how];)
		how--;
	return how ? best[how] : end;
}

static void wrap_count(const struct wrapped_lines *w)
{
	if (w->nr_lines)
		(*w->nr_lines)++;
}

static void wrap_write_line(const struct wrapped_lines *w, const char *s, const char *end)
{
	u32 begin = 0, hanging, indent = 0;

	while (s + begin < end && s[begin] == ' ')
		begin++;
	/* Columns of a table are of no use in so few columns. */
	if (w->width < NARROW && begin > w->width / 4) {
		s += begin - w->width / 4;
		begin = w->width / 4;
	}
	hanging = begin + HANGING;
	if (hanging > w->width / 2)
		hanging = w->width / 2;
	for (;;) {
		const char *to = find_break(s, end, indent, w->width);

		fwrite(s, 1, (size_t)(to - s), w->out);
		if (to == end)
			return;
		for (s = to; s < end && *s == ' ';)
			s++;
		indent = hanging;
		fprintf(w->out, "\n%*s", (int)indent, "");
		wrap_count(w);
	}
}

static void end_line(struct wrapped_lines *w)
{
	if (w->is_long)
		fwrite(w->line, 1, w->len, w->out);
	else
		wrap_write_line(w, w->line, w->line + w->len);
	w->len = 0;
	w->is_long = false;
}

static void wrap_take(struct wrapped_lines *w, const char *s, size_t len)
{
	while (len) {
		size_t n = len < MAX_LINE - 1 - w->len ? len : MAX_LINE - 1 - w->len;

		memcpy(w->line + w->len, s, n);
		w->len += n;
		w->line[w->len] = '\0';
		s += n;
		len -= n;
		if (w->len < MAX_LINE - 1)
			return;
		fwrite(w->line, 1, w->len, w->out);
		w->len = 0;
		w->is_long = true;
	}
}

static ssize_t wrap_write(void *cookie, const char *data, size_t size)
{
	struct wrapped_lines *w = cookie;
	const char *end = data + size, *newline;

	for (; (newline = memchr(data, '\n', (size_t)(end - data))); data = newline + 1) {
		wrap_take(w, data, (size_t)(newline - data));
		end_line(w);
		putc('\n', w->out);
		wrap_count(w);
	}
	wrap_take(w, data, (size_t)(end - data));
	return (ssize_t)size;
}

static int wrap_close(void *cookie)
{
	struct wrapped_lines *w = cookie;

	end_line(w);
	free(w);
	return 0;
}

FILE *wrap_open(FILE *out, u32 width)
{
	return wrap_open_counted(out, width, NULL);
}

FILE *wrap_open_counted(FILE *out, u32 width, u64 *nr_lines)
{
	struct wrapped_lines *w = calloc(1, sizeof(*w));
	FILE *file;

	if (!w)
		return NULL;
	w->out = out;
	w->nr_lines = nr_lines;
	w->width = width;
	file = fopencookie(w, "w", (cookie_io_functions_t){ .write = wrap_write, .close = wrap_close });
	if (!file)
		free(w);
	return file;
}

u32 wrap_width(FILE *out)
{
	struct winsize size;

	return !ioctl(fileno(out), TIOCGWINSZ, &size) && size.ws_col ? size.ws_col : DEFAULT_WIDTH;
}
