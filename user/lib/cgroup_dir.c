/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Finds the control groups of a process in /proc/PID/cgroup, and whether one is frozen. */
#include "user/lib/cgroup_dir.h"

#include <stdio.h>
#include <string.h>

#include "user/lib/cleanup.h"
#include "user/lib/proc.h"

bool cgroup_dir_find(pid_t pid, const char *name, const char *mount, char dir[CGROUP_DIR_SIZE])
{
	auto_fclose FILE *f = NULL;
	char path[40], line[CGROUP_DIR_SIZE];

	snprintf(path, sizeof(path), "/proc/%d/cgroup", (int)pid);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f)) {
		char *first = strchr(line, ':'), *second = first ? strchr(first + 1, ':') : NULL;

		if (!second)
			continue;
		*first = *second = '\0';
		/* The second version has the number 0 and no name. */
		if (strcmp(name, first[1] ? first + 1 : line) != 0)
			continue;
		second[1 + strcspn(second + 1, "\n")] = '\0';
		snprintf(dir, CGROUP_DIR_SIZE, CGROUP_DIRS "%s%.*s", mount, CGROUP_DIR_SIZE - 64, second + 1);
		return true;
	}
	return false;
}

bool cgroup_dir_is_frozen(pid_t pid)
{
	/* The second version has a directory of its own beside hierarchies of the first. */
	static const char *const unified[] = { "", "/unified" };
	char dir[CGROUP_DIR_SIZE], file[CGROUP_DIR_SIZE + 16], state[8] = "";
	u64 is_frozen = 0;

	for (size_t i = 0; i < ARRAY_SIZE(unified) && !is_frozen; i++)
		if (cgroup_dir_find(pid, "0", unified[i], dir))
			proc_read_number(dir, "cgroup.events", "frozen ", &is_frozen);
	if (is_frozen || !cgroup_dir_find(pid, "freezer", "/freezer", dir))
		return is_frozen;
	snprintf(file, sizeof(file), "%s/freezer.state", dir);
	return proc_read_text(file, state, sizeof(state)) > 0 && !strcmp(state, "FROZEN");
}
