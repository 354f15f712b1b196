/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The process connector: messages of the kernel about forks, execs and ends. */
#include "user/system/births.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <linux/cn_proc.h>
#include <linux/connector.h>
#include <linux/netlink.h>

#include "user/lib/cleanup.h"

enum {
	FIRST_PID_NS = 0xEFFFFFFC, /* inode: PROC_PID_INIT_INO of the kernel */
	ANSWER_MS = 100,
	ROOM_BYTES = 8 << 20, /* for some 8,000 messages between two looks */
};

struct births {
	int fd;
};

/* One message: its headers, and the event. */
struct message {
	struct nlmsghdr header;
	struct cn_msg connector;
	struct proc_event event;
} __attribute__((packed, aligned(NLMSG_ALIGNTO)));

/* Tell the kernel to send, or to stop sending: it counts listeners. */
static int births_ask(int fd, enum proc_cn_mcast_op op)
{
	struct {
		struct nlmsghdr header;
		struct cn_msg connector;
		u32 op;
	} __attribute__((packed, aligned(NLMSG_ALIGNTO))) m = {
		.header = { .nlmsg_len = sizeof(m), .nlmsg_type = NLMSG_DONE },
		.connector = { .id = { CN_IDX_PROC, CN_VAL_PROC }, .len = sizeof(m.op) },
		.op = op,
	};

	return send(fd, &m, sizeof(m), 0) == sizeof(m) ? 0 : -errno;
}

/* The kernel answers who may listen. */
static int wait_for_answer(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	struct proc_event event;
	struct message m;

	while (poll(&p, 1, ANSWER_MS) == 1) {
		if (recv(fd, &m, sizeof(m), MSG_DONTWAIT) < (ssize_t)sizeof(m))
			continue;
		event = m.event;
		if (event.what == PROC_EVENT_NONE)
			return -(int)event.event_data.ack.err;
	}
	return -EOPNOTSUPP;
}

/* The PIDs of its messages are those of the first PID namespace. */
static bool has_first_pids(void)
{
	struct stat st;

	return !stat("/proc/self/ns/pid", &st) && st.st_ino == FIRST_PID_NS;
}

int births_new(struct births **out)
{
	const struct sockaddr_nl address = { .nl_family = AF_NETLINK, .nl_groups = CN_IDX_PROC };
	auto_close int fd = -1;
	auto_free struct births *b = calloc(1, sizeof(*b));
	int room = ROOM_BYTES, err;

	if (!b)
		return -ENOMEM;
	if (!has_first_pids())
		return -EOPNOTSUPP;
	fd = socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_CONNECTOR);
	if (fd < 0 || bind(fd, (const struct sockaddr *)&address, sizeof(address)))
		return -errno;
	if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof(room)) &&
	    setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &room, sizeof(room)))
		return -errno;
	err = births_ask(fd, PROC_CN_MCAST_LISTEN);
	if (!err)
		err = wait_for_answer(fd);
	if (err)
		return err;
	b->fd = take_fd(fd);
	*out = take_ptr(b);
	return 0;
}

void births_free(struct births *b)
{
	if (!b)
		return;
	/* A socket that is closed without it stays in the kernel's count of listeners. */
	if (!births_ask(b->fd, PROC_CN_MCAST_IGNORE))
		(void)wait_for_answer(b->fd);
	close(b->fd);
	free(b);
}

static void births_give(const struct proc_event *e, void (*take)(void *ctx, enum birth_kind kind, pid_t pid),
			void *ctx)
{
	/* Threads are born and end, too. */
	if (e->what == PROC_EVENT_FORK && e->event_data.fork.child_pid == e->event_data.fork.child_tgid)
		take(ctx, BIRTH_FORK, e->event_data.fork.child_tgid);
	else if (e->what == PROC_EVENT_EXEC)
		take(ctx, BIRTH_EXEC, e->event_data.exec.process_tgid);
	else if (e->what == PROC_EVENT_EXIT &&
		 e->event_data.exit.process_pid == e->event_data.exit.process_tgid)
		take(ctx, BIRTH_END, e->event_data.exit.process_tgid);
}

int births_read(struct births *b, void (*take)(void *ctx, enum birth_kind kind, pid_t pid), void *ctx)
{
	enum { AT_ONCE = 20000 };
	bool is_lost = false;

	for (int i = 0; i < AT_ONCE; i++) {
		struct sockaddr_nl from = { .nl_pid = ~0U };
		socklen_t len = sizeof(from);
		struct proc_event event;
		struct message m;
		ssize_t n = recvfrom(b->fd, &m, sizeof(m), 0, (struct sockaddr *)&from, &len);

		if (n < 0 && errno == ENOBUFS) {
			is_lost = true;
			continue;
		}
		if (n < 0)
			return errno == EAGAIN ? (is_lost ? -ENOBUFS : 0) : -errno;
		/* Any process may send to the socket: only the kernel has port 0. */
		if (n < (ssize_t)sizeof(m) || from.nl_pid || m.connector.id.idx != CN_IDX_PROC)
			continue;
		event = m.event;
		births_give(&event, take, ctx);
	}
	return -ENOBUFS;
}
