/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The socket between two heaptaps of one user: a packet each way, reports as descriptors. */
#include "user/session/ask.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "user/lib/cleanup.h"
#include "user/lib/log.h"
#include "user/lib/parse.h"
#include "user/lib/passed_fds.h"
#include "user/lib/proc.h"

enum {
	ASK_MAGIC = 0x68656170, /* "heap" */
	SLOW_MS = 200,
	STOPPED_MS = 500,
	LONG_MS = 5000,	  /* then the user is told whose answer is waited for */
	STUCK_MS = 15000, /* without any work: nobody reads what it writes, or it hangs */
	MAX_WAITING = 8,
};

struct ask_server {
	int dir; /* owned */
	int fd;	 /* owned; listens */
	char name[16];
};

/* The directory with the sockets of this user. */
static void directory_path(char *path, size_t size)
{
	const char *runtime = getenv("XDG_RUNTIME_DIR"), *own = getenv("HEAPTAP_RUN_DIR");

	if (own && *own == '/')
		snprintf(path, size, "%s", own);
	else if (!geteuid())
		snprintf(path, size, "/run/heaptap");
	else if (runtime && *runtime == '/')
		snprintf(path, size, "%s/heaptap", runtime);
	else
		snprintf(path, size, "/tmp/heaptap-%u", (unsigned int)geteuid());
}

/* Open the directory if it belongs to this user alone. -EPERM, logged: another user could put sockets there. */
static int ask_open_directory(bool is_made)
{
	char path[4096];
	struct stat st;
	int fd;

	directory_path(path, sizeof(path));
	if (is_made && mkdir(path, 0700) && errno != EEXIST)
		return -errno;
	fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 && errno != ENOTDIR && errno != ELOOP && errno != EACCES)
		return -errno;
	if (fd >= 0 && !fstat(fd, &st) && st.st_uid == geteuid() && !(st.st_mode & 077))
		return fd;
	if (fd >= 0)
		close(fd);
	warn("%s: is not a directory of this user alone, so heaptaps cannot ask each other: remove it, or set "
	     "XDG_RUNTIME_DIR",
	     path);
	return -EPERM;
}

/* A path by an open directory is short enough for an address, and nobody can exchange the directory. */
static void set_address(struct sockaddr_un *addr, int dir, const char *name)
{
	*addr = (struct sockaddr_un){ .sun_family = AF_UNIX };
	snprintf(addr->sun_path, sizeof(addr->sun_path), "/proc/self/fd/%d/%.20s", dir, name);
}

static int ask_listen_at(struct ask_server *a)
{
	struct sockaddr_un addr;
	char name[16];

	/* Rename it only when it listens: other heaptaps remove a socket that refuses connections. */
	snprintf(name, sizeof(name), ".%d", (int)getpid());
	set_address(&addr, a->dir, name);
	a->fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (a->fd < 0)
		return -errno;
	/* A dead heaptap had the same PID. */
	if (unlinkat(a->dir, name, 0) && errno != ENOENT)
		return -errno;
	if (bind(a->fd, (struct sockaddr *)&addr, sizeof(addr)) || listen(a->fd, MAX_WAITING) ||
	    renameat(a->dir, name, a->dir, name + 1))
		return -errno;
	memcpy(a->name, name + 1, sizeof(name) - 1);
	return 0;
}

int ask_open(struct ask_server **out)
{
	struct ask_server *a = calloc(1, sizeof(*a));
	int err;

	if (!a)
		return -ENOMEM;
	a->fd = -1;
	a->dir = ask_open_directory(true);
	err = a->dir < 0 ? a->dir : ask_listen_at(a);
	if (err) {
		ask_close(a);
		return err;
	}
	*out = a;
	return 0;
}

void ask_close(struct ask_server *a)
{
	if (!a)
		return;
	if (a->fd >= 0) {
		close(a->fd);
		if (*a->name)
			unlinkat(a->dir, a->name, 0);
	}
	if (a->dir >= 0)
		close(a->dir);
	free(a);
}

int ask_fd(const struct ask_server *a)
{
	return a->fd;
}

