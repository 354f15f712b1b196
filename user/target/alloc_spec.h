/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The description of a custom allocator: --alloc malloc=my_alloc,free=my_free,arg=1,object=FILE. */
#pragma once

#include "user/lib/types.h"

struct alloc_table;

/* ELF symbols; NULL = the allocator has no such function. All strings point into text. */
struct alloc_spec {
	char *text; /* owned */
	const char *malloc_symbol;
	const char *calloc_symbol;
	const char *realloc_symbol;
	const char *free_symbol;
	const char *object; /* only in files of this name or path; NULL = in any */
	u8 arg;		    /* position of the argument that is malloc's first one: 2 behind a pool pointer */
};

/*
 * Parse @text. Returns 0 and fills @spec (alloc_spec_fini()), -ENOMEM, or -EINVAL and a text about the error in
 * *@why.
 */
int alloc_spec_parse(struct alloc_spec *spec, const char *text, const char **why) __must_check;
void alloc_spec_fini(struct alloc_spec *spec);

/* Add the functions of @spec to @table. Known symbols stay unchanged. 0 or -errno. */
int alloc_spec_add(struct alloc_table *table, const struct alloc_spec *spec) __must_check;
