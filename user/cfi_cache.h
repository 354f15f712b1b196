/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Compiled call frame information kept between runs: one file per build ID. */
#pragma once

#include "user/cfi.h"
#include "user/module.h"

/*
 * The folder is heaptap/ in the first of $XDG_CACHE_HOME, ~/.cache and, for root, /var/cache that belongs to
 * the effective user and that no one else can write. So under sudo with the caller's HOME kept, root's tables
 * go to /var/cache: the caller could change them in his home, and could not remove them.
 *
 * What is read back is believed no more than a target's file: owner, mode, size, checksum, order of the rows
 * and every rule are checked, and the hash of the sections and segments that it was compiled from, because
 * files keep their build ID when patchelf or prelink moves their contents.
 */
enum { CFI_CACHE_MAX_BYTES = 256 << 20, CFI_CACHE_MAX_FILES = 8192 };

struct cfi_cache_key {
	u8 build_id[BUILD_ID_MAX];
	u32 build_id_len; /* 0 = none: not kept */
	u16 machine;
	u8 word_size;
	u64 input_hash; /* of all that cfi_build() reads */
};

/* The folder, made if need be: a descriptor, which is the caller's, or -errno. */
int cfi_cache_open(void) __must_check;

/* 0; -ENOENT if there is none; -EINVAL if there is a file that cannot be used; -ENOMEM. */
int cfi_cache_read(int dir, const struct cfi_cache_key *key, struct cfi_table **out) __must_check;

/* Replaces what is there, at once. The file is 0600. 0 or -errno; then nothing is left behind. */
int cfi_cache_write(int dir, const struct cfi_cache_key *key, const struct cfi_table *table) __must_check;

/* Remove the files that were not used for longest, until the rest has at most @max_bytes. */
void cfi_cache_trim(int dir, u64 max_bytes);
