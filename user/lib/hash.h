/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A fast hash for tables and for checks of files. No protection against chosen collisions. */
#pragma once

#include "user/lib/types.h"

/* The hash of the @size bytes at @data. Each @seed gives another hash function. Both byte orders give one result. */
u64 hash_bytes(const void *data, size_t size, u64 seed);
