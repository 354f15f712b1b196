/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Linker names made readable. */
#pragma once

#include "user/lib/types.h"

enum { DEMANGLE_MAX = 4096 }; /* bytes of a readable name; longer ones end in "..." */

/*
 * The name of the function behind the linker symbol @symbol into @buf: C++ and Rust names taken apart
 * ("std::vector<int>::push_back(int const&)": no return types, no default allocators), others as they are,
 * in both without what compilers and linkers add (".isra.0", ".cold", "@@GLIBC_2.2.5"). Time and memory are
 * bounded for names made to blow up.
 */
void demangle(char buf[DEMANGLE_MAX], const char *symbol);
