/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What somebody types at the console: a line into words, the first word into a row of the table of commands. */
#pragma once

#include "user/lib/types.h"

struct console;

/* Where a command makes sense. */
enum console_where { CONSOLE_ANYWHERE, CONSOLE_LIVE, CONSOLE_RECORDING };

/* What a command's first argument may be, for completion. */
enum console_words { WORDS_NONE, WORDS_FILES, WORDS_COMMANDS, WORDS_KEYS, WORDS_SETTINGS };

struct console_command {
	const char *name;
	const char *args; /* "[KEY] [N]" */
	const char *help; /* one line */
	/*
	 * @nr arguments within the limits below, @words; prints to the console's output. 0; -EINVAL: used wrongly, or
	 * another -errno; both logged.
	 */
	int (*run)(struct console *c, size_t nr, char **words);
	u8 min_args, max_args;
	u8 where;      /* enum console_where */
	u8 first_word; /* enum console_words */
};

/* In the order of the help; the last row has no name. */
extern const struct console_command console_commands[];

enum { CONSOLE_MAX_WORDS = 16 };

/*
 * Cut @line, which is changed, into words: at blanks that no quotes ('', "") protect; a backslash takes the next
 * character as it is, but not inside ''. A line that begins with # has none. How many; -EINVAL: an open quote, -E2BIG:
 * more than CONSOLE_MAX_WORDS.
 */
int console_split(char *line, char *words[CONSOLE_MAX_WORDS]) __must_check;

/*
 * The command whose name is @name or, alone of all, begins with it. 0; -ENOENT none: *@out is one that was perhaps
 * meant, or NULL; -EEXIST several: *@out is the first of them, console_matches() tells all.
 */
int console_find(const char *name, const struct console_command **out) __must_check;

/* Number @i of the commands that begin with @text, NULL behind the last. */
const struct console_command *console_matches(const char *text, size_t i);
