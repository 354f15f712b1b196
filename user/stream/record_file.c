/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The file of a recording: created with the checks of a report, but written in many steps. */
#include "user/stream/record_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "user/lib/cleanup.h"
#include "user/lib/log.h"
#include "user/lib/parse.h"
#include "user/lib/path.h"
#include "user/stream/kept.h"
#include "user/stream/out_name.h"

struct record_file {
	const char *pattern; /* borrowed; as the user typed it */
	const char *name;    /* borrowed; its last part */
	bool force;
	int given; /* borrowed; the descriptor that the name stands for; -1 = none */
	int dir;   /* owned; the directory */
	int fd;	   /* owned; -1 = no file is open */
	bool is_regular;
	u64 size; /* bytes written to it */
	struct out_values values;
	u32 keep;	      /* complete files that stay, 0 = all */
	struct kept kept;     /* with keep */
	char shown[PATH_MAX]; /* directory and name of the present file */
};

static int record_file_refuse(const struct record_file *f, const char *why, int err)
{
	error("--record: %s: %s", f->pattern, why);
	return err;
}

static int record_file_open_directory(struct record_file *f)
{
	size_t len = (size_t)(f->name - f->pattern);
	auto_free char *path = len ? strndup(f->pattern, len) : strdup(".");

	if (!path)
		return -ENOMEM;
	if (strchr(path, '%'))
		return record_file_refuse(f, "placeholders belong in the name, not in the directory",
					  -EINVAL);
	f->dir = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	return f->dir < 0 ? record_file_refuse(f, strerror(errno), -errno) : 0;
}

/* A pipe or a device loses nothing when it is written to. */
static bool record_file_is_channel(const struct stat *st)
{
	return S_ISFIFO(st->st_mode) || S_ISCHR(st->st_mode);
}

/* Another user's pipe in a directory such as /tmp may lie there to catch what root records. */
static bool is_foreign_pipe(const struct record_file *f, const struct stat *st)
{
	return S_ISFIFO(st->st_mode) && !f->force && !out_is_trusted_owner(st->st_uid);
}

static int record_file_check_existing(const struct record_file *f, const char *name)
{
	struct stat st;

	if (fstatat(f->dir, name, &st, AT_SYMLINK_NOFOLLOW)) {
		if (errno != ENOENT)
			return record_file_refuse(f, strerror(errno), -errno);
		if (faccessat(f->dir, ".", W_OK | X_OK, AT_EACCESS))
			return record_file_refuse(f, strerror(errno), -errno);
		return 0;
	}
	if (is_foreign_pipe(f, &st))
		return record_file_refuse(f, "another user's pipe is not written to without --force",
					  -EEXIST);
	if (record_file_is_channel(&st))
		return 0;
	if (!S_ISREG(st.st_mode))
		return record_file_refuse(f, "exists and is not a regular file", -EEXIST);
	if (!f->force)
		return record_file_refuse(f, "existing file is not overwritten without --force", -EEXIST);
	return 0;
}

int record_file_descriptor(const char *pattern)
{
	static const char directory[] = "/dev/fd/";
	u64 number;

	if (!strcmp(pattern, "-") || !strcmp(pattern, "/dev/stdout"))
		return STDOUT_FILENO;
	if (strncmp(pattern, directory, sizeof(directory) - 1) != 0 ||
	    parse_u64(pattern + sizeof(directory) - 1, &number) || number > INT_MAX)
		return -1;
	return (int)number;
}

/* The user has opened it, so it may be anything but a terminal. */
static int check_given(const struct record_file *f)
{
	if (fcntl(f->given, F_GETFD) < 0)
		return record_file_refuse(f, strerror(errno), -errno);
	return isatty(f->given) ? record_file_refuse(f, "is a terminal, and a recording is no text", -EINVAL)
				: 0;
}

static int record_file_check_name(struct record_file *f)
{
	static const struct out_values sample = { .pid = INT_MAX, .number = UINT32_MAX, .time = "time" };
	char name[NAME_MAX + 1];
	int err = out_expand(f->name, &sample, name);

	if (err == -EINVAL)
		return record_file_refuse(f, "placeholders are %p, %n, %t and %%", err);
	if (err || !*name)
		return record_file_refuse(f, err ? strerror(-err) : "is a directory", err ? err : -EISDIR);
	err = record_file_open_directory(f);
	return err ? err : record_file_check_existing(f, name);
}

