/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Stand-in for user/names in the agent: places have only module and offset. heaptap elsewhere finds the names. */
#include <errno.h>
#include <stdlib.h>

#include "user/names/symbolize.h"

struct symbolizer {
	struct symbol unknown;
};

int symbolizer_new(struct symbolizer **out, const struct module_table *modules,
		   const struct symbolizer_options *options)
{
	(void)modules;
	(void)options;
	*out = calloc(1, sizeof(**out));
	return *out ? 0 : -ENOMEM;
}

void symbolizer_free(struct symbolizer *s)
{
	free(s);
}

int symbolize(struct symbolizer *s, struct code_ref ref, const struct symbol **symbols, size_t *nr)
{
	(void)ref;
	*symbols = &s->unknown;
	*nr = 1;
	return 0;
}

void symbolizer_open(struct symbolizer *s, struct module *m)
{
	(void)s;
	(void)m;
}

int symbolize_data(struct symbolizer *s, struct code_ref ref, bool is_tls, const char **name, u64 *offset)
{
	(void)s;
	(void)ref;
	(void)is_tls;
	*name = NULL;
	*offset = 0;
	return 0;
}

size_t symbolizer_stale(const struct symbolizer *s)
{
	(void)s;
	return 0;
}

size_t symbolizer_unread(const struct symbolizer *s)
{
	(void)s;
	return 0;
}
