/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Finds the file of a program as a shell would. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* The program @name into @out, of @size bytes: a path with a slash as it is, else in $PATH. False: there is none. */
bool program_path(const char *name, char *out, size_t size);
