/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Runs the user's pager on the output of one command. */
#include "user/console/console_pager.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "user/console/console.h"
#include "user/session/control.h"
#include "user/session/session.h"

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

bool console_pager_is_wanted(const struct console *c, const char *text, size_t len)
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

int console_pager_show(struct console *c, const char *text, size_t len)
{
	struct paged page = { pager_of_user(), text, len };
	int err;

	fflush(stdout);
	control_hold(c->control, true);
	err = session_aside(c->session, console_pager_run, &page);
	control_hold(c->control, false);
	return err;
}
