/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Child processes of unit tests: a copy of the test program itself that waits until it is told to end. */
#pragma once

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHILD_ARG "--child"

struct child {
	pid_t pid;
	int ready; /* reading end */
	int hold;  /* the child ends when this is closed */
};

/* First thing in main(): the part of the child. Never returns if this process is one. */
static inline void child_main(int argc, char **argv)
{
	char c = 'r';

	if (argc < 2 || strcmp(argv[1], CHILD_ARG) != 0)
		return;
	if (argc > 2)
		prctl(PR_SET_NAME, argv[2]);
	if (write(STDOUT_FILENO, &c, 1) == 1)
		while (read(STDIN_FILENO, &c, 1) > 0)
			;
	_exit(7);
}

/* Start @path as a child called @comm (NULL: as exec names it), first word @argv0; back when it is ready. */
static inline int child_start(struct child *c, const char *path, const char *argv0, const char *comm)
{
	char *argv[] = { (char *)argv0, CHILD_ARG, (char *)comm, NULL };
	int in[2], out[2];
	char byte;

	*c = (struct child){ .pid = -1, .ready = -1, .hold = -1 };
	if (pipe2(in, O_CLOEXEC) != 0 || pipe2(out, O_CLOEXEC) != 0)
		return -1;
	c->pid = fork();
	if (c->pid == 0) {
		dup2(in[0], STDIN_FILENO);
		dup2(out[1], STDOUT_FILENO);
		execv(path, argv);
		_exit(127);
	}
	close(in[0]);
	close(out[1]);
	c->hold = in[1];
	c->ready = out[0];
	return c->pid > 0 && read(c->ready, &byte, 1) == 1 ? 0 : -1;
}

/* Let it end, without reaping it: a zombie from then on. */
static inline int child_make_zombie(struct child *c)
{
	siginfo_t si;

	close(c->hold);
	c->hold = -1;
	return waitid(P_PID, c->pid, &si, WEXITED | WNOWAIT);
}

static inline void child_stop(struct child *c)
{
	if (c->hold >= 0)
		close(c->hold);
	close(c->ready);
	waitpid(c->pid, NULL, 0);
}

/* Copy this program to @path. */
static inline int child_copy_self(const char *path)
{
	char buf[65536];
	int in = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	int out = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0755);
	ssize_t n = -1;

	while (in >= 0 && out >= 0 && (n = read(in, buf, sizeof(buf))) > 0)
		if (write(out, buf, n) != n)
			break;
	close(in);
	close(out);
	return n == 0 ? 0 : -1;
}