int record_file_new(struct record_file **out, const char *pattern, bool force, u32 keep)
{
	struct record_file *f = calloc(1, sizeof(*f));
	int err;

	if (!f) {
		error("record: %s: %s", pattern, strerror(ENOMEM));
		return -ENOMEM;
	}
	f->pattern = pattern;
	f->name = path_name(pattern);
	f->force = force;
	f->keep = keep;
	f->kept.what = "record";
	f->dir = f->fd = -1;
	f->given = record_file_descriptor(pattern);
	snprintf(f->shown, sizeof(f->shown), "%s", pattern);
	err = f->given >= 0 ? check_given(f) : record_file_check_name(f);
	if (err == -ENOMEM)
		error("record: %s: %s", pattern, strerror(ENOMEM));
	if (err) {
		record_file_free(f);
		return err;
	}
	*out = f;
	return 0;
}

void record_file_free(struct record_file *f)
{
	if (!f)
		return;
	if (record_file_next(f))
		debug("record: %s: the last bytes were lost", f->shown);
	if (f->dir >= 0)
		close(f->dir);
	kept_fini(&f->kept);
	free(f);
}

void record_file_set_pid(struct record_file *f, pid_t pid)
{
	f->values.pid = pid;
}

/* Open the pipe or device @name, and check it: it may have been replaced since record_file_check_existing(). */
static int open_channel(const struct record_file *f, const char *name)
{
	/* Fail if the pipe has no reader: do not wait for one. */
	auto_close int fd = openat(f->dir, name, O_WRONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct stat st;

	if (fd < 0 || fstat(fd, &st))
		return -errno;
	if (is_foreign_pipe(f, &st))
		return -EEXIST;
	if (fcntl(fd, F_SETFL, 0))
		debug("record: %s: %s", name, strerror(errno));
	return take_fd(fd);
}

/* Create the file, or open the pipe or device that exists. */
static int record_file_open_file(struct record_file *f, const char *name)
{
	const int flags = O_WRONLY | O_NOFOLLOW | O_CLOEXEC;
	struct stat st;
	int fd;

	if (!fstatat(f->dir, name, &st, AT_SYMLINK_NOFOLLOW)) {
		if (record_file_is_channel(&st))
			return open_channel(f, name);
		if (!f->force || !S_ISREG(st.st_mode))
			return -EEXIST;
		if (unlinkat(f->dir, name, 0))
			return -errno;
	}
	fd = openat(f->dir, name, flags | O_CREAT | O_EXCL, 0600);
	return fd < 0 ? -errno : fd;
}

static int begin_file(struct record_file *f)
{
	char name[NAME_MAX + 1];
	struct stat st;
	int err;

	if (f->given >= 0) {
		f->fd = fcntl(f->given, F_DUPFD_CLOEXEC, 3);
		return f->fd < 0 ? -errno : 0;
	}
	f->values.number++;
	out_values_set_time(&f->values);
	err = out_expand(f->name, &f->values, name);
	if (err)
		return err;
	snprintf(f->shown, sizeof(f->shown), "%.*s%s", (int)(f->name - f->pattern), f->pattern, name);
	f->fd = record_file_open_file(f, name);
	if (f->fd < 0) {
		err = f->fd;
		f->fd = -1;
		return err;
	}
	f->is_regular = !fstat(f->fd, &st) && S_ISREG(st.st_mode);
	return f->is_regular ? out_give_to_caller(f->fd) : 0;
}

int record_file_write(struct record_file *f, const void *data, size_t len)
{
	const char *p = data;
	size_t done = 0;
	int err = f->fd < 0 ? begin_file(f) : 0;

	while (!err && done < len) {
		ssize_t n = write(f->fd, p + done, len - done);

		if (n > 0)
			done += (size_t)n;
		else if (n == 0 || errno != EINTR)
			err = n ? -errno : -EIO;
	}
	if (!err)
		f->size += len;
	else if (done && f->is_regular &&
		 (ftruncate(f->fd, (off_t)f->size) || lseek(f->fd, (off_t)f->size, SEEK_SET) < 0))
		debug("record: %s: half a chunk stays: %s", f->shown, strerror(errno));
	return err;
}

int record_file_next(struct record_file *f)
{
	int fd = f->fd, err;

	f->fd = -1;
	f->size = 0;
	err = fd >= 0 && close(fd) ? -errno : 0;
	if (fd >= 0 && f->keep && f->is_regular)
		kept_last(&f->kept, f->dir, path_name(f->shown), f->values.number, f->keep);
	return err;
}

u64 record_file_size(const struct record_file *f)
{
	return f->size;
}

const char *record_file_name(const struct record_file *f)
{
	return f->shown;
}
