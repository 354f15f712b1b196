/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reads and writes files for all who know where the bytes are: /proc, ELF, core files, tapes. */
#include "user/lib/file_at.h"

#include <errno.h>
#include <unistd.h>

ssize_t file_read_at(int fd, void *buf, size_t len, u64 offset)
{
	size_t done = 0;

	while (done < len) {
		ssize_t n = pread(fd, (u8 *)buf + done, len - done, (off_t)(offset + done));

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		done += (size_t)n;
	}
	return (ssize_t)done;
}

int file_write_at(int fd, const void *data, size_t len, u64 offset)
{
	size_t done = 0;

	while (done < len) {
		ssize_t n = pwrite(fd, (const u8 *)data + done, len - done, (off_t)(offset + done));

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n ? -errno : -EIO;
		done += (size_t)n;
	}
	return 0;
}
