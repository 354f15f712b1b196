/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reads lines from standard input: a script, or a terminal, where user/console/console_edit.c edits them if it can. */
#include "user/console/console_input.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "user/console/console_edit.h"
#include "user/lib/array.h"

enum { MAX_LINE = 64 * 1024, PORTION = 4096 };

struct console_input {
	bool is_terminal, is_edited, is_shown;
	bool is_at_end;	 /* of standard input */
	char *bytes;	 /* owned; bytes that were read and not taken yet */
	size_t nr, room; /* bytes */
};

int console_input_new(struct console_input **out, bool is_terminal, console_words_fn words)
{
	struct console_input *in = calloc(1, sizeof(*in));

	if (!in)
		return -ENOMEM;
	in->is_terminal = is_terminal;
	in->is_edited = is_terminal && console_edit_is_there();
	if (in->is_edited)
		console_edit_begin(words);
	*out = in;
	return 0;
}

void console_input_free(struct console_input *in)
{
	if (!in)
		return;
	console_input_hide(in);
	if (in->is_edited)
		console_edit_end();
	free(in->bytes);
	free(in);
}

static bool has_line(const struct console_input *in)
{
	return in->is_at_end || (in->nr && memchr(in->bytes, '\n', in->nr));
}

int console_input_fd(const struct console_input *in)
{
	return has_line(in) ? -1 : STDIN_FILENO;
}

void console_input_show(struct console_input *in, const char *prompt)
{
	if (!in->is_terminal || in->is_shown)
		return;
	in->is_shown = true;
	if (in->is_edited) {
		console_edit_show(prompt);
		return;
	}
	fputs(prompt, stdout);
	fflush(stdout);
}

void console_input_hide(struct console_input *in)
{
	if (in->is_shown && in->is_edited)
		console_edit_hide();
	in->is_shown = false;
}

void console_input_drop(struct console_input *in)
{
	/* Without readline the terminal itself has dropped the line. */
	if (in->is_edited)
		console_edit_drop();
	else
		fputc('\n', stdout);
	in->is_shown = false;
}

/* Read more bytes, if there are any. */
static int console_input_read_some(struct console_input *in)
{
	ssize_t len;

	if (array_reserve(in->bytes, in->room, in->nr + PORTION))
		return -ENOMEM;
	len = read(STDIN_FILENO, in->bytes + in->nr, PORTION);
	if (len < 0)
		return errno == EINTR || errno == EAGAIN ? 0 : -errno;
	in->nr += (size_t)len;
	in->is_at_end = !len;
	return 0;
}

int console_input_take(struct console_input *in, char **line)
{
	char *end;
	size_t len;
	int err;

	if (in->is_edited) {
		err = console_edit_take(line);
		in->is_shown &= !err;
		return err;
	}
	err = has_line(in) ? 0 : console_input_read_some(in);
	if (err)
		return err;
	end = in->nr ? memchr(in->bytes, '\n', in->nr) : NULL;
	if (!end && in->nr > MAX_LINE)
		return -E2BIG;
	if (!end && !in->is_at_end)
		return 0;
	if (!end && !in->nr)
		return -ENODATA;
	len = end ? (size_t)(end - in->bytes) : in->nr;
	*line = strndup(in->bytes, len);
	if (!*line)
		return -ENOMEM;
	len += end != NULL;
	in->nr -= len;
	memmove(in->bytes, in->bytes + len, in->nr);
	in->is_shown = false;
	return 1;
}

void console_input_remember(struct console_input *in, const char *line)
{
	if (in->is_edited)
		console_edit_remember(line);
}
