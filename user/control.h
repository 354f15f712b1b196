/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the outside asks of a running heaptap: signals, intervals, the end of the time. */
#pragma once

#include "user/lib/types.h"

struct ask_server;
struct options;

enum control_event {
	CONTROL_NONE,	/* time to look at the source */
	CONTROL_REPORT, /* SIGUSR1, or --interval has passed */
	CONTROL_STOP,	/* Ctrl-C, SIGTERM (not for run), --duration has passed: once */
	CONTROL_SIGNAL, /* one to pass on to the program that runs */
	CONTROL_CHILD,	/* something happened to the program */
	CONTROL_ASKED,	/* by another heaptap: control_listen() */
	CONTROL_INPUT,	/* there is some: control_watch() */
};

struct control;

/*
 * Take the signals from now on. @passes_on: for run, they are the program's. Signals of the terminal reach
 * the program by themselves, and are not passed on twice. 0 or -errno.
 */
int control_new(struct control **out, const struct options *o, bool passes_on) __must_check;
/* --interval and --duration count from now on. */
void control_restart(struct control *c, const struct options *o);
void control_free(struct control *c);

/* From now on other heaptaps may ask: CONTROL_ASKED. Where that cannot be, nobody asks. */
void control_listen(struct control *c);
/* What session_answer() takes after CONTROL_ASKED. */
struct ask_server *control_questions(const struct control *c);

/* From now on wait for input on @fd too; -1 = no more. It comes after everything else. */
void control_watch(struct control *c, int fd);

/* Wait for the next thing, or for @fd to become readable, at most @timeout_ms. @sig: for CONTROL_SIGNAL. */
enum control_event control_wait(struct control *c, int fd, int timeout_ms, int *sig);

/* We are about to finish: from now on a second Ctrl-C ends heaptap at once. */
void control_finish(struct control *c);
