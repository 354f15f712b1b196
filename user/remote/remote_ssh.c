/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Start and end ssh, the only child process of heaptap connect. */
#include "user/remote/remote_ssh.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>

#include "user/lib/cleanup.h"
#include "user/lib/log.h"
#include "user/remote/net_socket.h"

/* Rounds of 10 ms: ssh may end by itself for 0.5 s, and after a request for 0.3 s. */
enum { MAX_ARGS = 12, TERM_ROUND = 50, END_ROUNDS = 80, ROUND_NS = 10000000 };

void remote_ssh_init(struct remote_ssh *s)
{
	*s = (struct remote_ssh){ .err_fd = -1 };
}

/* Quote @word, so that any shell takes it as one word. */
static void remote_ssh_quote(FILE *out, const char *word)
{
	fputs(" '", out);
	for (; *word; word++)
		if (*word == '\'')
			fputs("'\\''", out);
		else
			fputc(*word, out);
	fputc('\'', out);
}

char *remote_ssh_command(const struct net_addr *a, char *const *program)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return NULL;
	fputs("exec heaptap serve --stdio", out);
	if (program)
		fputs(" --", out);
	for (; program && *program; program++)
		remote_ssh_quote(out, *program);
	if (!program && a->path[0])
		remote_ssh_quote(out, a->path);
	if (!fclose(out))
		return text;
	free(text);
	return NULL;
}

static size_t fill_args(const char **args, const struct net_addr *a, char *port, const char *command)
{
	size_t nr = 0;

	args[nr++] = "ssh";
	args[nr++] = "-T"; /* no terminal: bytes must pass as they are */
	args[nr++] = "-oForwardAgent=no";
	args[nr++] = "-oForwardX11=no";
	if (a->port) {
		snprintf(port, 8, "%u", a->port);
		args[nr++] = "-p";
		args[nr++] = port;
	}
	if (a->user[0]) {
		args[nr++] = "-l";
		args[nr++] = a->user;
	}
	args[nr++] = "--";
	args[nr++] = a->host;
	args[nr++] = command;
	args[nr] = NULL;
	return nr;
}

static int remote_ssh_spawn(struct remote_ssh *s, const char **args, int fd, int err_fd)
{
	extern char **environ;
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attr;
	sigset_t blocked;
	int err = posix_spawn_file_actions_init(&actions);

	if (err)
		return -err;
	err = posix_spawnattr_init(&attr);
	if (err)
		goto undo_actions;
	/* Ctrl-C must not end ssh: the last events are still to come. ssh may ask for a password at the terminal. */
	sigemptyset(&blocked);
	sigaddset(&blocked, SIGINT);
	sigaddset(&blocked, SIGQUIT);
	err = posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK);
	if (!err)
		err = posix_spawnattr_setsigmask(&attr, &blocked);
	if (!err)
		err = posix_spawn_file_actions_adddup2(&actions, fd, STDIN_FILENO);
	if (!err)
		err = posix_spawn_file_actions_adddup2(&actions, fd, STDOUT_FILENO);
	if (!err)
		err = posix_spawn_file_actions_adddup2(&actions, err_fd, STDERR_FILENO);
	if (!err)
		err = posix_spawnp(&s->pid, "ssh", &actions, &attr, (char *const *)args, environ);
	posix_spawnattr_destroy(&attr);
undo_actions:
	posix_spawn_file_actions_destroy(&actions);
	return -err;
}

int remote_ssh_start(struct remote_ssh *s, const struct net_addr *a, char *const *program, int *fd)
{
	auto_free char *command = remote_ssh_command(a, program);
	auto_close int ours = -1, theirs = -1, err_in = -1, err_out = -1;
	const char *args[MAX_ARGS];
	char port[8];
	int pair[2], err;

	if (!command)
		return -ENOMEM;
	fill_args(args, a, port, command);
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair))
		return -errno;
	ours = pair[0];
	theirs = pair[1];
	if (pipe2(pair, O_CLOEXEC))
		return -errno;
	err_in = pair[0];
	err_out = pair[1];
	err = remote_ssh_spawn(s, args, theirs, err_out);
	if (err)
		return err;
	net_prepare(ours);
	net_prepare(err_in);
	s->err_fd = take_fd(err_in);
	*fd = take_fd(ours);
	return 0;
}

void remote_ssh_poll(struct remote_ssh *s)
{
	while (s->err_fd >= 0 && read(s->err_fd, s->line + s->len, 1) > 0) {
		if (s->line[s->len] != '\n' && s->len < sizeof(s->line) - 2) {
			s->len++;
			continue;
		}
		/* ssh ends its own messages as a raw terminal needs them. */
		if (s->len && s->line[s->len - 1] == '\r')
			s->len--;
		s->line[s->len] = '\0';
		s->len = 0;
		if (s->line[0])
			info("ssh: %s", s->line);
	}
}

void remote_ssh_end(struct remote_ssh *s)
{
	const struct timespec pause = { .tv_nsec = ROUND_NS };
	int status;

	if (!s->pid)
		return;
	for (int i = 0; i < END_ROUNDS && !waitpid(s->pid, &status, WNOHANG); i++) {
		remote_ssh_poll(s);
		nanosleep(&pause, NULL);
		if (i == TERM_ROUND)
			kill(s->pid, SIGTERM);
		if (i == END_ROUNDS - 1 && !kill(s->pid, SIGKILL))
			waitpid(s->pid, &status, 0);
	}
	remote_ssh_poll(s);
	cleanup_close(&s->err_fd);
	remote_ssh_init(s);
}
