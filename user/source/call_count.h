/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The functions of a process whose calls are counted before anything else is put in. */
#pragma once

#include "user/source/placing.h"

/* All zero: none. */
struct call_count {
	struct counted_file *files; /* owned */
	size_t nr;
};

/* Functions of one file that allocate or release. */
struct counted_file {
	int fd;	      /* borrowed */
	u64 *offsets; /* owned; in the file */
	size_t nr;
};

/* Add those of @f, the file of @m. 0 or -errno. */
int call_count_add(struct call_count *c, const struct module *m, const struct probed_file *f,
		   const struct elf *elf) __must_check;

void call_count_fini(struct call_count *c);
