/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reads /proc/PID/cgroup: lines "number:controllers:path", in which a path may hold colons and commas too. */
#include "user/system/cgroup.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "user/lib/cleanup.h"
#include "user/lib/proc.h"

enum { MAX_FILE = 256 << 10 };

static bool cgroup_has_memory(const char *controllers, const char *end)
{
	static const char memory[] = "memory";

	while (controllers < end) {
		const char *comma = memchr(controllers, ',', (size_t)(end - controllers));
		size_t len = (size_t)((comma ? comma : end) - controllers);

		if (len == strlen(memory) && !memcmp(controllers, memory, len))
			return true;
		controllers += len + 1;
	}
	return false;
}

/* How well a line fits: 0 = not at all. */
static int cgroup_fitness(enum cgroup_kind kind, const char *line, const char *controllers, const char *end)
{
	bool is_memory = cgroup_has_memory(controllers, end), is_unified = !strncmp(line, "0::", 3);

	if (kind == CGROUP_MEMORY)
		return is_memory;
	if (kind == CGROUP_UNIFIED)
		return is_unified;
	return is_memory ? 3 : is_unified ? 2 : 1;
}

bool cgroup_find(const char *text, enum cgroup_kind kind, char *path, size_t size)
{
	int best = 0;

	for (const char *line = text, *next; *line; line = next) {
		size_t len = strcspn(line, "\n");
		const char *controllers = memchr(line, ':', len), *start;
		int fits;

		next = line + len + (line[len] == '\n');
		start = controllers ? memchr(controllers + 1, ':', len - (size_t)(controllers + 1 - line))
				    : NULL;
		if (!start || start[1] != '/')
			continue;
		fits = cgroup_fitness(kind, line, controllers + 1, start);
		len -= (size_t)(start + 1 - line);
		if (fits <= best || len >= size)
			continue;
		best = fits;
		len = len == 1 ? 0 : len;
		memcpy(path, start + 1, len);
		path[len] = '\0';
	}
	return best;
}

int cgroup_read(pid_t pid, enum cgroup_kind kind, char *path, size_t size)
{
	auto_free char *text = malloc(MAX_FILE);
	char file[64];
	ssize_t len;

	if (!text)
		return -ENOMEM;
	snprintf(file, sizeof(file), "/proc/%d/cgroup", (int)pid);
	len = proc_read_text(file, text, MAX_FILE);
	if (len < 0)
		return len == -ENOENT ? -ESRCH : (int)len;
	return cgroup_find(text, kind, path, size) ? 0 : -ENOENT;
}
