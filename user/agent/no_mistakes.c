/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Stand-in for the advice on wrong command lines: the agent says what is wrong, and does not guess what was meant. */
#include "user/cli/mistakes.h"
#include "user/lib/log.h"

void mistake_command(const char *text)
{
	error("%s: no such command; see 'heaptap help'", text);
}

void mistake_argument(const struct command *command, const char *text)
{
	error("%s: one argument too many: %s", command->name, text);
}

void mistake_option(const struct command *command, const struct option_row *row, const char *text, int letter)
{
	if (row)
		error("%s: option --%s is wrong here", command->name, row->name);
	else if (letter)
		error("%s: no option -%c", command->name, letter);
	else
		error("%s: no option %s", command->name, text);
}

void mistake_late_options(const struct options *o)
{
	(void)o;
}
