/* SPDX-License-Identifier: GPL-2.0-or-later */
/* In the agent: no suppressions. The options that would make some are refused, so that of these none is given rules. */
#include <errno.h>

#include "user/leaks.h"
#include "user/suppress.h"

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
