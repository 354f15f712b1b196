/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Stand-in for suppressions in the agent. Its options for them are refused, so these functions get no rules. */
#include <errno.h>

#include "user/scan/leaks.h"
#include "user/scan/leaks_suppress.h"
#include "user/scan/suppress_program.h"

int suppress_new(struct suppress_list **out)
{
	*out = NULL;
	return -ENOTSUP;
}

void suppress_free(struct suppress_list *list)
{
	(void)list;
}

int suppress_add_file(struct suppress_list *list, const char *path)
{
	(void)list;
	(void)path;
	return -ENOTSUP;
}

int suppress_add_ignore(struct suppress_list *list, const char *regex, const char *where)
{
	(void)list;
	(void)regex;
	(void)where;
	return -ENOTSUP;
}

int suppress_add_program(struct suppress_list *list, struct elf *elf)
{
	(void)list;
	(void)elf;
	return -ENOTSUP;
}

int leaks_suppress(struct leaks *l, const struct suppress_list *list, const struct leaks_names *names)
{
	(void)l;
	(void)list;
	(void)names;
	return 0;
}

int leaks_write_suppressions(FILE *out, const struct leaks *l, const struct leaks_names *names)
{
	(void)out;
	(void)l;
	(void)names;
	return 0;
}
