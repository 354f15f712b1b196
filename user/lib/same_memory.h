/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Do two processes have one memory? */
#pragma once

#include "user/lib/types.h"

/* Is the memory of @a, which this process may change, that of @b, and no copy? 1, 0, or -errno: not known. */
int same_memory(pid_t a, pid_t b) __must_check;
