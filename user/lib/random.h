/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Numbers that nobody can guess. */
#pragma once

#include "user/lib/types.h"

/*
 * Fill the @len bytes at @out, at most 256, without waiting. Early after the boot of a machine somebody may guess
 * them. 0, or -errno: the kernel has no getrandom(2) (Linux 3.17), and /dev/urandom cannot be read.
 */
int __must_check random_fill(void *out, size_t len);
