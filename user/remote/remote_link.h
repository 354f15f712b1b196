/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The host's end of a connection: connects, keeps the connection alive, connects again when it is lost. */
#pragma once

#include "user/remote/net_addr.h"
#include "user/remote/wire.h"

struct remote_link;

struct remote_link_options {
	struct net_addr addr;
	bool is_listening, is_announced; /* the other side connects to us */
	const u8 *token;		 /* borrowed; NULL = none */
	char *const *program; /* ssh: the program to start over there; NULL = addr.path names a process */
	size_t queue_bytes;
};

enum {
	REMOTE_CONNECT_MS = 5000,
	REMOTE_AGAIN_MS = 1000,	   /* between attempts */
	REMOTE_SILENCE_MS = 30000, /* then the connection is lost */
	REMOTE_PING_MS = 3000,
};

/*
 * Connect, listen, or start ssh, the only program that heaptap connect starts. Does not wait for the handshake. 0 or
 * -errno, logged.
 */
int remote_link_new(struct remote_link **out, const struct remote_link_options *o) __must_check;
void remote_link_free(struct remote_link *l);

enum remote_state {
	REMOTE_AWAY,	/* there is no connection; remote_link_poll() tries to connect */
	REMOTE_SHAKING, /* connected; the handshake is not done */
	REMOTE_UP,	/* frames go both ways */
	REMOTE_OVER,	/* lost for good: remote_link_why() */
};

/* The number of the present connection, from 1; 0 = none that is up. */
u32 remote_link_number(const struct remote_link *l);

/* Milliseconds since something came last. */
u64 remote_link_silent_ms(const struct remote_link *l);

/* Read, write, connect again. Does not wait, except for a connection: up to REMOTE_CONNECT_MS. */
enum remote_state remote_link_poll(struct remote_link *l);
const char *remote_link_why(const struct remote_link *l);

/* The next frame of a connection that is up: 1, 0 = none now. A damaged frame ends the connection. */
int remote_link_next(struct remote_link *l, struct wire_frame *f) __must_check;

/* The queue of frames to send; NULL unless the connection is up. */
struct wire_out *remote_link_out(struct remote_link *l);

/* Close the connection; remote_link_poll() connects again if that is possible. */
void remote_link_drop(struct remote_link *l, const char *why);

/* Bytes that have come, over all connections. */
u64 remote_link_bytes(const struct remote_link *l);

/* Close the connection, and connect again with the next remote_link_poll(). What is on its way here is gone. */
void remote_link_renew(struct remote_link *l);

/* The descriptor that is readable when there is something to do; changes with the connection; -1 = none. */
int remote_link_fd(const struct remote_link *l);

/* Sleep until @fd is readable, at most @timeout_ms. */
void remote_wait(int fd, int timeout_ms);
