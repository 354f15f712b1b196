/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The headers of an ELF file: its segments and its build ID. Symbols are not read. */
#pragma once

#include "user/lib/types.h"

struct proc_memory;

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
	u32 nr_loads; /* segments beyond IMAGE_LOADS_MAX are left out */
	struct image_load loads[IMAGE_LOADS_MAX];
	u64 header_hash; /* of the file header and the program headers */
};

/*
 * Read the headers of the file @fd with pread, of any class and byte order, at most 1 MiB. Returns 0, -ENOEXEC if the
 * file is not a complete ELF file, or -errno.
 */
int image_read_file(struct image *image, int fd) __must_check;

/*
 * Like image_read_file(), for an image in the memory of a target: its ELF header is at @start; @memory is that
 * memory. Does not stop the target.
 */
int image_read_memory(struct image *image, const struct proc_memory *memory, taddr_t start) __must_check;

/* True if both belong to one file: their build IDs are equal, or, without build IDs, their headers. */
bool image_is_same(const struct image *a, const struct image *b);

/*
 * The load bias: an address minus the bias is the ELF virtual address. The address lies in an executable mapping,
 * which begins at @start with byte @offset of the file. If no segment has the mapping, the difference is the file
 * offset.
 */
taddr_t image_bias(const struct image *image, taddr_t start, u64 offset);
