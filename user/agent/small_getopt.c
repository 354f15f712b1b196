/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * In place of musl's function: what heaptap asks of getopt_long(). Short texts begin with + if options end at the first
 * argument, and then with a colon. Long names are whole. Arguments in front of options move behind them.
 */
#include <getopt.h>
#include <stddef.h>
#include <string.h>

/* As getopt_long() has them. */
char *optarg;
int optind = 1, opterr, optopt;

/* Of a cluster of letters: the next one; NULL = none. */
static char *next_letter;

/* The value of the option @id: @own is in the same word. */
static int take_value(int argc, char *const *argv, int id, char *own)
{
	optarg = own ? own : optind < argc ? argv[optind++] : NULL;
	optopt = id;
	return optarg ? id : ':';
}

static int take_long(int argc, char *const *argv, const char *name, const struct option *longs)
{
	size_t len = strcspn(name, "=");
	char *own = name[len] ? (char *)(size_t)name + len + 1 : NULL;

	optopt = 0;
	for (const struct option *l = longs; l->name; l++) {
		if (strncmp(l->name, name, len) != 0 || l->name[len])
			continue;
		if (l->has_arg == required_argument)
			return take_value(argc, argv, l->val, own);
		optopt = l->val;
		return own ? '?' : l->val;
	}
	return '?';
}

static int take_letter(int argc, char *const *argv, const char *shorts)
{
	char letter = *next_letter++;
	const char *found = letter == ':' ? NULL : strchr(shorts, letter);
	char *own = *next_letter ? next_letter : NULL;

	if (!own)
		next_letter = NULL;
	optopt = letter;
	if (!found)
		return '?';
	if (found[1] != ':')
		return letter;
	next_letter = NULL;
	return take_value(argc, argv, letter, own);
}

/* Move argv[@from] in front of argv[@to], an earlier one. */
static void move(char **argv, int from, int to)
{
	char *word = argv[from];

	memmove(&argv[to + 1], &argv[to], (size_t)(from - to) * sizeof(*argv));
	argv[to] = word;
}

static int take(int argc, char *const *argv, const char *shorts, const struct option *longs)
{
	char *word = argv[optind++];

	if (word[1] == '-')
		return take_long(argc, argv, word + 2, longs);
	next_letter = word + 1;
	return take_letter(argc, argv, shorts);
}

int getopt_long(int argc, char *const *argv, const char *shorts, const struct option *longs, int *index)
{
	int begin, at, found, used;

	(void)index;
	if (!optind) {
		optind = 1;
		next_letter = NULL;
	}
	if (next_letter)
		return take_letter(argc, argv, shorts);
	begin = at = optind;
	while (*shorts != '+' && at < argc && (argv[at][0] != '-' || !argv[at][1]))
		at++;
	if (at >= argc || argv[at][0] != '-' || !argv[at][1])
		return -1;
	optind = at;
	if (!strcmp(argv[at], "--")) {
		found = -1;
		optind++;
	} else {
		found = take(argc, argv, shorts, longs);
	}
	used = optind - at;
	for (int i = 0; i < used; i++)
		move((char **)(size_t)argv, at + i, begin + i);
	optind = begin + used;
	return found;
}
