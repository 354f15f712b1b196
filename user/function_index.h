/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Functions, or variables, of a file by address, from its symbol tables. */
#pragma once

#include <elfutils/libdwfl.h>

#include "user/lib/types.h"

struct function_index;

/* What is in an index. */
enum symbol_sort {
	SYMBOL_FUNCTIONS,
	SYMBOL_DATA,
	SYMBOL_TLS, /* thread-local variables: their addresses count from the start of the segment */
	NR_SYMBOL_SORTS
};

/*
 * Index the symbol table of @module (.symtab, else .gnu_debugdata and .dynsym), here or in its separate
 * file. *@out is owned by the caller; names in it live as long as @module. 0, -ENOENT without any symbol, -ENOMEM.
 */
int function_index_new(struct function_index **out, Dwfl_Module *module, enum symbol_sort sort) __must_check;
void function_index_free(struct function_index *index);

/*
 * The linker symbol of the function that holds @addr, or NULL. A symbol with a size ends there; one
 * without reaches up to the next one in its section.
 */
const char *function_index_find(const struct function_index *index, u64 addr);

/* The variable that holds @addr, or NULL; *@offset is where in it. Only ones with a size. */
const char *function_index_find_data(const struct function_index *index, u64 addr, u64 *offset);
