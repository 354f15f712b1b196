/* SPDX-License-Identifier: GPL-2.0-or-later */
/* One marker of a program: what it asks for, and where its arguments are when a thread is there. */
#pragma once

#include "bpf/event.h"

enum note_arg_kind {
	NOTE_ARG_UNKNOWN,
	NOTE_ARG_CONST,	 /* value */
	NOTE_ARG_REG,	 /* the register */
	NOTE_ARG_MEMORY, /* the word at register + value */
};

/* An argument, of size bytes. */
struct note_arg {
	u8 kind; /* enum note_arg_kind */
	u8 size; /* 1, 2, 4 or 8 */
	u8 is_signed;
	u8 reg; /* number of the word in the kernel's order of the registers (NT_PRSTATUS) */
	u32 reserved;
	s64 value;
};

enum { NOTE_MAX_ARGS = 3 };

/* A marker, as the sources need it. */
struct note_probe {
	u8 what;  /* enum note_what */
	u8 flags; /* PROBE_32BIT */
	u16 fn;	  /* row of the allocator table, of NOTE_ALLOC and NOTE_FREE */
	u32 reserved;
	struct note_arg args[NOTE_MAX_ARGS];
	char name[NOTE_NAME_BYTES]; /* of a mark without arguments; "" = the first argument points to it */
};

/* Does a thread at a marker for @what, an enum note_what, wait for a verdict? */
static inline bool note_waits(u64 what)
{
	return what == NOTE_LEAK_CHECK || what == NOTE_EXEC;
}
