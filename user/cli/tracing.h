/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The frame of commands that trace on this machine until they are told to stop: run and attach. */
#pragma once

#include <stdbool.h>

struct control;
struct options;
struct session;
struct source_choice;

/* A command. Its functions return exit statuses. */
struct tracing_command {
	bool joins_targets, joins_later, wants_end; /* as in struct source_choice */
	bool attaches;				    /* to processes that run already */
	bool is_launch; /* it starts the program, whose standard output stays its own, and passes signals on to it */
	/* Do what needs all rights of the user: heaptap then gives up those that it can do without. NULL = nothing. */
	int (*prepare)(void *ctx, struct session *s);
	int (*work)(void *ctx, const struct options *o, struct session *s, struct control *c);
	void *ctx;
};

/*
 * Make outputs, a session and a control by @o, and give them to @command; then free them. The result of its functions;
 * or another exit status, logged.
 */
int tracing_run(const struct options *o, const struct tracing_command *command);

/* Where little memory is left the kernel would end heaptap while it loads BPF's programs: then ptrace, and say so. */
void tracing_choose_backend(struct source_choice *c, const char *command);

/*
 * With --sample: targets that sample their blocks themselves need no code. @attaches: to processes that run already.
 * STATUS_DONE, or another exit status, logged: no process has a name.
 */
int tracing_choose_sampler(struct source_choice *source, const struct options *o, bool attaches);
