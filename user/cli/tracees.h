/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Processes that heaptap traces by ptrace while a session counts their calls: what each of their stops is for. */
#pragma once

#include "user/session/session_stopper.h"
#include "user/lib/types.h"
#include "user/source/launch.h"

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

/*
 * struct code_choice, with @ctx the tracees: as session_put_code(). A process that gets code joins the launch, so that
 * its children are stopped at their births.
 */
int tracees_put_code(void *ctx, struct session *s, pid_t pid) __must_check;

/* Make the leak check that a program has asked for. */
void tracees_check(struct tracees *t);
