/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Stand-in for the advice on wrong command lines: the agent does not guess what was meant. */
#include "user/cli/mistakes.h"

#include <string.h>

#include "user/lib/log.h"

void mistake_command(const char *text)
{
	error("%s: is not in the agent", text);
}

void mistake_argument(const struct command *command, const char *text)
{
	error("%s: one argument too many: %s", command->name, text);
}

void mistake_option(const struct command *command, const struct option_row *row, const char *text, int letter)
{
	size_t len = strcspn(text, "=");

	if (row)
		error("%s: option --%s is wrong here", command->name, row->name);
	else if (letter)
		error("%s: no option -%c", command->name, letter);
	else if (option_row_find(text + 2, len - 2))
		error("%s: no option %s", command->name, text);
	else
		error("%.*s: is not in the agent", (int)len, text);
}

void mistake_late_options(const struct options *o)
{
	(void)o;
}
