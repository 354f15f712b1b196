/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Finds out, by a trial on a child of its own, whether processes can be traced by ptrace here. */
#pragma once

#include "user/lib/types.h"

/*
 * Blocks for a millisecond. 0; -EPERM: ptrace is not permitted (a seccomp filter of a container); -EACCES: code cannot
 * be written through /proc/PID/mem; or -errno.
 */
int trial_ptrace(void) __must_check;
