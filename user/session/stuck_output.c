/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The system calls that the threads of heaptap are in, by /proc/self/task/TID/syscall. */
#include "user/session/stuck_output.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "user/lib/cleanup.h"
#include "user/lib/proc.h"

/* The descriptor that thread @tid waits to write to; -1 = it does something else. */
static int written_by(pid_t tid)
{
	char path[64], line[256], *to, *end;
	auto_close int fd = -1;
	unsigned long to_fd;
	ssize_t len;
	long nr;

	snprintf(path, sizeof(path), "/proc/self/task/%d/syscall", (int)tid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	len = fd < 0 ? -1 : read(fd, line, sizeof(line) - 1);
	if (len <= 0)
		return -1;
	line[len] = '\0';
	/* The number of the call and its arguments, or "running". sscanf() would add 11 KiB to the agent. */
	nr = strtol(line, &to, 10);
	to_fd = strtoul(to, &end, 16);
	return end > to && (nr == SYS_write || nr == SYS_writev) ? (int)to_fd : -1;
}

static void name_descriptor(int fd, char *name, size_t size)
{
	char link[64];
	ssize_t len;

	if (fd == STDOUT_FILENO || fd == STDERR_FILENO) {
		snprintf(name, size, "standard %s", fd == STDOUT_FILENO ? "output" : "error");
		return;
	}
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	len = readlink(link, name, size - 1);
	name[len < 0 ? 0 : len] = '\0';
}

bool stuck_output_find(char *name, size_t size)
{
	auto_free pid_t *tids = NULL;
	size_t nr = 0;

	if (proc_threads(getpid(), &tids, &nr))
		return false;
	for (size_t i = 0; i < nr; i++) {
		int fd = written_by(tids[i]);

		if (fd < 0)
			continue;
		name_descriptor(fd, name, size);
		return true;
	}
	return false;
}
