/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Functions, or variables, of a file by address, from its symbol tables. */
#pragma once

#include <elfutils/libdwfl.h>

#include "user/lib/types.h"

struct function_index;
struct reader_jail;

/* The kind of symbols in an index. */
enum symbol_sort {
	SYMBOL_FUNCTIONS,
	SYMBOL_DATA,
	SYMBOL_TLS, /* thread-local variables: their addresses count from the start of the segment */
};

/*
 * Index the symbol table of @module (.symtab, or else .gnu_debugdata and .dynsym), of its own file or the separate
 * one. *@out is owned by the caller, and its names live as long as @module. @jail limits the memory of symbols that
 * are packed; NULL = no limit. 0, -ENOENT without any symbol, -ENOMEM.
 */
int function_index_new(struct function_index **out, Dwfl_Module *module, enum symbol_sort sort,
		       struct reader_jail *jail) __must_check;
void function_index_free(struct function_index *index);

/*
 * The linker symbol of the function that holds @addr, or NULL. A symbol without a size reaches to the next symbol in
 * its section.
 */
const char *function_index_find(const struct function_index *index, u64 addr);

/*
 * The variable that holds @addr, or NULL. *@offset is the offset in the variable. Only variables with a size count.
 */
const char *function_index_find_data(const struct function_index *index, u64 addr, u64 *offset);
