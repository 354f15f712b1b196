/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The inside of a core file: its header and its notes. For user/scan/snapshot_core*.c only. */
#pragma once

#include "user/scan/snapshot_core.h"

struct core_file {
	int fd; /* borrowed */
	u64 size;
	u8 w; /* bytes of a word */
	bool is_big;
	u16 machine;		  /* EM_* */
	struct snapshot *snap;	  /* borrowed; notes fill it */
	struct core_facts *facts; /* borrowed */
	size_t max_threads;
	taddr_t stack; /* an address in the stack of the main thread; 0 = unknown */
};

/* Unsigned values in the byte order of the file. */
u64 core_value(const struct core_file *c, const u8 *p, u32 len);

/* Read exactly @len bytes. 0, or -EIO past the end of the file. */
int core_read_at(const struct core_file *c, u64 offset, void *buf, size_t len) __must_check;

/* Take in the notes, @len bytes at @offset. The mappings must be there already. 0, -EINVAL, -EIO or -ENOMEM. */
int core_take_notes(struct core_file *c, u64 offset, u64 len) __must_check;
