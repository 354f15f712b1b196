/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reads by /proc/PID/mem, or by process_vm_readv(2) where that file cannot be opened. */
#include "user/lib/proc_memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/uio.h>
#include <unistd.h>

#include "user/lib/proc.h"

static ssize_t read_by_call(pid_t pid, taddr_t addr, void *buf, size_t len)
{
	struct iovec local = { .iov_base = buf, .iov_len = len };
	struct iovec remote = { .iov_base = (void *)(uintptr_t)addr, .iov_len = len };
	ssize_t nr;

	/* The call of a 32-bit program has no room for addresses of 64-bit processes. */
	if (addr > UINTPTR_MAX)
		return -EFAULT;
	nr = process_vm_readv(pid, &local, 1, &remote, 1, 0);
	if (nr < 0)
		return errno == ESRCH ? 0 : -errno;
	return nr;
}

/* The kernel checks the right before the address, and nothing is mapped at 0. */
static int try_call(pid_t pid)
{
	char byte;
	ssize_t nr = read_by_call(pid, 0, &byte, 1);

	if (nr == 0)
		return -ESRCH;
	return nr < 0 && nr != -EFAULT ? (int)nr : 0;
}

int proc_memory_open(struct proc_memory *m, pid_t pid)
{
	char path[32];
	int err;

	*m = (struct proc_memory){ .fd = -1 };
	pid = proc_reader(pid);
	snprintf(path, sizeof(path), "/proc/%d/mem", pid);
	m->fd = open(path, O_RDONLY | O_CLOEXEC);
	err = m->fd < 0 ? -errno : 0;
	if (err == -EACCES && try_call(pid) == 0)
		err = 0;
	if (!err)
		m->pid = pid;
	return err == -ENOENT ? -ESRCH : err;
}

void proc_memory_close(struct proc_memory *m)
{
	if (m->pid && m->fd >= 0)
		close(m->fd);
	*m = (struct proc_memory){ .fd = -1 };
}

ssize_t proc_memory_read(const struct proc_memory *m, taddr_t addr, void *buf, size_t len)
{
	ssize_t nr;
	char byte;

	if (!m->pid)
		return -EBADF;
	nr = read_by_call(m->pid, addr, buf, len);
	if (m->fd < 0)
		return nr;
	/* The page is in memory now. 0: it is that of another process or program. */
	if (nr > 0)
		return pread(m->fd, &byte, 1, (off_t)addr) == 0 ? 0 : nr;
	/* Pages that the target may not read have this way only. */
	nr = pread(m->fd, buf, len, (off_t)addr);
	return nr < 0 ? -errno : nr;
}

ssize_t proc_memory_read_much(const struct proc_memory *m, taddr_t addr, void *buf, size_t len)
{
	ssize_t nr = m->fd >= 0 ? read_by_call(m->pid, addr, buf, len) : 0;

	return nr > 0 ? nr : proc_memory_read(m, addr, buf, len);
}
