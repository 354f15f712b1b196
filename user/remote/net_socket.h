/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Sockets of serve and connect. No function here waits without a limit. */
#pragma once

#include <sys/socket.h>

#include "user/remote/net_addr.h"

/* A socket that accepts peers. */
struct net_listener {
	int fd;	    /* owned; -1 = none */
	int dir_fd; /* owned; directory of a UNIX socket, -1 = none */
	dev_t dev;  /* of the socket's file */
	ino_t ino;
	char name[108]; /* in that directory */
	struct net_addr addr;
};

/*
 * Listen at @a. A UNIX socket gets mode 0600. The directory must be ours with mode 0700; its last part is created if
 * that is missing. A socket at which nobody listens any more is replaced; other files are left alone. TCP
 * takes an IP address or "localhost". 0 or -errno, logged. Does not block.
 */
int net_listen(struct net_listener *l, const struct net_addr *a) __must_check;

/* Accept the next peer without blocking: the caller owns *@fd. -EAGAIN: none; -EPERM: of another user; or -errno. */
int net_accept(const struct net_listener *l, int *fd) __must_check;

/* Close, and remove the socket's file if it is still the same file. @l may be closed: its fd and dir_fd are -1. */
void net_listener_close(struct net_listener *l);

/* The path of socket @name in our directory: /run/user/UID/heaptap, or /run/heaptap for root. Returns @buf. */
char *net_private_path(char *buf, size_t size, const char *name);

/*
 * Connect to @a (not ssh) within @timeout_ms; looking a name up may take longer. The caller owns *@fd, which does not
 * block. The peer of a UNIX socket must be our user or root. 0, -EPERM for another user, -ETIMEDOUT or -errno; not
 * logged.
 */
int net_connect(const struct net_addr *a, int timeout_ms, int *fd) __must_check;

/* The socket address of a tcp address with an IP address or "localhost". Returns its size, 0 for other names. */
socklen_t net_numeric(const struct net_addr *a, struct sockaddr_storage *out);

/* Prepare the descriptor of a connection: non-blocking, close-on-exec, no delay, keepalive by the kernel. */
void net_prepare(int fd);

/* The peer of @fd in words: "PID 4711 of user 0", "192.0.2.7:40112". Returns @buf. */
char *net_peer_name(int fd, char *buf, size_t size);

/* Is the process at the other end of the UNIX socket @fd of our user or of root? */
bool net_peer_is_trusted(int fd);
