/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The file behind a mapping with code, and its functions, for walks of the stacks of a snapshot. */
#pragma once

#include "user/lib/types.h"

struct snapshot;
struct snapshot_map;

struct code_file {
	int fd;			   /* owned */
	struct elf *elf;	   /* owned */
	struct cfi_frames *frames; /* owned */
	u64 bias;		   /* address - ELF virtual address */
};

/* Open the file of @map. *@out is the caller's: code_file_fini(). -ENOENT, -ENOTSUP without frames, or -errno. */
int code_file_open(struct code_file *out, const struct snapshot *snap,
		   const struct snapshot_map *map) __must_check;
void code_file_fini(struct code_file *c);
