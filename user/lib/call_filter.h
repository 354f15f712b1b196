/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A filter of system calls, which stays for ever. */
#pragma once

#include "user/lib/types.h"

#if defined(__x86_64__) || defined(__aarch64__) || (defined(__riscv) && __riscv_xlen == 64)
/* On other CPUs there is no filter. */
#define HAS_CALL_FILTER
#endif

enum call_filter { CALL_FILTER_DENY, CALL_FILTER_ALLOW };

enum { CALL_FILTER_MAX = 128 };

/*
 * From now on, in all threads, the @nr system calls @calls fail with EPERM, or by CALL_FILTER_ALLOW all others do.
 * Calls of another instruction set fail, too. Needs no_new_privs. At most CALL_FILTER_MAX calls. 0; -ENOSYS on a CPU
 * without filter; -errno.
 */
int call_filter_set(enum call_filter kind, const u16 *calls, size_t nr) __must_check;
