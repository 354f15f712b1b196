/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Lines of a script or of a terminal. No function here waits for input. */
#pragma once

#include "user/lib/types.h"

/* There can be only one, because readline keeps its state in globals. */
struct console_input;

/* The word number @i that @text, at letter @start of @line, may become, or NULL behind the last one. Borrowed. */
typedef const char *(*console_words_fn)(const char *line, size_t start, const char *text, size_t i);

/*
 * Read from standard input. @is_terminal: with editing and the history, if heaptap was built with readline. 0 or
 * -ENOMEM.
 */
int console_input_new(struct console_input **out, bool is_terminal, console_words_fn words) __must_check;
void console_input_free(struct console_input *in); /* NULL is fine */

/* The descriptor to poll for input, or -1 if a line can be taken at once. */
int console_input_fd(const struct console_input *in);

/* Show @prompt, if this is a terminal, and accept a line. */
void console_input_show(struct console_input *in, const char *prompt);

/* Release the terminal until console_input_show(). */
void console_input_hide(struct console_input *in);

/* Drop the unfinished line. */
void console_input_drop(struct console_input *in);

/*
 * Take a line without its end; the caller owns *@line. 1: *@line is a line; 0: no line yet; -ENODATA: end of the input;
 * -E2BIG: the line is too long; or another -errno.
 */
int console_input_take(struct console_input *in, char **line) __must_check;

/* Remember @line in the history. */
void console_input_remember(struct console_input *in, const char *line);
