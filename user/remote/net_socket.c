/* SPDX-License-Identifier: GPL-2.0-or-later */
/* UNIX and TCP sockets. */
#include "user/remote/net_socket.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "user/lib/cleanup.h"
#include "user/lib/log.h"

enum { BACKLOG = 64, KEEP_IDLE_S = 30, KEEP_INTERVAL_S = 10, KEEP_COUNT = 3 };

void net_prepare(int fd)
{
	static const struct {
		int level, name, value;
	} settings[] = {
		{ SOL_SOCKET, SO_KEEPALIVE, 1 },
		{ IPPROTO_TCP, TCP_NODELAY, 1 },
		{ IPPROTO_TCP, TCP_KEEPIDLE, KEEP_IDLE_S },
		{ IPPROTO_TCP, TCP_KEEPINTVL, KEEP_INTERVAL_S },
		{ IPPROTO_TCP, TCP_KEEPCNT, KEEP_COUNT },
	};

	if (fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK) < 0 || fcntl(fd, F_SETFD, FD_CLOEXEC) < 0)
		debug("net: descriptor: %s", strerror(errno));
	/* A socket of another family does not know some of the settings, and does not need them. */
	for (size_t i = 0; i < ARRAY_SIZE(settings); i++)
		if (setsockopt(fd, settings[i].level, settings[i].name, &settings[i].value, sizeof(int)))
			break;
}

bool net_peer_is_trusted(int fd)
{
	struct ucred who;
	socklen_t len = sizeof(who);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &len))
		return false;
	return who.uid == 0 || who.uid == geteuid();
}

char *net_peer_name(int fd, char *buf, size_t size)
{
	struct sockaddr_storage a = { 0 };
	const struct sockaddr_in *v4 = (const struct sockaddr_in *)&a;
	const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)&a;
	const u8 *b = (const u8 *)&v4->sin_addr;
	struct ucred who;
	socklen_t len = sizeof(a), who_len = sizeof(who);

	snprintf(buf, size, "unknown");
	if (getpeername(fd, (struct sockaddr *)&a, &len))
		return buf;
	/* Smaller than inet_ntop(3) of small C libraries. */
	if (a.ss_family == AF_INET)
		snprintf(buf, size, "%u.%u.%u.%u:%u", b[0], b[1], b[2], b[3], ntohs(v4->sin_port));
	if (a.ss_family == AF_UNIX && !getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &who_len))
		snprintf(buf, size, "PID %d of user %u", (int)who.pid, (unsigned)who.uid);
	if (a.ss_family != AF_INET6)
		return buf;
	len = (socklen_t)snprintf(buf, size, "[");
	for (int i = 0; i < 8 && len < size; i++)
		len += (socklen_t)snprintf(buf + len, size - len, i ? ":%x" : "%x",
					   ntohs(v6->sin6_addr.s6_addr16[i]));
	if (len < size)
		snprintf(buf + len, size - len, "]:%u", ntohs(v6->sin6_port));
	return buf;
}

char *net_private_path(char *buf, size_t size, const char *name)
{
	if (geteuid())
		snprintf(buf, size, "/run/user/%u/heaptap/%s", (unsigned)geteuid(), name);
	else
		snprintf(buf, size, "/run/heaptap/%s", name);
	return buf;
}

socklen_t net_numeric(const struct net_addr *a, struct sockaddr_storage *out)
{
	struct sockaddr_in *v4 = (struct sockaddr_in *)out;
	struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)out;
	const char *host = strcmp(a->host, "localhost") ? a->host : "127.0.0.1";

	memset(out, 0, sizeof(*out));
	if (inet_pton(AF_INET, host, &v4->sin_addr) == 1) {
		v4->sin_family = AF_INET;
		v4->sin_port = htons(a->port);
		return sizeof(*v4);
	}
	if (inet_pton(AF_INET6, host, &v6->sin6_addr) == 1) {
		v6->sin6_family = AF_INET6;
		v6->sin6_port = htons(a->port);
		return sizeof(*v6);
	}
	return 0;
}

