/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The contents of a block, for people: bytes, strings in them, and where their pointers lead. */
#pragma once

#include <stdio.h>

#include "user/report/report.h"
#include "user/scan/memory_view.h"

struct heap_block;

enum {
	MEMORY_DEFAULT = 1024, /* bytes of a block that are shown if nobody asks for another number */
	MEMORY_MAX = 1 << 20,
};

/*
 * Write the first @max bytes (at most MEMORY_MAX) of the live block @block of @p. Text is escaped. Reads the memory of
 * the process through @v while it runs, so bytes may change meanwhile. 0; -EIO: nothing could be read; -ENOMEM.
 */
int report_memory(FILE *out, const struct report *r, const struct report_process *p,
		  const struct memory_view *v, const struct heap_block *block, u64 max) __must_check;
