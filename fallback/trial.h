/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Can processes be traced by ptrace here? Tried on a child of our own. */
#pragma once

#include "user/lib/types.h"

/*
 * Blocks for a millisecond. 0; -EPERM: ptrace is not permitted (a seccomp filter of a container); -EACCES: code cannot
 * be written through /proc/PID/mem; or -errno.
 */
int trial_ptrace(void) __must_check;
