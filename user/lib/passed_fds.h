/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Descriptors that go beside a message on a UNIX socket. */
#pragma once

#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "user/lib/types.h"

enum { PASSED_FDS_MAX = 8 };

/* Room for them, for as long as the message is in use. */
union passed_fds {
	struct cmsghdr head;
	char bytes[CMSG_SPACE(PASSED_FDS_MAX * sizeof(int))];
};

/* Send @nr descriptors along with @msg; they stay open here. 0 = none. */
static inline void passed_fds_attach(struct msghdr *msg, union passed_fds *room, const int *fds, u32 nr)
{
	size_t bytes = nr * sizeof(int);

	if (!nr)
		return;
	memset(room, 0, sizeof(*room));
	room->head.cmsg_level = SOL_SOCKET;
	room->head.cmsg_type = SCM_RIGHTS;
	room->head.cmsg_len = CMSG_LEN(bytes);
	memcpy(CMSG_DATA(&room->head), fds, bytes);
	msg->msg_control = room;
	msg->msg_controllen = CMSG_SPACE(bytes);
}

/* Before recvmsg(): descriptors may come with @msg. */
static inline void passed_fds_expect(struct msghdr *msg, union passed_fds *room)
{
	msg->msg_control = room;
	msg->msg_controllen = sizeof(*room);
}

/* After recvmsg(): the first @max of them, owned by the caller, and -1 for missing ones. Returns their number. */
static inline u32 passed_fds_take(struct msghdr *msg, int *fds, u32 max)
{
	const struct cmsghdr *c = CMSG_FIRSTHDR(msg);
	u32 nr = 0;
	int fd;

	memset(fds, 0xff, max * sizeof(int));
	if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS)
		nr = (u32)((c->cmsg_len - CMSG_LEN(0)) / sizeof(int));
	for (u32 i = 0; i < nr; i++) {
		memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(fd));
		if (i < max)
			fds[i] = fd;
		else
			close(fd);
	}
	return nr < max ? nr : max;
}
