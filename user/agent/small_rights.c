/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * In place of musl's functions, which change the user of all threads, and know kernels without prlimit64 (2.6.36).
 * heaptap becomes another user only in a new process, which has one thread.
 */
#include <grp.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

/* 32-bit CPUs with an older call for numbers of 16 bits. */
#ifdef SYS_setuid32
#undef SYS_setuid
#undef SYS_setgid
#undef SYS_setgroups
#define SYS_setuid    SYS_setuid32
#define SYS_setgid    SYS_setgid32
#define SYS_setgroups SYS_setgroups32
#endif

int setuid(uid_t uid)
{
	return (int)syscall(SYS_setuid, uid);
}

int setgid(gid_t gid)
{
	return (int)syscall(SYS_setgid, gid);
}

int setgroups(size_t nr, const gid_t *groups)
{
	return (int)syscall(SYS_setgroups, nr, groups);
}

int setrlimit(int resource, const struct rlimit *limit)
{
	return (int)syscall(SYS_prlimit64, 0, resource, limit, NULL);
}
