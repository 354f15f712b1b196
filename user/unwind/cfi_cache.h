/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Compiled call frame information kept between runs: one file per build ID. */
#pragma once

#include "user/unwind/cfi.h"
#include "user/target/module.h"

/*
 * The directory is heaptap/ in the first of $XDG_CACHE_HOME, ~/.cache and (for root) /var/cache that belongs to the
 * effective user and that nobody else can write. Under sudo with the caller's HOME, root's tables go to /var/cache,
 * because the caller could change them in his home, and could not remove them. Files that are read back are checked
 * like files of targets: owner, mode, size, checksum, order of the rows and every rule. The hash of the sections and
 * segments is checked too, because patchelf and prelink move contents and keep the build ID.
 */
enum { CFI_CACHE_MAX_BYTES = 256 << 20, CFI_CACHE_MAX_FILES = 8192 };

struct cfi_cache_key {
	u8 build_id[BUILD_ID_MAX];
	u32 build_id_len; /* 0 = none: not kept */
	u16 machine;
	u8 word_size;
	u8 unused;	/* 0: keys are compared as bytes */
	u64 input_hash; /* of all that cfi_build() reads */
};

/* Open the directory, and make it if it is missing. Returns a descriptor, which is the caller's, or -errno. */
int cfi_cache_open(void) __must_check;

/* Read the table of a file. 0; -ENOENT if the cache has no such file; -EINVAL if the file cannot be used; -ENOMEM. */
int cfi_cache_read(int dir, const struct cfi_cache_key *key, struct cfi_table **out) __must_check;

/*
 * Write the table, and replace an older file atomically. The file has mode 0600. 0 or -errno: then no file is left.
 */
int cfi_cache_write(int dir, const struct cfi_cache_key *key, const struct cfi_table *table) __must_check;

/* Remove the files that were not used for the longest time, until the others have at most @max_bytes. */
void cfi_cache_trim(int dir, u64 max_bytes);
