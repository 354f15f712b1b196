/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The moment that a core file keeps, as a snapshot: of the kernel, of gdb's gcore, or of heaptap's console. */
#pragma once

#include "user/scan/snapshot.h"

struct core_facts {
	char comm[32];	     /* of the process; may be empty */
	u64 truncated_bytes; /* that the file lost at its end */
	u64 missing_bytes;   /* of writable memory that was not written to the file */
	u64 nr_files_missing; /* mapped files that are not in the core, and not here either, or another version */
	bool has_registers; /* of all threads */
	bool may_have_gaps; /* its writer leaves memory out without saying so: MADV_DONTDUMP in cores of gdb */
};

/*
 * Read the core behind @fd, which stays the caller's and open as long as *@out. Contents of mapped files that the core
 * left out are read from the files, below @sysroot first, if they begin as the core says. *@out is owned by the
 * caller: snapshot_free(). 0; -ENOEXEC no core file; -EINVAL damaged; -EIO; -ENOMEM.
 */
int snapshot_core_new(struct snapshot **out, int fd, const char *sysroot,
		      struct core_facts *facts) __must_check;
