/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The prompt with readline: completion, and a history that outlives the console. */
#include "user/console/console_edit.h"

#include <errno.h>

#ifdef WITHOUT_READLINE

bool console_edit_is_there(void)
{
	return false;
}

void console_edit_begin(console_words_fn words)
{
	(void)words;
}

void console_edit_end(void)
{
}

void console_edit_show(const char *prompt)
{
	(void)prompt;
}

void console_edit_hide(void)
{
}

void console_edit_drop(void)
{
}

int console_edit_take(char **line)
{
	(void)line;
	return -ENODATA;
}

void console_edit_remember(const char *line)
{
	(void)line;
}

#else

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <readline/history.h>
#include <readline/readline.h>

#include "user/console/console_history.h"

enum { MAX_HISTORY = 1000 };

/* Static, because the callbacks of readline have no context argument. */
static struct {
	console_words_fn words;
	char *line;   /* owned; a complete line, not taken yet */
	char *hidden; /* owned; the unfinished line of a prompt that is hidden. NULL = empty */
	int hidden_point;
	bool is_at_end;
	size_t next_word; /* number of the word that is completed next */
} edit;

bool console_edit_is_there(void)
{
	return true;
}

static void on_line(char *line)
{
	/* Remove the handler now, before readline shows another prompt. */
	rl_callback_handler_remove();
	if (!line) {
		edit.is_at_end = true;
		fputc('\n', stdout);
		return;
	}
	free(edit.line);
	edit.line = line;
}

static char *console_edit_next_word(const char *text, int state)
{
	const char *word;

	if (!state)
		edit.next_word = 0;
	word = edit.words(rl_line_buffer, rl_point - strlen(text), text, edit.next_word++);
	return word ? strdup(word) : NULL;
}

/* Without words readline completes names of files. */
static char **console_edit_complete(const char *text, int start, int end)
{
	(void)end;
	rl_attempted_completion_over = edit.words(rl_line_buffer, start, "", 0) != NULL;
	return rl_completion_matches(text, console_edit_next_word);
}

static void keep_line(void *ctx, const char *line)
{
	(void)ctx;
	add_history(line);
}

void console_edit_begin(console_words_fn words)
{
	edit.words = words;
	rl_readline_name = "heaptap";
	/* heaptap reads signals from a descriptor, in user/session/control.c. */
	rl_catch_signals = 0;
	rl_attempted_completion_function = console_edit_complete;
	stifle_history(MAX_HISTORY);
	console_history_load(keep_line, NULL);
}

static const char *line_at(size_t i)
{
	HIST_ENTRY **list = history_list();

	return list && list[i] ? list[i]->line : NULL;
}

void console_edit_end(void)
{
	console_history_save(line_at);
	clear_history();
	free(edit.line);
	free(edit.hidden);
	edit.line = edit.hidden = NULL;
}

void console_edit_show(const char *prompt)
{
	rl_callback_handler_install(prompt, on_line);
	if (!edit.hidden)
		return;
	rl_insert_text(edit.hidden);
	rl_point = edit.hidden_point;
	rl_redisplay();
	free(edit.hidden);
	edit.hidden = NULL;
}

void console_edit_hide(void)
{
	free(edit.hidden);
	edit.hidden = rl_end ? strdup(rl_line_buffer) : NULL;
	edit.hidden_point = rl_point;
	rl_clear_visible_line();
	rl_callback_handler_remove();
}

void console_edit_drop(void)
{
	rl_callback_sigcleanup();
	rl_replace_line("", 0);
	rl_callback_handler_remove();
	fputs("\n", stdout);
}

int console_edit_take(char **line)
{
	rl_callback_read_char();
	if (edit.line) {
		*line = edit.line;
		edit.line = NULL;
		return 1;
	}
	return edit.is_at_end ? -ENODATA : 0;
}

void console_edit_remember(const char *line)
{
	const char *last = history_length ? history_get(history_base + history_length - 1)->line : "";

	if (strcmp(line, last))
		add_history(line);
}

#endif
