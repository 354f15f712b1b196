/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Paths as text: nothing here looks at the file. */
#pragma once

#include <string.h>

/* The part of @path behind its last slash, all of it without one; "" when the slash is its end. */
static inline const char *path_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}
