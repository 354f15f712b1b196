/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Writes the output of a command when the command is over. */
#include "user/console/console_output.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "user/console/console.h"
#include "user/lib/cleanup.h"
#include "user/session/control.h"
#include "user/session/session.h"
#include "user/stream/out_name.h"

/* Runs the user's pager on the output of one command. */

/* -F: end at once if all fits; -R: colours; -X: leave the text on the screen. */
static const char USUAL[] = "if command -v less >/dev/null; then exec less -FRX; else exec cat; fi";

struct paged {
	const char *pager, *text;
	size_t len;
};

static const char *pager_of_user(void)
{
	const char *pager = getenv("PAGER");

	return pager ? pager : USUAL;
}

/* Has @text more lines than the terminal, and does the user want a pager? */
static bool console_pager_is_wanted(const struct console *c, const char *text, size_t len)
{
	const char *pager = pager_of_user(), *end = text + len;
	struct winsize size;
	size_t nr = 0;

	if (!c->is_terminal || c->has_no_pager || !*pager || !strcmp(pager, "cat") ||
	    ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) || !size.ws_row)
		return false;
	while (nr < size.ws_row && text < end && (text = memchr(text, '\n', (size_t)(end - text)))) {
		text++;
		nr++;
	}
	return nr >= size.ws_row;
}

/* Start the pager, with signals as a program expects them. Its standard input is @fd. */
static int console_pager_start(pid_t *pid, const char *pager, int fd)
{
	const char *const argv[] = { "sh", "-c", pager, NULL };
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attr;
	sigset_t none, usual;
	int err = posix_spawn_file_actions_init(&actions);

	if (err)
		return -err;
	err = posix_spawnattr_init(&attr);
	if (err) {
		posix_spawn_file_actions_destroy(&actions);
		return -err;
	}
	sigemptyset(&none);
	sigemptyset(&usual);
	sigaddset(&usual, SIGPIPE);
	sigaddset(&usual, SIGXFSZ);
	err = posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
	if (!err)
		err = posix_spawnattr_setsigmask(&attr, &none);
	if (!err)
		err = posix_spawnattr_setsigdefault(&attr, &usual);
	if (!err)
		err = posix_spawn_file_actions_adddup2(&actions, fd, STDIN_FILENO);
	if (!err)
		err = posix_spawn(pid, "/bin/sh", &actions, &attr, (char *const *)argv, environ);
	posix_spawn_file_actions_destroy(&actions);
	posix_spawnattr_destroy(&attr);
	return -err;
}

