/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Included before each file of the agent: functions of the kernel that small and old C libraries lack. */
#pragma once

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Times are UTC: the rules of time zones would be 6 KiB. */
#define localtime_r gmtime_r

/* Copied from <elf.h>, which defines too many names to be included everywhere. */
#define R_AARCH64_IRELATIVE 1032
#define R_RISCV_IRELATIVE   58

#ifndef RENAME_NOREPLACE
#define RENAME_NOREPLACE 1
static inline int renameat2(int old_dir, const char *old, int new_dir, const char *new, unsigned int flags)
{
	return (int)syscall(SYS_renameat2, old_dir, old, new_dir, new, flags);
}
#endif

#ifndef STATX_BASIC_STATS
#include <linux/stat.h>
static inline int statx(int dir, const char *path, int flags, unsigned int mask, struct statx *st)
{
	return (int)syscall(SYS_statx, dir, path, flags, mask, st);
}
#endif
