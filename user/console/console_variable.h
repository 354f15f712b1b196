/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Finds a global variable of a process by its name. */
#pragma once

#include "user/lib/types.h"

struct target;

/*
 * The variable @name in the symbols of the files that @t has mapped, those of the program first: *@addr, and *@size in
 * bytes, 0 = not known. Blocks on disk I/O. 0; -ENOENT; -ENOMEM.
 */
int console_variable(const struct target *t, const char *name, taddr_t *addr, u64 *size) __must_check;
