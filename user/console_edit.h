/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Editing of lines by a library; for console_input.c. Without the library all of it does nothing. */
#pragma once

#include "user/console_input.h"

/* Was heaptap built with it? */
bool console_edit_is_there(void);

void console_edit_begin(console_words_fn words);
/* Keeps the history. */
void console_edit_end(void);

/* As their namesakes. take: one character; 1 with *@line, 0 or -ENODATA. */
void console_edit_show(const char *prompt);
void console_edit_hide(void);
void console_edit_drop(void);
int console_edit_take(char **line) __must_check;
void console_edit_remember(const char *line);
