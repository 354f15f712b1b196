/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A fast hash for tables and for noticing damaged files; no protection against somebody who wants collisions. */
#pragma once

#include "user/lib/types.h"

/* Of the @size bytes at @data; another @seed, another function. The same on machines of either byte order. */
u64 hash_bytes(const void *data, size_t size, u64 seed);
