/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Sockets of serve and connect: made with care, and never waited for without a limit. */
#pragma once

#include <sys/socket.h>
#include <sys/types.h>

#include "user/net_addr.h"

/* Where peers come in. */
struct net_listener {
	int fd;	    /* owned; -1 = none */
	int dir_fd; /* owned; of a UNIX socket's folder, -1 = none */
	dev_t dev;  /* the socket's file */
	ino_t ino;
	char name[108]; /* in the folder */
	struct net_addr addr;
};

/*
 * Listen at @a. A UNIX socket is mode 0600 in a folder that must be ours and 0700 (made if only its last part is
 * missing); a socket that nobody listens at any more is replaced, anything else is not touched. TCP takes numbers
 * and "localhost" only. 0 or -errno, logged. Does not block.
 */
int net_listen(struct net_listener *l, const struct net_addr *a) __must_check;

/* The next peer, not blocking: *@fd is the caller's. -EAGAIN: none; -EPERM: somebody else's, closed; or -errno. */
int net_accept(const struct net_listener *l, int *fd) __must_check;

/* Close, and remove the socket's file if it is still ours. Safe on one that was never opened but zeroed to fd -1. */
void net_listener_close(struct net_listener *l);

/* The folder for sockets without a name: /run/user/UID/heaptap, or /run/heaptap for root. Returns @buf. */
char *net_private_path(char *buf, size_t size, const char *name);

/*
 * Connect to @a (not ssh) within @timeout_ms; looking a name up may take longer. *@fd is the caller's and does not
 * block. At the other end of a UNIX socket must be the same user or root. 0, -ETIMEDOUT or -errno; not logged.
 */
int net_connect(const struct net_addr *a, int timeout_ms, int *fd) __must_check;

/* The socket address of a tcp address with a number or "localhost" in it; its size, 0 for other names. */
socklen_t net_numeric(const struct net_addr *a, struct sockaddr_storage *out);

/* What every connection gets: does not block, close-on-exec, no delay, the kernel's own keepalive. */
void net_prepare(int fd);

/* Who is at the other end of @fd, in words: "PID 4711 of user 0", "192.0.2.7:40112". Returns @buf. */
char *net_peer_name(int fd, char *buf, size_t size);

/* Is the process at the other end of the UNIX socket @fd of our user or of root? */
bool net_peer_is_trusted(int fd);