/* The user may leave the pager before it has read everything: no error. */
static void console_pager_write_all(int fd, const char *text, size_t len)
{
	while (len) {
		ssize_t n = write(fd, text, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return;
		text += n;
		len -= (size_t)n;
	}
}

static int console_pager_run(void *arg)
{
	const struct paged *p = arg;
	int fds[2], status, err;
	pid_t pid = 0;

	if (pipe2(fds, O_CLOEXEC))
		return -errno;
	err = console_pager_start(&pid, p->pager, fds[0]);
	close(fds[0]);
	if (!err)
		console_pager_write_all(fds[1], p->text, p->len);
	close(fds[1]);
	if (err)
		return err;
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return 0;
	/* The shell has not found it. */
	return WIFEXITED(status) && (WEXITSTATUS(status) == 126 || WEXITSTATUS(status) == 127) ? -ENOENT : 0;
}

/* Show @text, until the user leaves the pager; events are read meanwhile. 0 or -errno: then nothing was shown. */
static int console_pager_show(struct console *c, const char *text, size_t len)
{
	struct paged page = { pager_of_user(), text, len };
	int err;

	fflush(stdout);
	control_hold(c->control, true);
	err = session_aside(c->session, console_pager_run, &page);
	control_hold(c->control, false);
	return err;
}

enum { PORTION = 64 * 1024 };

/* A piece of the output. Whoever reads the output may be slow. */
struct piece {
	int fd; /* -1 = standard output */
	const char *text;
	size_t len;
};

static int write_piece(void *arg)
{
	const struct piece *p = arg;

	return fwrite(p->text, 1, p->len, stdout) == p->len && !fflush(stdout) ? 0 : -EIO;
}

static void console_output_print(struct console *c, const char *text, size_t len)
{
	while (len && !c->is_interrupted && !c->is_over) {
		struct piece piece = { -1, text, len < PORTION ? len : PORTION };

		if (session_aside(c->session, write_piece, &piece)) {
			/* main() reports the error of stdout. */
			c->is_over = true;
			return;
		}
		text += piece.len;
		len -= piece.len;
		if (len)
			console_round(c, WAIT_NOT);
	}
}

struct report_options console_look(const struct console *c)
{
	struct report_options o = output_look(&c->options.output, c->file ? NULL : stdout);

	o.is_unwanted = control_is_stop_pending;
	return o;
}

static int console_output_refuse(const struct console *c, const char *name, const char *why)
{
	return console_refuse(c, -EINVAL, "%s: %s", name, why);
}

/* A pipe or a device loses nothing when it is written to. */
static bool console_output_is_channel(const struct stat *st)
{
	return S_ISFIFO(st->st_mode) || S_ISCHR(st->st_mode);
}

/* Another user's file in a directory such as /tmp may lie there to catch what root writes. */
static bool is_foreign(const struct stat *st)
{
	return !S_ISCHR(st->st_mode) && !out_is_trusted_owner(st->st_uid);
}

static int console_output_check(const struct console *c, const char *name, bool appends,
				const struct stat *st)
{
	bool force = c->options.output.force;

	if (!console_output_is_channel(st) && !S_ISREG(st->st_mode))
		return console_output_refuse(c, name, "exists and is not a regular file");
	if ((appends || console_output_is_channel(st)) && is_foreign(st) && !force)
		return console_output_refuse(c, name,
					     "another user's file is not written to without 'set force on'");
	if (S_ISREG(st->st_mode) && !appends && !force)
		return console_output_refuse(
			c, name, "existing file is not overwritten without 'set force on'; '>>' appends");
	return 0;
}

int console_file_check(const struct console *c, const char *name, bool appends)
{
	struct stat st;

	if (!lstat(name, &st))
		return console_output_check(c, name, appends, &st);
	return errno == ENOENT ? 0 : console_output_refuse(c, name, strerror(errno));
}

/* Open a file that is there, and look again: it may have been replaced since the check. */
static int open_existing(const struct console *c, const char *name, bool appends)
{
	auto_close int fd = open(name, O_WRONLY | O_APPEND | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct stat st;

	if (fd < 0 || fstat(fd, &st))
		return -errno;
	if (console_output_check(c, name, appends, &st))
		return -EEXIST;
	if (fcntl(fd, F_SETFL, O_APPEND))
		return -errno;
	return take_fd(fd);
}

int console_file_open(const struct console *c, const char *name, bool appends, bool *is_new)
{
	struct stat st;
	int fd, err;

	*is_new = false;
	if (!lstat(name, &st)) {
		err = console_output_check(c, name, appends, &st);
		if (err)
			return err;
		if (appends || console_output_is_channel(&st))
			return open_existing(c, name, appends);
		if (unlink(name))
			return -errno;
	}
	fd = open(name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	*is_new = true;
	err = out_give_to_caller(fd);
	if (err)
		close(fd);
	return err ? err : fd;
}

static int console_output_write_all(void *arg)
{
	struct piece *p = arg;

	while (p->len) {
		ssize_t n = write(p->fd, p->text, p->len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n ? -errno : -EIO;
		p->text += n;
		p->len -= (size_t)n;
	}
	return 0;
}

static int console_output_write_file(struct console *c, const char *text, size_t len)
{
	bool is_new;
	struct piece piece = { .fd = console_file_open(c, c->file, c->appends, &is_new),
			       .text = text,
			       .len = len };
	int err = piece.fd < 0 ? piece.fd : session_aside(c->session, console_output_write_all, &piece);

	if (piece.fd >= 0 && close(piece.fd) && !err)
		err = -errno;
	/* A file is whole, or it is not there. */
	if (err && is_new)
		unlink(c->file);
	return err == -EINVAL || !err ? err : console_refuse(c, err, "%s: %s", c->file, strerror(-err));
}

int console_output_write(struct console *c, const char *text, size_t len)
{
	if (!c->file && !c->is_interrupted && console_pager_is_wanted(c, text, len) &&
	    !console_pager_show(c, text, len))
		return 0;
	if (!c->file) {
		console_output_print(c, text, len);
		return 0;
	}
	return c->is_interrupted ? 0 : console_output_write_file(c, text, len);
}
