/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What an ELF file says about itself before any symbol is read: where it wants to lie and its build ID. */
#pragma once

#include "user/lib/types.h"

enum { IMAGE_BUILD_ID_MAX = 32, IMAGE_LOADS_MAX = 32 };

/* A segment to be mapped. */
struct image_load {
	u64 vaddr, offset, file_size; /* bytes */
	bool is_executable;
};

struct image {
	u8 build_id[IMAGE_BUILD_ID_MAX];
	u8 build_id_len; /* 0 = none */
	u16 machine;	 /* EM_... */
	bool is_64bit;
	u32 nr_loads; /* those beyond IMAGE_LOADS_MAX are left out */
	struct image_load loads[IMAGE_LOADS_MAX];
	u64 header_hash; /* of the file header and the program headers */
};

/*
 * Read the headers of the file @fd, any class and byte order, under 1 MiB of it, with pread.
 * Returns 0, -ENOEXEC if it is no whole ELF file, or -errno.
 */
int image_read_file(struct image *image, int fd) __must_check;

/*
 * The same of an image in a target's memory, its ELF header at @start, through the /proc/PID/mem
 * open at @fd. Does not stop the target.
 */
int image_read_memory(struct image *image, int fd, taddr_t start) __must_check;

/* True if both are of one file: equal build IDs, or without them equal headers. */
bool image_is_same(const struct image *a, const struct image *b);

/*
 * What to subtract from an address in an executable mapping to get the ELF virtual address, where the
 * mapping begins at @start with the byte @offset of the file. In no segment: to get the file offset.
 */
taddr_t image_bias(const struct image *image, taddr_t start, u64 offset);
