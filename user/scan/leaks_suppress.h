/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Rules that leave leaks out, and names for them. */
#pragma once

#include <stdio.h>

struct heap;
struct leaks;
struct module_table;
struct stack_table;
struct suppress_list;
struct symbolizer;

/* Where the names of stacks come from. All borrowed. */
struct leaks_names {
	const struct heap *heap;
	const struct stack_table *stacks;
	const struct module_table *modules;
	struct symbolizer *symbolizer; /* NULL = no names */
};

/* Move blocks that a rule of @list leaves out from the sums to the suppressed sums. 0 or -ENOMEM. */
int leaks_suppress(struct leaks *l, const struct suppress_list *list,
		   const struct leaks_names *names) __must_check;

/* Write a suppression for each caller with leaks. 0, -ENOMEM or -EIO. */
int leaks_write_suppressions(FILE *out, const struct leaks *l, const struct leaks_names *names) __must_check;
