/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Linker names made readable. */
#pragma once

#include "user/lib/types.h"

enum { DEMANGLE_MAX = 4096 }; /* bytes of a readable name; longer ones end in "..." */

/*
 * Write the readable name of linker symbol @symbol to @buf. C++ and Rust names are demangled:
 * "std::vector<int>::push_back(int const&)", without return types and default allocators. All names lose the
 * additions of compilers and linkers (".isra.0", ".cold", "@@GLIBC_2.2.5"). Time and memory are bounded, also for
 * hostile names.
 */
void demangle(char buf[DEMANGLE_MAX], const char *symbol);
