/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Where output begins: at the start of a line of a terminal or a file. */
#include "user/cli/line_start.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "user/lib/cleanup.h"

/* The columns of a terminal that begins a new line behind its last one. 0 = @fd is none. */
static int line_columns(int fd)
{
	const char *term = getenv("TERM");
	struct winsize size;

	if (!term || !strcmp(term, "dumb") || ioctl(fd, TIOCGWINSZ, &size))
		return 0;
	return size.ws_col;
}

/* Has the regular file @fd a line without its end? */
static bool line_is_open(int fd)
{
	auto_close int file = -1;
	struct stat st;
	char last, path[32];

	if (fstat(fd, &st) || !S_ISREG(st.st_mode) || !st.st_size)
		return false;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	file = open(path, O_RDONLY | O_CLOEXEC);
	return file >= 0 && pread(file, &last, 1, st.st_size - 1) == 1 && last != '\n';
}

void line_start(int fd)
{
	int columns = line_columns(fd);

	/* As many spaces as a line has end in the next line, unless they begin where a line begins. */
	if (columns)
		dprintf(fd, "%*s\r", columns, "");
	else if (line_is_open(fd))
		dprintf(fd, "\n");
}
