/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The host's end of a connection: made, kept up, made again. */
#pragma once

#include "user/net_addr.h"
#include "user/wire.h"

struct remote_link;

struct remote_link_options {
	struct net_addr addr;
	bool is_listening;    /* the other side connects to us */
	const u8 *token;      /* borrowed; NULL = none */
	char *const *program; /* ssh: to be started over there; NULL = addr.path names a process */
	size_t queue_bytes;
};

enum {
	REMOTE_CONNECT_MS = 5000,
	REMOTE_AGAIN_MS = 1000,	   /* between attempts */
	REMOTE_SILENCE_MS = 30000, /* then the connection is lost */
	REMOTE_PING_MS = 3000,
};

/*
 * Connect, or listen, or start ssh: the only program that heaptap connect starts. Does not wait for the other side to
 * shake hands. 0 or -errno, logged.
 */
int remote_link_new(struct remote_link **out, const struct remote_link_options *o) __must_check;
void remote_link_free(struct remote_link *l);

enum remote_state {
	REMOTE_AWAY,	/* no connection (yet, or any more): tried again */
	REMOTE_SHAKING, /* it is there, and not proved yet */
	REMOTE_UP,
	REMOTE_OVER, /* it cannot come again: remote_link_why() */
};

/* Do what can be done without waiting (an attempt to connect may take REMOTE_CONNECT_MS). */
enum remote_state remote_link_poll(struct remote_link *l);
const char *remote_link_why(const struct remote_link *l);

/* The next frame of a connection that is up: 1, 0 = none now. A damaged one makes the connection end. */
int remote_link_next(struct remote_link *l, struct wire_frame *f) __must_check;

/* What goes out; NULL unless it is up. */
struct wire_out *remote_link_out(struct remote_link *l);

/* Give the connection up; it is made again if it can be. */
void remote_link_drop(struct remote_link *l, const char *why);

/* Readable when there is something to do: another one for each connection; -1 = none. */
int remote_link_fd(const struct remote_link *l);

/* Sleep until @fd is readable, at most @timeout_ms. */
void remote_wait(int fd, int timeout_ms);
