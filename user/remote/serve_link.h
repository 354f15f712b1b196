/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Connections of a server: peers do the handshake, one becomes the client. No peer can keep the server waiting. */
#pragma once

#include "user/remote/net_addr.h"
#include "user/remote/wire.h"

struct serve_link;

struct serve_link_options {
	const struct net_addr *listen; /* NULL = do not listen */
	struct net_addr *to;	       /* NULL, or: connect there until a peer answers; borrowed */
	bool finds_to;		       /* its address comes from a host that announces itself */
	int in_fd, out_fd;	       /* an open connection (ssh); -1 = none; borrowed */
	const u8 *token;	       /* borrowed; NULL = none is asked for */
	size_t queue_bytes;	       /* size of the queue to the client */
};

enum {
	SERVE_MAX_STRANGERS = 32, /* at a time, 5 s each; more of them wait in the kernel */
	SERVE_PING_MS = 3000,
	SERVE_SILENCE_MS = 30000, /* a client is lost after this time without a frame */
	SERVE_REPLACE_MS = 10000, /* another client may take its place after this time without a frame */
};

/* 0 or -errno, logged. */
int serve_link_new(struct serve_link **out, const struct serve_link_options *o) __must_check;
void serve_link_free(struct serve_link *l);

/* A descriptor that is readable when there is something to do, also when @fd of serve_link_watch() is. */
int serve_link_fd(const struct serve_link *l);
int serve_link_watch(struct serve_link *l, int fd) __must_check;

/*
 * Accept, do handshakes, read and write, without waiting. Call it when there is something to do, and each second.
 * Returns 1 and the client's next frame, 0 without a frame, -EPIPE when a connection that cannot come again (in_fd) is
 * over.
 */
int serve_link_poll(struct serve_link *l, struct wire_frame *frame) __must_check;

/* The part of serve_link_poll() for a busy server: write to the client, and send pings. */
void serve_link_keep(struct serve_link *l);

/* 0 = no client; else the number of the connection: each client has its own. */
u32 serve_link_client(const struct serve_link *l);

/* The queue to the client; NULL without a client. */
struct wire_out *serve_link_out(struct serve_link *l);

/* Close the connection to the client. Logs @why. */
void serve_link_drop(struct serve_link *l, const char *why);

/* Write the queue, for at most @timeout_ms. True if nothing is left. */
bool serve_link_flush(struct serve_link *l, int timeout_ms);

/*
 * Shut the connection down for writing, and wait at most @timeout_ms until the client closes it. A TCP connection that
 * is closed with unread bytes loses the bytes that are on their way to the client.
 */
void serve_link_finish(struct serve_link *l, int timeout_ms);

/* Sleep until there is something to do, at most @timeout_ms. */
void serve_link_wait(const struct serve_link *l, int timeout_ms);
