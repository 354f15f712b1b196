/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Limits of resources of other processes. */
#pragma once

#include "user/lib/types.h"

/*
 * The soft limit of @pid for @resource: RLIMIT_AS, RLIMIT_DATA or RLIMIT_FSIZE, in bytes. UINT64_MAX: it has none, or
 * that cannot be found out. Does not block.
 */
u64 proc_limit(pid_t pid, int resource);
