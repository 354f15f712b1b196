/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Preloaded into heaptap: calls that no filter can change answer as on Linux 3.10. Entries of pagemap have the page's
 * size in bits 55 to 60 (until 4.2), PAGEMAP_SCAN is not there (until 6.7), and process_vm_readv() reads all or
 * nothing (until 3.15).
 */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

enum { SIZE_BITS = 6, SIZE_AT = 55, PAGE_BITS = 12 };

ssize_t process_vm_readv(pid_t pid, const struct iovec *to, unsigned long nr_to, const struct iovec *from,
			 unsigned long nr_from, unsigned long flags)
{
	ssize_t got = syscall(SYS_process_vm_readv, pid, to, nr_to, from, nr_from, flags);

	if (got < 0 || (size_t)got == from->iov_len)
		return got;
	errno = EFAULT;
	return -1;
}

static int is_pagemap(int fd)
{
	char link[32], path[64] = "";

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	return readlink(link, path, sizeof(path) - 1) > 0 && strstr(path, "/pagemap");
}

ssize_t pread(int fd, void *buf, size_t len, off_t at)
{
	ssize_t got = syscall(SYS_pread64, fd, buf, len, at);
	uint64_t *entries = buf;

	for (ssize_t i = 0; is_pagemap(fd) && i < got / (ssize_t)sizeof(*entries); i++)
		entries[i] = (entries[i] & ~(((1ULL << SIZE_BITS) - 1) << SIZE_AT)) | (uint64_t)PAGE_BITS
											      << SIZE_AT;
	return got;
}

int ioctl(int fd, unsigned long request, void *arg)
{
	if (is_pagemap(fd)) {
		errno = ENOTTY;
		return -1;
	}
	return (int)syscall(SYS_ioctl, fd, request, arg);
}
