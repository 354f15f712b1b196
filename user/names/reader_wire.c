/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Sends and receives whole messages, and descriptors with them. */
#include "user/names/reader_wire.h"

#include <errno.h>
#include <sys/uio.h>

#include "user/lib/passed_fds.h"

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
	union passed_fds room;

	passed_fds_attach(&msg, &room, &passed, passed >= 0);
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

int reader_wire_take(int fd, void *head, size_t size, int *passed)
{
	size_t done = 0;

	if (passed)
		*passed = -1;
	while (done < size) {
		union passed_fds room;
		struct iovec iov = { (char *)head + done, size - done };
		struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
		ssize_t n;

		if (passed && *passed < 0)
			passed_fds_expect(&msg, &room);
		n = recvmsg(fd, &msg, MSG_CMSG_CLOEXEC);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n == 0 || errno == ECONNRESET ? -EPIPE : -errno;
		if (passed && *passed < 0)
			passed_fds_take(&msg, passed, 1);
		done += (size_t)n;
	}
	return 0;
}
