/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Hostile names in place of those of the symbolizer. Include it in one file of a test: it defines extern functions. */
#pragma once

#include <string.h>

#include "tests/unit/report/symbolize_stand_in.h"

enum { HOSTILE_LONG = 100000 };

#define HOSTILE_NAME "</x>]]>\"'&\n\r%0A::,%\\\t\033[2J\xff\xc0\x80\xe2\x80\xae"
#define HOSTILE_FILE "/src/]]>-->\n::error::\"x,y:z%.c"

int symbolize(struct symbolizer *s, struct code_ref ref, const struct symbol **symbols, size_t *nr)
{
	static char long_name[HOSTILE_LONG + 1];
	static const struct symbol unknown;
	static struct symbol named[] = { { "inlined", "/src/a.h", 7, true },
					 { "caller", "/src/a.c", 70, false } };
	static struct symbol evil = { HOSTILE_NAME, HOSTILE_FILE, 42, false };
	static struct symbol endless = { long_name, long_name, 1, false };
	static struct symbol bare = { "bare", NULL, 0, false };

	(void)s;
	memset(long_name, 'A', HOSTILE_LONG);
	*nr = ref.offset == 0x100 ? 2 : 1;
	*symbols = ref.offset == 0x100	 ? named
		   : ref.offset == 0x200 ? &evil
		   : ref.offset == 0x300 ? &endless
		   : ref.offset == 0x400 ? &bare
					 : &unknown;
	return symbolize_err;
}
