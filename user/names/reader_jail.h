/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The bounds of the reader: no rights, and limits of memory and time. */
#pragma once

#include "user/lib/types.h"

struct reader_jail {
	int usage_fd; /* /proc/self/statm; -1 = none */
	u64 limit;    /* bytes of address space; 0 = none */
};

/*
 * Give up every right of this process for good: user (where root), capabilities, new privileges, files, sockets,
 * programs, other processes. It may read and write what is open, and use memory and @cpu_s seconds of CPU time. What
 * the kernel does not offer is left out.
 */
void reader_jail_enter(struct reader_jail *j, u64 cpu_s);

/* A file of @size bytes comes: it will be mapped. */
void reader_jail_expect(struct reader_jail *j, u64 size);

/* Until reader_jail_relax(), at most @bytes more memory can be had. */
void reader_jail_tighten(struct reader_jail *j, u64 bytes);
void reader_jail_relax(struct reader_jail *j);
