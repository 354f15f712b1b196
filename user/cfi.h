/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Call frame information of a file, compiled to sorted rows of 8 bytes for walking stacks at speed. */
#pragma once

#include "user/lib/types.h"

#include "fallback/cfi_table.h"

struct elf;

/* Limits that hostile files meet; the time grows with the bytes read, at most 8 looks at each. */
enum {
	CFI_MAX_FRAME_BYTES = 40 << 20,
	CFI_MAX_FDES = 1 << 20,
	CFI_MAX_ROWS = 6 << 20,
	CFI_MAX_REMEMBERED = 32,
};

/*
 * Compile .eh_frame of @elf, and .debug_frame for what that leaves out. Where FDEs of one overlap, the one that
 * starts first wins, of two that start together the first in the file. *@out is the caller's: cfi_free(). -ENOENT:
 * the file has no information; -ENOTSUP: unknown CPU; -EIO; -ENOMEM. Damaged parts are counted, not errors.
 */
int cfi_build(struct cfi_table **out, struct elf *elf) __must_check;

/*
 * The same, but from the cache when the file's build ID is in it, and into the cache when it was
 * not. A cache that cannot be used is as good as none: never an error. Never touches the cache when
 * heaptap's user has no home or the file no build ID.
 */
int cfi_load(struct cfi_table **out, struct elf *elf) __must_check;

void cfi_free(struct cfi_table *table); /* NULL is fine */
