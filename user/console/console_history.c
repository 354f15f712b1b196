/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Keeps typed commands from one console to the next. */
#include "user/console/console_history.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "user/lib/cleanup.h"
#include "user/lib/log.h"

enum { MAX_PATH = 4096, MAX_FILE = 1 << 20 };

static const char NAME[] = "history", NEW_NAME[] = "history.new";

/*
 * Open the directory @name in *@parent, and make it if *@parent is ours. Under sudo the home may be that of another
 * user: a directory that belongs to root would be in the way there.
 */
static bool make_directory(int *parent, const char *name)
{
	struct stat st;
	bool is_ours = !fstat(*parent, &st) && st.st_uid == geteuid();
	int fd;

	if (is_ours)
		(void)!mkdirat(*parent, name, 0700);
	fd = openat(*parent, name, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return false;
	close(*parent);
	*parent = fd;
	return true;
}

/* Make all directories of the absolute @path, as `mkdir -p` does, with access for this user alone. */
static void make_directories(const char *path)
{
	auto_close int parent = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	char copy[MAX_PATH], *at = copy, *name;

	snprintf(copy, sizeof(copy), "%s", path);
	while (parent >= 0 && (name = strsep(&at, "/")))
		if (*name && !make_directory(&parent, name))
			return;
}

/* Open the directory of the history, if it is ours and nobody else can write to it. */
static int console_history_open_directory(bool is_made)
{
	const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
	char path[MAX_PATH];
	struct stat st;
	int fd, len;

	if (state && *state == '/')
		len = snprintf(path, sizeof(path), "%s/heaptap", state);
	else if (home && *home == '/')
		len = snprintf(path, sizeof(path), "%s/.local/state/heaptap", home);
	else
		return -ENOENT;
	if (len < 0 || (size_t)len >= sizeof(path))
		return -ENAMETOOLONG;
	if (is_made)
		make_directories(path);
	fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) || st.st_uid != geteuid() || st.st_mode & 022) {
		close(fd);
		return -EPERM;
	}
	return fd;
}

void console_history_load(void (*keep)(void *ctx, const char *line), void *ctx)
{
	auto_close int dir = console_history_open_directory(false);
	auto_fclose FILE *in = NULL;
	auto_free char *line = NULL;
	size_t room = 0;
	struct stat st;
	int fd;

	if (dir < 0)
		return;
	fd = openat(dir, NAME, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return;
	in = fdopen(fd, "r");
	if (!in) {
		close(fd);
		return;
	}
	if (fstat(fd, &st) || !S_ISREG(st.st_mode) || st.st_uid != geteuid() || st.st_size > MAX_FILE)
		return;
	while (getline(&line, &room, in) > 0) {
		line[strcspn(line, "\n")] = '\0';
		keep(ctx, line);
	}
}

static int write_lines(int fd, const char *(*line_at)(size_t i))
{
	FILE *out = fdopen(fd, "w");
	const char *line;

	if (!out) {
		close(fd);
		return -ENOMEM;
	}
	for (size_t i = 0; (line = line_at(i)); i++)
		fprintf(out, "%s\n", line);
	return fclose(out) ? -errno : 0;
}

void console_history_save(const char *(*line_at)(size_t i))
{
	auto_close int dir = console_history_open_directory(true);
	int fd, err;

	if (dir < 0) {
		debug("console: no history: %s", strerror(-dir));
		return;
	}
	(void)!unlinkat(dir, NEW_NAME, 0);
	fd = openat(dir, NEW_NAME, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	err = fd < 0 ? -errno : write_lines(fd, line_at);
	if (!err && renameat(dir, NEW_NAME, dir, NAME))
		err = -errno;
	if (err)
		debug("console: no history: %s", strerror(-err));
}