/* Open the directory of @path; create its last part if that is missing. Others must have no access to it. */
static int net_socket_open_directory(const char *path, const char *slash, int *fd)
{
	char dir[NET_PATH_MAX];
	struct stat st;

	snprintf(dir, sizeof(dir), "%.*s", (int)(slash - path), path);
	if (!dir[0])
		strcpy(dir, "/");
	if (mkdir(dir, 0700) && errno != EEXIST)
		return -errno;
	*fd = open(dir, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (*fd < 0)
		return -errno;
	if (fstat(*fd, &st))
		return -errno;
	if (st.st_uid == geteuid() && !(st.st_mode & 077))
		return 0;
	error("serve: %s: the directory of a socket must be yours and have mode 0700", dir);
	return -EPERM;
}

/* The address of socket @name in @dir_fd. The path is short, however long the name of the directory is. */
static void fill_unix(struct sockaddr_un *un, int dir_fd, const char *name)
{
	un->sun_family = AF_UNIX;
	snprintf(un->sun_path, sizeof(un->sun_path), "/proc/self/fd/%d/%.64s", dir_fd, name);
}

/* Remove a socket at which nobody listens. The directory is ours, so no other user can replace it meanwhile. */
static int remove_stale(const struct net_listener *l, const struct sockaddr_un *un)
{
	auto_close int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct stat st;

	if (fd < 0)
		return -errno;
	if (fstatat(l->dir_fd, l->name, &st, AT_SYMLINK_NOFOLLOW))
		return -errno;
	if (!S_ISSOCK(st.st_mode) || st.st_uid != geteuid())
		return -EEXIST;
	if (!connect(fd, (const struct sockaddr *)un, sizeof(*un)) || errno != ECONNREFUSED)
		return -EADDRINUSE;
	return unlinkat(l->dir_fd, l->name, 0) ? -errno : 0;
}

static int bind_unix(struct net_listener *l)
{
	struct sockaddr_un un = { 0 };
	struct stat st;
	mode_t old;
	int err;

	fill_unix(&un, l->dir_fd, l->name);
	old = umask(0177);
	err = bind(l->fd, (struct sockaddr *)&un, sizeof(un)) ? -errno : 0;
	if (err == -EADDRINUSE) {
		err = remove_stale(l, &un);
		if (!err)
			err = bind(l->fd, (struct sockaddr *)&un, sizeof(un)) ? -errno : 0;
	}
	umask(old);
	if (err)
		return err;
	if (fstatat(l->dir_fd, l->name, &st, AT_SYMLINK_NOFOLLOW))
		return -errno;
	l->dev = st.st_dev;
	l->ino = st.st_ino;
	return 0;
}

static int listen_unix(struct net_listener *l)
{
	const char *slash = strrchr(l->addr.path, '/');
	int err;

	if (!slash[1] || strlen(slash + 1) > 64)
		return -ENAMETOOLONG;
	strcpy(l->name, slash + 1);
	err = net_socket_open_directory(l->addr.path, slash, &l->dir_fd);
	if (err)
		return err;
	l->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	return l->fd < 0 ? -errno : bind_unix(l);
}

static int listen_tcp(struct net_listener *l)
{
	struct sockaddr_storage sa;
	socklen_t len = net_numeric(&l->addr, &sa);
	int yes = 1;

	if (!len)
		return -EADDRNOTAVAIL;
	l->fd = socket(sa.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (l->fd < 0)
		return -errno;
	if (setsockopt(l->fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes)))
		return -errno;
	return bind(l->fd, (struct sockaddr *)&sa, len) ? -errno : 0;
}

int net_listen(struct net_listener *l, const struct net_addr *a)
{
	char text[NET_PATH_MAX];
	int err;

	*l = (struct net_listener){ .fd = -1, .dir_fd = -1, .addr = *a };
	err = a->kind == NET_UNIX ? listen_unix(l) : a->kind == NET_TCP ? listen_tcp(l) : -EINVAL;
	if (!err && listen(l->fd, BACKLOG))
		err = -errno;
	if (!err)
		return 0;
	error("net: %s: cannot listen there: %s", net_addr_text(a, text, sizeof(text)),
	      err == -EADDRNOTAVAIL ? "not an address of this machine" : strerror(-err));
	net_listener_close(l);
	return err;
}

void net_listener_close(struct net_listener *l)
{
	struct stat st;

	if (l->fd >= 0 && l->ino && !fstatat(l->dir_fd, l->name, &st, AT_SYMLINK_NOFOLLOW) &&
	    st.st_dev == l->dev && st.st_ino == l->ino && unlinkat(l->dir_fd, l->name, 0))
		debug("net: %s: %s", l->addr.path, strerror(errno));
	cleanup_close(&l->fd);
	cleanup_close(&l->dir_fd);
	l->fd = l->dir_fd = -1;
	l->ino = 0;
}

int net_accept(const struct net_listener *l, int *fd)
{
	auto_close int peer = accept4(l->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (peer < 0)
		return errno == ECONNABORTED || errno == EINTR ? -EAGAIN : -errno;
	if (l->addr.kind == NET_UNIX && !net_peer_is_trusted(peer))
		return -EPERM;
	net_prepare(peer);
	*fd = take_fd(peer);
	return 0;
}
