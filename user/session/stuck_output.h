/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Finds the output that nobody takes, for messages about a heaptap that does not answer. */
#pragma once

#include <stddef.h>

#include "user/lib/types.h"

/*
 * Write the name of a file that a thread of this process waits to write to into @name of @size bytes. False: no thread
 * writes, or the kernel does not say. Never blocks.
 */
bool stuck_output_find(char *name, size_t size);
