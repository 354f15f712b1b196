/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Splits lines of the console into words, and finds commands. Has no state, so that it can be tested alone. */
#include "user/console/console_parse.h"

#include <errno.h>
#include <string.h>

#include "user/lib/parse.h"

enum { MAX_COMMANDS = 64 };

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

/* Cut one word at *@in, in place. *@in moves behind the word. False: a quote is open. */
static bool take_word(char **in, char *out)
{
	char *p = *in, quote = '\0';

	for (; *p && (quote || !is_blank(*p)); p++) {
		if (quote ? *p == quote : *p == '\'' || *p == '"') {
			quote = quote ? '\0' : *p;
			continue;
		}
		if (*p == '\\' && quote != '\'' && p[1])
			p++;
		*out++ = *p;
	}
	*in = *p ? p + 1 : p;
	*out = '\0';
	return !quote;
}

int console_split(char *line, char *words[CONSOLE_MAX_WORDS])
{
	int nr = 0;

	for (;;) {
		while (is_blank(*line))
			line++;
		if (!*line || (!nr && *line == '#'))
			return nr;
		if (nr == CONSOLE_MAX_WORDS)
			return -E2BIG;
		words[nr++] = line;
		if (!take_word(&line, line))
			return -EINVAL;
	}
}

/* The first > of @line that begins a word, or NULL. */
static char *find_redirect(char *line)
{
	char quote = '\0';
	bool is_start = true;

	for (; *line; line++) {
		if (!quote && is_start && *line == '>')
			return line;
		is_start = !quote && is_blank(*line);
		if (quote ? *line == quote : *line == '\'' || *line == '"')
			quote = quote ? '\0' : *line;
		else if (*line == '\\' && quote != '\'' && line[1])
			line++;
	}
	return NULL;
}

int console_cut_file(char *line, char **file, bool *appends)
{
	char *words[CONSOLE_MAX_WORDS], *at;
	int nr;

	*file = NULL;
	*appends = false;
	while (is_blank(*line))
		line++;
	at = *line == '#' ? NULL : find_redirect(line);
	if (!at)
		return 0;
	*appends = at[1] == '>';
	*at = '\0';
	at += *appends ? 2 : 1;
	/* A name may begin with #, which would be a comment at the start of a line. */
	while (is_blank(*at))
		at++;
	if (*at == '#')
		return -ENOENT;
	nr = console_split(at, words);
	if (nr != 1)
		return nr == -EINVAL ? nr : -ENOENT;
	*file = words[0];
	return *words[0] ? 0 : -ENOENT;
}

const struct console_command *console_matches(const char *text, size_t i)
{
	size_t len = strlen(text);

	for (const struct console_command *c = console_commands; c->name; c++)
		if (!strncmp(c->name, text, len) && !i--)
			return c;
	return NULL;
}

int console_find(const char *name, const struct console_command **out)
{
	const char *names[MAX_COMMANDS];
	const char *nearest;
	size_t nr = 0;

	for (; nr < MAX_COMMANDS && console_commands[nr].name; nr++) {
		*out = &console_commands[nr];
		if (!strcmp((*out)->name, name))
			return 0;
		names[nr] = (*out)->name;
	}
	*out = *name ? console_matches(name, 0) : NULL;
	if (*out)
		return console_matches(name, 1) ? -EEXIST : 0;
	nearest = parse_nearest(name, names, nr);
	for (size_t i = 0; nearest && i < nr; i++)
		if (names[i] == nearest)
			*out = &console_commands[i];
	return -ENOENT;
}
