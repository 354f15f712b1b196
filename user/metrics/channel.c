/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Datagrams that carry a descriptor, and files in memory. */
#include "user/metrics/channel.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "user/lib/cleanup.h"
#include "user/lib/unnamed_file.h"

union control_room {
	struct cmsghdr head;
	char bytes[CMSG_SPACE(sizeof(int))];
};

int channel_send(int channel, const struct channel_message *m, int fd)
{
	union control_room room = { 0 };
	struct iovec part = { (void *)m, sizeof(*m) };
	struct msghdr msg = { .msg_iov = &part, .msg_iovlen = 1 };

	if (fd >= 0) {
		struct cmsghdr *head;

		msg.msg_control = room.bytes;
		msg.msg_controllen = sizeof(room.bytes);
		head = CMSG_FIRSTHDR(&msg);
		head->cmsg_level = SOL_SOCKET;
		head->cmsg_type = SCM_RIGHTS;
		head->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(head), &fd, sizeof(fd));
	}
	return sendmsg(channel, &msg, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 ? -errno : 0;
}

int channel_take(int channel, struct channel_message *m, int *fd)
{
	union control_room room = { 0 };
	struct iovec part = { m, sizeof(*m) };
	struct msghdr msg = { .msg_iov = &part,
			      .msg_iovlen = 1,
			      .msg_control = room.bytes,
			      .msg_controllen = sizeof(room.bytes) };
	struct cmsghdr *head;
	ssize_t n = recvmsg(channel, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);

	*fd = -1;
	if (n < 0)
		return errno == EINTR ? -EAGAIN : errno == EAGAIN ? -EAGAIN : -EPIPE;
	head = CMSG_FIRSTHDR(&msg);
	if (head && head->cmsg_level == SOL_SOCKET && head->cmsg_type == SCM_RIGHTS)
		memcpy(fd, CMSG_DATA(head), sizeof(*fd));
	if (n == sizeof(*m)) {
		m->text[sizeof(m->text) - 1] = m->key.container[sizeof(m->key.container) - 1] = '\0';
		return 0;
	}
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
	return -EPIPE;
}

int channel_make_file(int *fd, const char *name, int (*write)(void *ctx, FILE *out), void *ctx)
{
	auto_close int file = unnamed_file_in_memory(name);
	int copy, err, close_err;
	FILE *out;

	if (file < 0)
		return file;
	copy = fcntl(file, F_DUPFD_CLOEXEC, 3);
	out = copy < 0 ? NULL : fdopen(copy, "w");
	if (!out) {
		err = -errno;
		if (copy >= 0)
			close(copy);
		return err;
	}
	err = write(ctx, out);
	close_err = fclose(out) ? -errno : 0;
	if (!err)
		err = close_err;
	if (!err && fcntl(file, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL))
		err = -errno;
	if (err)
		return err;
	*fd = take_fd(file);
	return 0;
}
