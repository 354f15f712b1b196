/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Files that have no name and go with their last descriptor. */
#pragma once

#include "user/lib/types.h"

/*
 * Make a file in the directory that TMPDIR names, or in @dir. Returns a descriptor, for reading and writing, that is
 * closed on exec and that the caller owns, or -errno.
 */
int __must_check unnamed_file(const char *dir);

/*
 * Make a file in memory, owned by the caller, too; before Linux 3.17 in TMPDIR, /tmp, or another directory that can be
 * written. @name is seen in /proc/PID/fd.
 */
int __must_check unnamed_file_in_memory(const char *name);
