/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Lines that somebody types, or a script holds, without waiting for them. */
#pragma once

#include "user/lib/types.h"

/* There is one: libraries that edit lines keep their state in globals. */
struct console_input;

/* Words that @text, @start letters into the line @line, may become: number @i, NULL behind the last. Borrowed. */
typedef const char *(*console_words_fn)(const char *line, size_t start, const char *text, size_t i);

/*
 * From the standard input; @is_terminal: edited there where heaptap was built with a library for that, with the history
 * of before. 0 or -ENOMEM.
 */
int console_input_new(struct console_input **out, bool is_terminal, console_words_fn words) __must_check;
void console_input_free(struct console_input *in); /* NULL is fine */

/* What to wait for: readable when there is something. -1 = a line is there already. */
int console_input_fd(const struct console_input *in);

/* Show @prompt, if this is a terminal, and let a line be typed. */
void console_input_show(struct console_input *in, const char *prompt);

/* The terminal is for others until console_input_show(). */
void console_input_hide(struct console_input *in);

/* Drop what has been typed of a line. */
void console_input_drop(struct console_input *in);

/*
 * Take what is there. 1: a line, *@line is owned by the caller, without its end; 0: none yet; -ENODATA: there are no
 * more; -E2BIG: a line is too long; or another -errno.
 */
int console_input_take(struct console_input *in, char **line) __must_check;

/* Remember @line in the history. */
void console_input_remember(struct console_input *in, const char *line);
