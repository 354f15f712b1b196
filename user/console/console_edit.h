/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Edits lines with readline, for user/console/console_input.c. Without the library all functions do nothing. */
#pragma once

#include "user/console/console_input.h"

/* Was heaptap built with readline? */
bool console_edit_is_there(void);

void console_edit_begin(console_words_fn words);
/* Saves the history. */
void console_edit_end(void);

/* Like console_input_show() and so on. console_edit_take() reads one character: 1 with *@line, 0 or -ENODATA. */
void console_edit_show(const char *prompt);
void console_edit_hide(void);
void console_edit_drop(void);
int console_edit_take(char **line) __must_check;
void console_edit_remember(const char *line);
