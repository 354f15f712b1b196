/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The memory of a target: read, written, and mapped by one of its stopped threads. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "user/inject/process_private.h"
#include "user/lib/cleanup.h"

int inject_open_memory(pid_t pid)
{
	char path[32];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/mem", pid);
	fd = open(path, O_RDWR | O_CLOEXEC);
	/* The process has ended. */
	if (fd < 0 && errno == ENOENT)
		return -ESRCH;
	return fd < 0 ? -errno : fd;
}

int inject_write(int mem, taddr_t addr, const void *bytes, size_t len)
{
	ssize_t put = pwrite(mem, bytes, len, (off_t)addr);

	return put == (ssize_t)len ? 0 : put < 0 ? -errno : -EIO;
}

int inject_read(int mem, taddr_t addr, void *bytes, size_t len)
{
	ssize_t got = pread(mem, bytes, len, (off_t)addr);

	return got == (ssize_t)len ? 0 : got < 0 ? -errno : -EIO;
}

void inject_hide_own(const struct inject_file *f, taddr_t addr, u8 *bytes, size_t len)
{
	const struct code_cpu *cpu = code_native();

	for (size_t i = 0; i < f->nr_own; i++) {
		const struct inject_own *own = &f->own[i];

		if (own->addr >= addr && own->addr + cpu->step <= addr + len &&
		    cpu->is_breakpoint(bytes + (own->addr - addr)))
			memcpy(bytes + (own->addr - addr), own->code, cpu->step);
	}
}

int inject_syscall(struct stopped *s, long nr, const u64 args[INJECT_ARGS], u64 *out)
{
	s64 result = 0;
	int err = threads_call(s, nr, args, &result);

	if (!err && result < 0 && result > -4096)
		err = (int)result;
	*out = (u64)result;
	return err;
}

int inject_map(struct stopped *s, taddr_t addr, u64 len, int prot, int flags, u64 fd, u64 offset)
{
	const u64 args[INJECT_ARGS] = { addr, len, (u64)prot, (u64)flags, fd, offset };
	u64 got;
	int err = inject_syscall(s, SYS_mmap, args, &got);

	return err ? err : got == addr ? 0 : -EEXIST;
}

int inject_advise(struct stopped *s, taddr_t addr, u64 len, int advice)
{
	const u64 args[INJECT_ARGS] = { addr, len, (u64)advice };
	u64 got;

	return inject_syscall(s, SYS_madvise, args, &got);
}

int inject_unmap(struct stopped *s, taddr_t addr, u64 len)
{
	const u64 args[INJECT_ARGS] = { addr, len };
	u64 got;

	return inject_syscall(s, SYS_munmap, args, &got);
}

int inject_open_file(pid_t pid, u64 fd)
{
	char path[64];
	int ours;

	snprintf(path, sizeof(path), "/proc/%d/fd/%d", pid, (int)fd);
	ours = open(path, O_RDWR | O_CLOEXEC);
	return ours < 0 ? -errno : ours;
}

/* Give the file behind descriptor @fd of the target its size, which nobody can change later. */
static int size_file(pid_t pid, u64 fd, u64 bytes)
{
	auto_close int ours = inject_open_file(pid, fd);

	if (ours < 0)
		return ours;
	return ftruncate(ours, (off_t)bytes) || fcntl(ours, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) ? -errno
												      : 0;
}

/* The target makes a memfd, whose name is written below its stack for the moment. */
static int make_memfd(struct stopped *s, int mem, const char *name, u64 *fd)
{
	u64 args[INJECT_ARGS] = { 0, MFD_CLOEXEC | MFD_ALLOW_SEALING };
	size_t len = strlen(name) + 1;
	char old[INJECT_FILE_NAME];
	int err = threads_scratch(s, &args[0]), ret;

	args[0] = (args[0] - 1024) & ~15ULL;
	if (!err)
		err = inject_read(mem, args[0], old, len);
	if (!err)
		err = inject_write(mem, args[0], name, len);
	if (err)
		return err;
	err = inject_syscall(s, SYS_memfd_create, args, fd);
	ret = inject_write(mem, args[0], old, len);
	return err ? err : ret;
}

int inject_close(struct stopped *s, u64 fd)
{
	const u64 args[INJECT_ARGS] = { fd };
	u64 ignored;

	return inject_syscall(s, SYS_close, args, &ignored);
}

int inject_make_file(struct stopped *s, int mem, const char *name, u64 bytes, u64 *fd)
{
	int err = make_memfd(s, mem, name, fd), ret;

	if (err)
		return err;
	err = size_file(s->all.pid, *fd, bytes);
	ret = err ? inject_close(s, *fd) : 0;
	return err ? err : ret;
}
