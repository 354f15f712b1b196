/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A program under launch.h that tells its story, for tests: it and the hooks write letters into one pipe. */
#pragma once

#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "user/lib/proc.h"
#include "user/source/launch.h"

enum { STORY_FD = 200, HANG_S = 20 };

/* The program and the hooks write one letter for each event into one pipe. */
static void tell(char letter)
{
	if (write(STORY_FD, &letter, 1) != 1)
		_exit(98);
}

struct world {
	int story; /* reading end */
	int status;
	int nr_exec, nr_mapped, nr_exiting;
	int told_status;
	bool had_memory; /* when it was about to end */
};

static void on_exec(void *ctx, pid_t pid)
{
	struct world *w = ctx;

	(void)pid;
	w->nr_exec++;
	tell('E');
}

static void on_mapped(void *ctx, pid_t pid)
{
	struct world *w = ctx;

	(void)pid;
	w->nr_mapped++;
	tell('M');
}

static void on_exiting(void *ctx, pid_t pid, int status)
{
	struct world *w = ctx;
	struct proc_status s;

	w->nr_exiting++;
	w->told_status = status;
	w->had_memory = !proc_read_status(&s, pid) && s.has_memory;
	tell('X');
}

static int setup(void **state)
{
	struct world *w = calloc(1, sizeof(*w));
	int fds[2];

	*state = w;
	if (!w || pipe2(fds, O_CLOEXEC) || dup2(fds[1], STORY_FD) < 0)
		return -1;
	close(fds[1]);
	w->story = fds[0];
	alarm(HANG_S);
	return 0;
}

static int teardown(void **state)
{
	struct world *w = *state;

	alarm(0);
	close(STORY_FD);
	close(w->story);
	free(w);
	return 0;
}

static struct launch *launched(struct world *w, const struct launch_options *o)
{
	struct launch_hooks hooks = { w, on_exec, on_mapped, on_exiting, NULL };
	struct launch *l;

	assert_int_equal(launch_new(&l, o, &hooks), 0);
	return l;
}

static void until_end(struct world *w, struct launch *l)
{
	while (!launch_poll(l))
		usleep(200);
	w->status = launch_status(l);
	launch_free(l);
}

/* Run this program in the part @name. */
static void play(struct world *w, const char *name, const char *arg, const char *more)
{
	struct launch_options o = { .argv = (char *[]){ "/proc/self/exe", (char *)name, (char *)arg,
							(char *)more, NULL } };
	struct launch *l = launched(w, &o);

	launch_start(l);
	until_end(w, l);
}

/* The letters so far. */
static const char *story(struct world *w)
{
	static char text[4096];
	ssize_t n;

	fcntl(w->story, F_SETFL, O_NONBLOCK);
	n = read(w->story, text, sizeof(text) - 1);
	text[n > 0 ? n : 0] = '\0';
	return text;
}

static void wait_told(struct world *w, struct launch *l, char letter)
{
	char c = 0;

	fcntl(w->story, F_SETFL, O_NONBLOCK);
	while (read(w->story, &c, 1) != 1 || c != letter)
		if (!l || launch_poll(l))
			usleep(200);
}
