/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Splits a line of the console into words, and finds the command that the first word names. */
#pragma once

#include "user/lib/types.h"

struct console;

/* The sources for which a command makes sense. */
enum console_where { CONSOLE_ANYWHERE, CONSOLE_LIVE, CONSOLE_RECORDING };

/* The words that complete the first argument of a command. */
enum console_words { WORDS_NONE, WORDS_FILES, WORDS_COMMANDS, WORDS_KEYS, WORDS_SETTINGS };

struct console_command {
	const char *name;
	const char *args; /* "[KEY] [N]" */
	const char *help; /* one line */
	/*
	 * Run the command with @nr arguments @words; @nr is within the limits below. Prints to c->out. 0; -EINVAL: used
	 * wrongly; or another -errno. Errors are logged.
	 */
	int (*run)(struct console *c, size_t nr, char **words);
	u8 min_args, max_args;
	u8 where;      /* enum console_where */
	u8 first_word; /* enum console_words */
	bool repeats;  /* `watch` can run it */
};

/* In the order of the help; the last row has no name. */
extern const struct console_command console_commands[];

enum { CONSOLE_MAX_WORDS = 16 };

/*
 * Cut @line, which is changed, into words, at blanks that are not inside quotes ('', ""). A backslash takes the next
 * character as it is, but not inside ''. A line that begins with # is a comment without words. Returns the number of
 * words; -EINVAL: a quote is open; -E2BIG: more than CONSOLE_MAX_WORDS.
 */
int console_split(char *line, char *words[CONSOLE_MAX_WORDS]) __must_check;

/*
 * Cut "> FILE" or ">> FILE" off the end of @line, which is changed. The > begins a word and is in no quotes. *@file is
 * the name, in @line, or NULL if there is none. 0; -EINVAL: a quote is open; -ENOENT: no name, or more than one.
 */
int console_cut_file(char *line, char **file, bool *appends) __must_check;

/*
 * Find the command @name, or the only command whose name begins with @name. 0; -ENOENT: no command, and *@out is a
 * similar one or NULL; -EEXIST: several commands, and *@out is the first one. console_matches() lists them all.
 */
int console_find(const char *name, const struct console_command **out) __must_check;

/* Command number @i of those that begin with @text, or NULL behind the last one. */
const struct console_command *console_matches(const char *text, size_t i);
