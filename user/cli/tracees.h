/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Processes that heaptap traces by ptrace while a session counts their calls: what each of their stops is for. */
#pragma once

#include <stdbool.h>

#include "user/session/session_stopper.h"
#include "user/source/launch.h"

struct control;
struct options;
struct session;

struct tracees {
	const struct options *options; /* borrowed, as session */
	struct session *session;
	struct launch *launch; /* owned by the user of this; NULL = there is none */
	bool is_attached;      /* the session traces: until then the next image of a program begins that */
	bool is_finished;      /* tracing has ended */
	bool is_for_ends; /* the launch has processes that are about to end; the session stops all others */
	struct session_stopper stopper; /* of tracees_stopper() */
};

/* The reports of a launch go to the session of @t, which is borrowed. */
struct launch_hooks tracees_hooks(struct tracees *t);

/* Stops these processes for verdicts; NULL = the session must do it. Valid as long as @t. */
const struct session_stopper *tracees_stopper(struct tracees *t);

/* Make the leak check that a program has asked for. */
void tracees_check(struct tracees *t);
