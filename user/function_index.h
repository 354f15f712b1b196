/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Functions of a file by address, from its symbol tables. */
#pragma once

#include <elfutils/libdwfl.h>

#include "user/lib/types.h"

struct function_index;

/*
 * Index the symbol table of @module (.symtab, else .gnu_debugdata and .dynsym), here or in its separate
 * file. *@out is owned by the caller; names in it live as long as @module. 0, -ENOENT without any symbol, -ENOMEM.
 */
int function_index_new(struct function_index **out, Dwfl_Module *module) __must_check;
void function_index_free(struct function_index *index);

/*
 * The linker symbol of the function that holds @addr, or NULL. A symbol with a size ends there; one
 * without reaches up to the next one in its section.
 */
const char *function_index_find(const struct function_index *index, u64 addr);
