/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Call frame information of a file, compiled to sorted rows of 8 bytes for walking stacks at speed. */
#pragma once

#include "user/lib/types.h"

#include "fallback/cfi_table.h"

struct elf;

/* Limits for hostile files. The time grows with the bytes read; each byte is read at most 8 times. */
enum {
	CFI_MAX_FRAME_BYTES = 40 << 20,
	CFI_MAX_FDES = 1 << 20,
	CFI_MAX_ROWS = 6 << 20,
	CFI_MAX_REMEMBERED = 32,
};

/*
 * Compile .eh_frame of @elf, and .debug_frame for functions that .eh_frame leaves out. If FDEs overlap, the one that
 * starts first wins; if two start together, the first in the file wins. *@out is the caller's: cfi_free(). -ENOENT:
 * the file has no information; -ENOTSUP: unknown CPU; -EIO; -ENOMEM. Damaged parts are counted, and are no errors.
 */
int cfi_build(struct cfi_table **out, struct elf *elf) __must_check;

/*
 * Like cfi_build(), but reads the cache if the build ID of the file is in it, and fills the cache if not. An unusable
 * cache is no error. The cache is not touched if the user of heaptap has no home directory, or the file no build ID.
 */
int cfi_load(struct cfi_table **out, struct elf *elf) __must_check;

void cfi_free(struct cfi_table *table); /* NULL is fine */
