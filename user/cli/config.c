/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The config file: where it is, whether it may be trusted, its lines. */
#include "user/cli/config.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "user/lib/cleanup.h"
#include "user/lib/log.h"
#include "user/lib/parse.h"

enum { MAX_CONFIG = 64 * 1024 }; /* bytes */

/* Places of a config file: the value of a variable and the rest of the path. */
static const struct config_file {
	const char *variable; /* NULL = none, the rest is the whole path */
	const char *rest;
	bool must_exist;
} places[] = {
	{ "HEAPTAP_CONFIG", "", .must_exist = true },
	{ "XDG_CONFIG_HOME", "/heaptap/config" },
	{ "HOME", "/.config/heaptap/config" },
	{ NULL, "/etc/heaptap.conf" },
};

/* Under sudo the file may also belong to the caller. */
static bool config_is_caller(uid_t uid)
{
	const char *sudo_uid = getenv("SUDO_UID");
	u64 caller;

	return !geteuid() && sudo_uid && !parse_u64(sudo_uid, &caller) && caller == uid;
}

/* NULL, or why the file must not be used. */
static const char *config_distrust(const struct stat *st)
{
	if (!S_ISREG(st->st_mode) && !S_ISCHR(st->st_mode))
		return "not a regular file";
	if (st->st_uid && st->st_uid != geteuid() && !config_is_caller(st->st_uid))
		return "it belongs to another user";
	if (S_ISREG(st->st_mode) && st->st_mode & S_IWOTH)
		return "everybody may write it";
	return NULL;
}

static int config_read_all(int fd, char **text)
{
	auto_free char *buf = malloc(MAX_CONFIG + 1);
	size_t used = 0;
	ssize_t nr;

	if (!buf)
		return -ENOMEM;
	do {
		nr = read(fd, buf + used, MAX_CONFIG + 1 - used);
		if (nr < 0 && errno != EINTR)
			return -errno;
		used += nr > 0 ? nr : 0;
	} while (nr && used <= MAX_CONFIG);
	if (used > MAX_CONFIG)
		return -EFBIG;
	buf[used] = '\0';
	*text = take_ptr(buf);
	return 0;
}

/* 0 with *@text NULL if the file is not there or must not be used. */
static int config_read_file(const char *path, bool must_exist, char **text)
{
	/* Opening a FIFO must not block. */
	auto_close int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	const char *why;
	struct stat st;
	int err = fd < 0 ? -errno : 0;

	if (!err && fstat(fd, &st))
		err = -errno;
	if (err && !must_exist && (err == -ENOENT || err == -ENOTDIR || err == -EACCES))
		return 0;
	why = err ? NULL : config_distrust(&st);
	if (why) {
		warn("config: %s: not used: %s", path, why);
		return 0;
	}
	if (!err)
		err = config_read_all(fd, text);
	if (err)
		error("config: %s: %s", path, strerror(-err));
	return err;
}

/* The path of @place; NULL without the variable or without memory. */
static char *config_path_of(const struct config_file *place)
{
	const char *base = place->variable ? getenv(place->variable) : "";
	char path[PATH_MAX];

	if (!base || (place->variable && *base != '/'))
		return NULL;
	if (snprintf(path, sizeof(path), "%s%s", base, place->rest) >= (int)sizeof(path))
		return NULL;
	return strdup(path);
}

int config_read(const char *path, char **text, char **used)
{
	int err = 0;

	*text = NULL;
	*used = NULL;
	if (path) {
		*used = strdup(path);
		return *used ? config_read_file(path, true, text) : -ENOMEM;
	}
	for (size_t i = 0; i < ARRAY_SIZE(places) && !err && !*text; i++) {
		free(*used);
		*used = config_path_of(&places[i]);
		if (*used)
			err = config_read_file(*used, places[i].must_exist, text);
	}
	if (!*text) {
		free(*used);
		*used = NULL;
	}
	return err;
}

/* @s without blanks around it. */
static char *config_trim(char *s)
{
	size_t len;

	s += strspn(s, " \t\r");
	len = strlen(s);
	while (len && strchr(" \t\r", s[len - 1]))
		len--;
	s[len] = '\0';
	return s;
}

bool config_next(char **rest, char **name, char **value, u32 *line)
{
	char *text;

	while ((text = strsep(rest, "\n"))) {
		size_t len;

		++*line;
		text = config_trim(text);
		if (!*text || *text == '#')
			continue;
		len = strcspn(text, " \t");
		*name = text;
		*value = text[len] ? config_trim(text + len + 1) : text + len;
		text[len] = '\0';
		return true;
	}
	return false;
}
