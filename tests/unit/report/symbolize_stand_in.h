/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Stands in for the symbolizer, all but symbolize(), which each test has of its own. Include it in one file of a test:
 * it defines extern functions.
 */
#pragma once

#include "user/names/symbolize.h"

static size_t nr_stale, nr_unread; /* files that changed, files that could not be read */
static int symbolize_err;	   /* what looking up a name returns */

int symbolize_data(struct symbolizer *s, struct code_ref ref, bool is_tls, const char **name, u64 *offset)
{
	(void)s, (void)ref, (void)is_tls, (void)offset;
	*name = NULL;
	return symbolize_err;
}

void symbolizer_open(struct symbolizer *s, struct module *m)
{
	(void)s, (void)m;
}

bool symbolizer_asks_server(const struct symbolizer *s)
{
	(void)s;
	return false;
}

size_t symbolizer_stale(const struct symbolizer *s)
{
	(void)s;
	return nr_stale;
}

size_t symbolizer_unread(const struct symbolizer *s)
{
	(void)s;
	return nr_unread;
}
