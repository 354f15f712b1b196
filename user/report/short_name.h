/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Long names of C++ and Rust functions, shortened for lines that people read. */
#pragma once

#include "user/lib/types.h"

/*
 * Write @name, escaped, to @buf of @size bytes. If it has more than @width bytes, these go one after the other until it
 * has no more: its parameters ("f(...)"), template arguments of template arguments, and all template arguments
 * ("map<...>::find(...)"). A name that does not fit into @buf even so is cut, and ends in "...". Returns @buf.
 */
char *short_name(char *buf, size_t size, const char *name, size_t width);

/* As short_name(), of @name without its parameters: "map::find" for "map::find(int const&) const". */
char *bare_name(char *buf, size_t size, const char *name, size_t width);

/*
 * Write @place, "name" or "name (file:line)" as own_code_text() gives it, to @buf of @size bytes. If it has more than
 * @width bytes, these go one after the other: template arguments, as in short_name(); scopes, from the outermost one
 * ("find" for "map::find"); the file; and the middle of the name. Returns @buf.
 */
char *fit_place(char *buf, size_t size, const char *place, size_t width);

/*
 * Write @path without ".", and without ".." as far as a directory before it can be left out, to @to, which has
 * strlen(path) + 2 bytes: "./csu/../sysdeps/x.h" is "sysdeps/x.h". Links are not looked at. Returns @to.
 */
char *clean_path(char *to, const char *path);
