/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The frame of commands that trace on this machine until they are told to stop: run and attach. */
#pragma once

#include <stdbool.h>

struct control;
struct options;
struct session;

/*
 * Make outputs, a session and a control by @o, and give them to @work, which returns an exit status; then free them.
 * @is_launch: heaptap starts the program, whose standard output stays its own, and passes signals on to it.
 * The result of @work; or another exit status, logged.
 */
int tracing_run(const struct options *o, bool is_launch,
		int (*work)(const struct options *o, struct session *s, struct control *c));
