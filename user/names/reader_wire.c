/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Sends and receives whole messages, and descriptors with them. */
#include "user/names/reader_wire.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

/* A descriptor beside a message. */
union passed_fd {
	struct cmsghdr head;
	char bytes[CMSG_SPACE(sizeof(int))];
};

static void attach_fd(struct msghdr *msg, union passed_fd *control, int fd)
{
	memset(control, 0, sizeof(*control));
	msg->msg_control = control->bytes;
	msg->msg_controllen = sizeof(control->bytes);
	control->head.cmsg_level = SOL_SOCKET;
	control->head.cmsg_type = SCM_RIGHTS;
	control->head.cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(&control->head), &fd, sizeof(fd));
}

static void reader_wire_skip(struct iovec iov[2], size_t done)
{
	for (int i = 0; i < 2; i++) {
		size_t part = done < iov[i].iov_len ? done : iov[i].iov_len;

		iov[i].iov_base = (char *)iov[i].iov_base + part;
		iov[i].iov_len -= part;
		done -= part;
	}
}

int reader_wire_send(int fd, const void *head, size_t size, const void *bytes, size_t len, int passed)
{
	struct iovec iov[2] = { { (void *)head, size }, { (void *)bytes, len } };
	struct msghdr msg = { .msg_iov = iov, .msg_iovlen = 2 };
	union passed_fd control;

	if (passed >= 0)
		attach_fd(&msg, &control, passed);
	while (iov[0].iov_len + iov[1].iov_len) {
		ssize_t n = sendmsg(fd, &msg, MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return errno == ECONNRESET ? -EPIPE : -errno;
		reader_wire_skip(iov, (size_t)n);
		msg.msg_control = NULL;
		msg.msg_controllen = 0;
	}
	return 0;
}

/* The descriptor that came with @msg, or -1. */
static int take_fd_of(struct msghdr *msg)
{
	const struct cmsghdr *c = CMSG_FIRSTHDR(msg);
	int fd = -1;

	if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS &&
	    c->cmsg_len == CMSG_LEN(sizeof(int)))
		memcpy(&fd, CMSG_DATA(c), sizeof(fd));
	return fd;
}

int reader_wire_take(int fd, void *head, size_t size, int *passed)
{
	size_t done = 0;

	if (passed)
		*passed = -1;
	while (done < size) {
		union passed_fd control;
		struct iovec iov = { (char *)head + done, size - done };
		struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
		ssize_t n;

		if (passed && *passed < 0) {
			msg.msg_control = control.bytes;
			msg.msg_controllen = sizeof(control.bytes);
		}
		n = recvmsg(fd, &msg, MSG_CMSG_CLOEXEC);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n == 0 || errno == ECONNRESET ? -EPIPE : -errno;
		if (passed && *passed < 0)
			*passed = take_fd_of(&msg);
		done += (size_t)n;
	}
	return 0;
}
