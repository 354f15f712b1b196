/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Says what a user types to get the names of a file that has none: the package of the distribution. */
#pragma once

#include <stddef.h>

/*
 * Write into @text a command or a hint for the file @path: "apt install gdb-dbgsym", "dnf debuginfo-install gdb", or
 * "" if the distribution is not known or no package has the file. @root is "/" but in tests. Reads the lists of
 * installed packages, some 10 ms.
 */
void debug_package_hint(char *text, size_t size, const char *root, const char *path);
