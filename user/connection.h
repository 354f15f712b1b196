/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A session on what a heaptap serve elsewhere traces: from an address on the command line to its last record. */
#pragma once

#include "user/options.h"
#include "user/source_remote.h"
#include "user/wire_auth.h"

struct outputs;
struct session;

struct connection {
	const struct options *options;
	struct source_remote_options remote;
	u8 token[WIRE_TOKEN_LEN];
	struct source *source; /* borrowed from the session; NULL = not connected */
};

/* Does @text begin as an address does: ssh://, unix:, tcp://? */
bool connection_is_address(const char *text);

/* What @o (borrowed) says of the other side; --discover blocks. 0, or -EINVAL, logged: the command line is wrong. */
int connection_init(struct connection *c, const struct options *o) __must_check;

/* Connect: session_poll() has events once the other side traces, source_remote_is_started(). 0 or -errno, logged. */
int connection_open(struct connection *c, struct session **out, struct outputs *outs) __must_check;

/* After each session_poll(): a program that is at its end over there gets its verdict, and goes on. */
void connection_round(struct connection *c, struct session *s);

/* Probes out over there, and all that was seen until then, with the last verdict: waits, 30 s at most. */
void connection_stop(struct connection *c, struct session *s);

/* How it ended, logged if there is something to say; an exit status: STATUS_DONE, or what is wrong with it. */
int connection_status(const struct connection *c);