static bool is_same_user(int fd)
{
	struct ucred peer;
	socklen_t len = sizeof(peer);

	return !getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) && peer.uid == geteuid();
}

static bool wait_readable(int fd, int timeout_ms)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	int nr;

	do
		nr = poll(&p, 1, timeout_ms);
	while (nr < 0 && errno == EINTR);
	return nr > 0;
}

static void set_version(char version[16])
{
	memset(version, 0, 16);
	snprintf(version, 16, "%s", HEAPTAP_VERSION);
}

static int read_request(int fd, struct ask_request *request)
{
	ssize_t len;

	if (!is_same_user(fd))
		return -EPERM;
	if (!wait_readable(fd, SLOW_MS))
		return -EPROTO;
	len = recv(fd, request, sizeof(*request), MSG_DONTWAIT);
	if (len < (ssize_t)offsetof(struct ask_request, pid) || request->magic != ASK_MAGIC)
		return -EPROTO;
	if (len != sizeof(*request) || request->size != sizeof(*request) ||
	    strncmp(request->version, HEAPTAP_VERSION, sizeof(request->version)))
		return -EPROTONOSUPPORT;
	if (request->nr_formats > ASK_MAX_FORMATS)
		return -EPROTO;
	request->marker[ASK_MARK_LEN - 1] = '\0';
	for (u32 i = 0; i < request->nr_formats; i++)
		request->formats[i].name[ASK_FORMAT_LEN - 1] = '\0';
	return 0;
}

int ask_accept(struct ask_server *a, struct ask_request *request, int *fd)
{
	int conn = accept4(a->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	int err;

	if (conn < 0)
		return -EAGAIN;
	err = read_request(conn, request);
	if (err == -EPROTONOSUPPORT) {
		struct ask_reply reply = { .status = ASK_OTHER_VERSION };

		ask_answer(conn, &reply);
		return -EPROTO;
	}
	if (err) {
		close(conn);
		return err;
	}
	*fd = conn;
	return 0;
}

void ask_answer(int fd, struct ask_reply *reply)
{
	struct iovec iov = { .iov_base = reply, .iov_len = offsetof(struct ask_reply, fds) };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	union passed_fds room;

	set_version(reply->version);
	passed_fds_attach(&msg, &room, reply->fds, reply->nr_fds);
	(void)!sendmsg(fd, &msg, MSG_DONTWAIT | MSG_NOSIGNAL);
	for (u32 i = 0; i < reply->nr_fds; i++)
		close(reply->fds[i]);
	close(fd);
}

/* The process at the other end; 0 = not known. */
static pid_t peer_of(int fd)
{
	struct ucred peer;
	socklen_t len = sizeof(peer);

	return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) ? 0 : peer.pid;
}

/* Is process @pid stopped, by a signal or a debugger? */
static bool ask_is_stopped(pid_t pid)
{
	struct proc_stat stat;

	return pid > 0 && !proc_read_stat(&stat, pid) && (stat.state == 'T' || stat.state == 't');
}

/* How long process @pid has slept without any work, in looks that are STOPPED_MS apart; @cpu_ns is kept in between. */
static int ask_idle_ms(pid_t pid, u64 *cpu_ns, int idle_ms)
{
	struct proc_stat stat;
	u64 before_ns = *cpu_ns;

	if (pid <= 0 || proc_read_stat(&stat, pid) || stat.state != 'S')
		return 0;
	*cpu_ns = stat.user_ns + stat.system_ns;
	return *cpu_ns == before_ns ? idle_ms + STOPPED_MS : 0;
}

/*
 * Wait for an answer, which may take long. After LONG_MS the other heaptap is named. -ETIME: it is stopped, or does
 * nothing, which is logged.
 */
