/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Datagrams that carry a descriptor, and files in memory. */
#include "user/metrics/channel.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "user/lib/cleanup.h"
#include "user/lib/passed_fds.h"
#include "user/lib/unnamed_file.h"

int channel_send(int channel, const struct channel_message *m, int fd)
{
	struct iovec part = { (void *)m, sizeof(*m) };
	struct msghdr msg = { .msg_iov = &part, .msg_iovlen = 1 };
	union passed_fds room;

	passed_fds_attach(&msg, &room, &fd, fd >= 0);
	return sendmsg(channel, &msg, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 ? -errno : 0;
}

int channel_take(int channel, struct channel_message *m, int *fd)
{
	struct iovec part = { m, sizeof(*m) };
	struct msghdr msg = { .msg_iov = &part, .msg_iovlen = 1 };
	union passed_fds room;
	ssize_t n;

	*fd = -1;
	passed_fds_expect(&msg, &room);
	n = recvmsg(channel, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	if (n < 0)
		return errno == EINTR ? -EAGAIN : errno == EAGAIN ? -EAGAIN : -EPIPE;
	passed_fds_take(&msg, fd, 1);
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
