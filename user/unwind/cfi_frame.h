/* SPDX-License-Identifier: GPL-2.0-or-later */
/* One frame of a function by the call frame information of its file: all registers that it saves, and where. */
#pragma once

#include "user/lib/types.h"

struct cfi_frames;
struct elf;

enum { CFI_FRAME_REGISTERS = 32 };

/* How a function finds its caller at one instruction. */
struct cfi_frame {
	u64 start, end;	   /* ELF virtual addresses of the function */
	bool is_cfa_of_fp; /* the CFA is relative to the frame pointer, else to the stack pointer */
	s64 cfa_offset;	   /* bytes */
	s16 ra; /* the return address is saved at CFA + this many bytes; 0 = in the link register */
	s16 fp; /* so the frame pointer; 0 = unchanged */
	s16 saved
		[CFI_FRAME_REGISTERS]; /* so each general register by its DWARF number; the two above included */
};

/*
 * Read .eh_frame of @elf, which must stay open. *@out is the caller's: cfi_frames_free(). -ENOENT: no information;
 * -ENOTSUP: unknown CPU; -EIO; -ENOMEM.
 */
int cfi_frames_new(struct cfi_frames **out, const struct elf *elf) __must_check;
void cfi_frames_free(struct cfi_frames *frames); /* NULL is fine */

/*
 * Describe the frame at @vaddr. The time grows with the size of the section. -ENOENT: no entry; -ENOTSUP: the entry
 * is of a kind that struct cfi_frame cannot tell, or damaged; only start and end are filled then.
 */
int cfi_frames_find(struct cfi_frames *frames, u64 vaddr, struct cfi_frame *out) __must_check;