static int wait_for_reply(int fd)
{
	pid_t pid = peer_of(fd);
	u64 cpu_ns = 0;
	int idle_ms = 0;

	for (int waited_ms = 0; !wait_readable(fd, STOPPED_MS); waited_ms += STOPPED_MS) {
		if (waited_ms == LONG_MS)
			info("waiting for the answer of another heaptap (PID %d)", (int)pid);
		idle_ms = ask_idle_ms(pid, &cpu_ns, idle_ms);
		if (idle_ms >= STUCK_MS) {
			warn("heaptap (PID %d) does not answer (does nobody read its output?): going on without it",
			     (int)pid);
			return -ETIME;
		}
		/* Perhaps only for a moment. */
		if (!ask_is_stopped(pid) || wait_readable(fd, STOPPED_MS) || !ask_is_stopped(pid))
			continue;
		warn("heaptap (PID %d) is stopped and cannot answer; 'kill -CONT %d' resumes it", (int)pid,
		     (int)pid);
		return -ETIME;
	}
	return 0;
}

static int read_reply(int fd, struct ask_reply *reply)
{
	struct iovec iov = { .iov_base = reply, .iov_len = offsetof(struct ask_reply, fds) };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	union passed_fds room;
	ssize_t len;
	u32 nr;

	memset(reply, 0, sizeof(*reply));
	passed_fds_expect(&msg, &room);
	do
		len = recvmsg(fd, &msg, MSG_CMSG_CLOEXEC);
	while (len < 0 && errno == EINTR);
	if (len <= 0)
		return len ? -errno : -ECONNRESET;
	nr = passed_fds_take(&msg, reply->fds, ASK_MAX_FORMATS);
	if (len == (ssize_t)iov.iov_len && nr == reply->nr_fds)
		return 0;
	for (u32 i = 0; i < nr; i++)
		close(reply->fds[i]);
	return -EPROTO;
}

/* Ask the heaptap whose socket has this name. -ESRCH, -EOPNOTSUPP, -ETIME: see ask_send(). */
static int ask_one(int dir, const char *name, const struct ask_request *request, struct ask_reply *reply,
		   bool *other)
{
	auto_close int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	/* A stopped heaptap takes a few connections, and lets others wait. */
	const struct timeval limit = { .tv_sec = 5 };
	struct sockaddr_un addr;
	int err;

	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit)))
		return -errno;
	set_address(&addr, dir, name);
	if (connect(fd, (struct sockaddr *)&addr, sizeof(addr))) {
		/* The heaptap of this socket was killed. */
		if (errno == ECONNREFUSED)
			unlinkat(dir, name, 0);
		return -ESRCH;
	}
	if (!is_same_user(fd) || send(fd, request, sizeof(*request), MSG_NOSIGNAL) != sizeof(*request))
		return -ESRCH;
	err = wait_for_reply(fd);
	if (!err)
		err = read_reply(fd, reply);
	/* The other heaptap has ended meanwhile. */
	if (err)
		return err == -ECONNRESET ? -ESRCH : err;
	*other |= reply->status == ASK_OTHER_VERSION;
	if (reply->status == ASK_WITHOUT_SCAN)
		return -EOPNOTSUPP;
	return reply->status == ASK_DONE || reply->status == ASK_FAILED ? 0 : -ESRCH;
}

int ask_send(struct ask_request *request, struct ask_reply *reply, bool *other)
{
	int dir = ask_open_directory(false), err = -ESRCH;
	bool is_any_stopped = false;
	struct dirent *entry;
	DIR *list;

	*other = false;
	if (dir < 0)
		return dir == -ENOENT || dir == -EPERM ? -ESRCH : dir;
	list = fdopendir(dup(dir));
	if (!list) {
		close(dir);
		return -errno;
	}
	request->magic = ASK_MAGIC;
	request->size = sizeof(*request);
	set_version(request->version);
	/* Two heaptaps may trace one process, and only one of them scans. */
	while ((err == -ESRCH || err == -EOPNOTSUPP) && (entry = readdir(list))) {
		u64 number;
		int one;

		if (parse_u64(entry->d_name, &number))
			continue;
		one = ask_one(dir, entry->d_name, request, reply, other);
		is_any_stopped |= one == -ETIME;
		err = one == -ESRCH || one == -ETIME ? err : one;
	}
	closedir(list);
	close(dir);
	return err == -ESRCH && is_any_stopped ? -ETIME : err;
}
