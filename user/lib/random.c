/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Numbers that nobody can guess, from the kernel. */
#include "user/lib/random.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <linux/random.h>

#include "user/lib/cleanup.h"

int random_fill(void *out, size_t len)
{
	auto_close int fd = -1;

	if (syscall(SYS_getrandom, out, len, GRND_NONBLOCK) == (ssize_t)len)
		return 0;
	fd = open("/dev/urandom", O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	return read(fd, out, len) == (ssize_t)len ? 0 : -EIO;
}
