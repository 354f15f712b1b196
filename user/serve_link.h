/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The serving end of a connection: strangers shake hands, one becomes the client; nobody is ever waited for. */
#pragma once

#include "user/net_addr.h"
#include "user/wire.h"

struct serve_link;

struct serve_link_options {
	const struct net_addr *listen; /* NULL = do not */
	const struct net_addr *to;     /* NULL, or: connect there, again and again */
	int in_fd, out_fd;	       /* a connection that is there already (ssh); -1 = none. Not owned */
	const u8 *token;	       /* borrowed; NULL = none is asked for */
	size_t queue_bytes;	       /* what may wait to be sent */
};

enum {
	SERVE_MAX_STRANGERS = 32, /* at a time, 5 s each; others wait in the kernel */
	SERVE_PING_MS = 3000,
	SERVE_SILENCE_MS = 30000, /* then a client is lost */
	SERVE_REPLACE_MS = 10000, /* then another one may take its place */
};

/* 0 or -errno, logged. */
int serve_link_new(struct serve_link **out, const struct serve_link_options *o) __must_check;
void serve_link_free(struct serve_link *l);

/* Readable when there is something to do; serve_link_watch() adds another descriptor that makes it so. */
int serve_link_fd(const struct serve_link *l);
int serve_link_watch(struct serve_link *l, int fd) __must_check;

/*
 * Accept, shake hands, read, write: whatever can be done without waiting. Call it at least every 100 ms.
 * Returns 1 and the client's next frame, 0 when there is none now, -EPIPE when a connection that cannot come again
 * (in_fd) is over.
 */
int serve_link_poll(struct serve_link *l, struct wire_frame *frame) __must_check;

/* A part of serve_link_poll(), for who is busy: write what the client takes, and let it know that we live. */
void serve_link_keep(struct serve_link *l);

/* 0 = there is no client; else a number that is another one for each that comes. */
u32 serve_link_client(const struct serve_link *l);

/* What goes to the client; NULL without one. */
struct wire_out *serve_link_out(struct serve_link *l);

/* Give the client up. @why is logged. */
void serve_link_drop(struct serve_link *l, const char *why);

/* Write what waits, for at most @timeout_ms. True if nothing is left. */
bool serve_link_flush(struct serve_link *l, int timeout_ms);

/*
 * Nothing more is sent. Waits for the client to go, for at most @timeout_ms: closed with something unread, a TCP
 * connection loses what is still on its way to the client.
 */
void serve_link_finish(struct serve_link *l, int timeout_ms);

/* Sleep until there is something to do, at most @timeout_ms. */
void serve_link_wait(const struct serve_link *l, int timeout_ms);

/* Peers that were turned away so far. */
u64 serve_link_refused(const struct serve_link *l);
