/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Connect sockets. No other file looks names up. */
#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "user/lib/cleanup.h"
#include "user/lib/log.h"
#include "user/remote/net_socket.h"

enum { ROUND_MS = 50 };

/* Does a signal wait that heaptap shall end by? Where it is not blocked, it has ended heaptap. */
static bool has_signal(void)
{
	sigset_t set;

	return !sigpending(&set) && (sigismember(&set, SIGINT) == 1 || sigismember(&set, SIGTERM) == 1);
}

static int wait_for_peer(int fd, int timeout_ms)
{
	struct pollfd p = { .fd = fd, .events = POLLOUT };

	for (; timeout_ms > 0; timeout_ms -= ROUND_MS) {
		if (poll(&p, 1, timeout_ms < ROUND_MS ? timeout_ms : ROUND_MS) > 0)
			return 0;
		if (has_signal())
			return -EINTR;
	}
	return -ETIMEDOUT;
}

static int connect_within(const struct sockaddr *sa, socklen_t len, int timeout_ms, int *out)
{
	auto_close int fd = socket(sa->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	socklen_t err_len = sizeof(int);
	int err = 0;

	if (fd < 0)
		return -errno;
	if (connect(fd, sa, len)) {
		/* EAGAIN: the queue of a UNIX socket is full. */
		if (errno != EINPROGRESS)
			return -errno;
		err = wait_for_peer(fd, timeout_ms);
		if (err)
			return err;
		if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &err, &err_len))
			return -errno;
		if (err)
			return -err;
	}
	net_prepare(fd);
	*out = take_fd(fd);
	return 0;
}

static int connect_unix(const struct net_addr *a, int timeout_ms, int *fd)
{
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	int err;

	if (strlen(a->path) >= sizeof(un.sun_path))
		return -ENAMETOOLONG;
	strcpy(un.sun_path, a->path);
	err = connect_within((struct sockaddr *)&un, sizeof(un), timeout_ms, fd);
	if (err || net_peer_is_trusted(*fd))
		return err;
	close(*fd);
	*fd = -1;
	return -EPERM;
}

#ifdef ONLY_NUMERIC_HOSTS /* static programs cannot look names up */
static int connect_name(const struct net_addr *a, int timeout_ms, int *fd)
{
	(void)a;
	(void)timeout_ms;
	(void)fd;
	return -EADDRNOTAVAIL;
}
#else
static int connect_name(const struct net_addr *a, int timeout_ms, int *fd)
{
	const struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV };
	struct addrinfo *list;
	char port[8];
	int err;

	snprintf(port, sizeof(port), "%u", a->port);
	err = getaddrinfo(a->host, port, &hints, &list);
	if (err) {
		debug("net: %s: %s", a->host, gai_strerror(err));
		return -EHOSTUNREACH;
	}
	err = -EHOSTUNREACH;
	for (const struct addrinfo *i = list; i && err; i = i->ai_next)
		err = connect_within(i->ai_addr, i->ai_addrlen, timeout_ms, fd);
	freeaddrinfo(list);
	return err;
}
#endif

int net_connect(const struct net_addr *a, int timeout_ms, int *fd)
{
	struct sockaddr_storage sa;
	socklen_t len;

	if (a->kind == NET_UNIX)
		return connect_unix(a, timeout_ms, fd);
	if (a->kind != NET_TCP)
		return -EINVAL;
	len = net_numeric(a, &sa);
	return len ? connect_within((struct sockaddr *)&sa, len, timeout_ms, fd)
		   : connect_name(a, timeout_ms, fd);
}
