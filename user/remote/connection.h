/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A session whose events come from a heaptap serve: from the address on the command line to the last record. */
#pragma once

#include "user/remote/source_remote.h"
#include "user/remote/wire_auth.h"

struct control;
struct outputs;
struct session;

/* Options of a connection. Strings are borrowed. */
struct connection_options {
	struct session_options *session; /* borrowed for the life of the connection */
	const char *address;		 /* NULL = none was given */
	char **program;			 /* the program to start over there, NULL-terminated; NULL = none */
	const char *listen, *token_file;
	bool discover, announce, want_kill;
	bool is_insecure_fine; /* TCP may leave this machine */
	bool want_mmap, no_cpp;
	u32 max_followed; /* as in source_remote_options */
};

struct connection {
	struct connection_options options;
	struct source_remote_options remote;
	u8 token[WIRE_TOKEN_LEN];
	struct source *source; /* borrowed from the session; NULL = not connected */
	bool is_kill_refused;
};

/* Does @text begin like an address: ssh://, unix:, tcp://? */
bool connection_is_address(const char *text);

/*
 * Find the address of the server; --discover blocks. Of a server on this machine the programs are here, too: without
 * another sysroot that is /. 0, or -EINVAL, logged: the command line is wrong.
 */
int connection_init(struct connection *c, const struct connection_options *o) __must_check;

/* Connect. session_poll() has events after source_remote_is_started(). 0 or -errno, logged. */
int connection_open(struct connection *c, struct session **out, struct outputs *outs) __must_check;

/*
 * Call after each session_poll(). Scans a program that is at its end over there, then lets it exit. While @control
 * guards this thread, it can have the probes over there removed. Its clocks start when the other side traces.
 */
void connection_round(struct connection *c, struct session *s, struct control *control);

/*
 * Take the last verdict, remove the probes over there, and take the last events, as long as something comes at least
 * each 30 s, and until a signal; over a slow link without a verdict. @is_hurried: somebody waits for it, so the other
 * side is left without all that if it does not answer within a second, or 5 s where it is on another machine. Over a
 * slow link what is on its way is left out then, and counted over there.
 */
void connection_stop(struct connection *c, struct session *s, bool is_hurried);

/* The exit status of the connection. Logs the reason unless it ended well. */
int connection_status(const struct connection *c);
