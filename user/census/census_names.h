/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Names for a census: classes of objects by their run-time type information, variables that hold blocks. */
#pragma once

#include "user/census/census.h"
#include "user/names/symbolize.h"
#include "user/scan/scan_why.h"

struct census_names;

struct census_name {
	const char
		*kind;	/* "class", "data", "code", "stack", "tls", "register", "kernel", "memory", "lost" */
	char text[256]; /* escaped for a terminal; "" = unknown */
	char object[128]; /* escaped path of the file; "" = none */
	u64 offset;	  /* in the variable or file */
};

/*
 * Prepare to name places of @c, which is borrowed. Reads the mappings of the process if it still exists. *@out is owned
 * by the caller: census_names_free(). 0 or -ENOMEM.
 */
int census_names_new(struct census_names **out, const struct census *c,
		     const struct symbolizer_options *options) __must_check;
void census_names_free(struct census_names *n); /* NULL is fine */

/* Name a type by the address that its blocks begin with. Blocks on disk I/O. 0 or -ENOMEM. */
int census_name_type(struct census_names *n, taddr_t addr, struct census_name *out) __must_check;

/* Name the root of a chain; @is_lost: the chain begins at a lost block. 0 or -ENOMEM. */
int census_name_root(struct census_names *n, const struct scan_root *root, bool is_lost,
		     struct census_name *out) __must_check;
