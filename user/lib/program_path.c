/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Looks for a program in the directories of $PATH. */
#include "user/lib/program_path.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool is_program(int len, const char *path, size_t size)
{
	return len > 0 && (size_t)len < size && !access(path, X_OK);
}

bool program_path(const char *name, char *out, size_t size)
{
	const char *dirs = getenv("PATH");

	if (strchr(name, '/'))
		return is_program(snprintf(out, size, "%s", name), out, size);
	while (dirs && *dirs) {
		size_t len = strcspn(dirs, ":");

		if (len && is_program(snprintf(out, size, "%.*s/%s", (int)len, dirs, name), out, size))
			return true;
		dirs += len + (dirs[len] == ':');
	}
	return false;
}
