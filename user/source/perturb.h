/* SPDX-License-Identifier: GPL-2.0-or-later */
/* An environment in which glibc overwrites fresh and freed memory, so that old pointers in it hide no leak. */
#pragma once

#include "user/lib/types.h"

/*
 * A copy of @env with the C library's tunable for that, beside those that are set already; one for it that the user
 * has set stays. NULL-terminated; *@out and all strings in it are in one piece of memory, owned by the caller: free().
 * 0 or -ENOMEM.
 */
int perturb_env(char ***out, char *const *env) __must_check;
