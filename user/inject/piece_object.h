/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The compiled piece of code (inline/), inside heaptap itself. Empty on CPUs that it does not exist for. */
#pragma once

#include "user/lib/types.h"

extern const u8 piece_object_start[], piece_object_end[];

static inline size_t piece_object_bytes(void)
{
	return (size_t)((uintptr_t)piece_object_end - (uintptr_t)piece_object_start);
}
