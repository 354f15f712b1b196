/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Functions, inlined calls and lines of a file, from its DWARF. */
#pragma once

#include <elfutils/libdw.h>

#include "user/lib/types.h"

/* One frame at an address. Strings live as long as the Dwarf. */
struct dwarf_frame {
	const char *function;  /* linker symbol if it has one, else plain; NULL = unknown */
	const char *file;      /* NULL = unknown */
	const char *directory; /* the directory of a relative file; NULL = unknown */
	u32 line;	       /* 0 = unknown */
	u32 start_line;	       /* where the function is declared; 0 = unknown */
};

enum { DWARF_FRAMES_MAX = 64 };

struct dwarf_names;

/* Index the units of @dwarf, which must outlive the index. 0, -ENOENT without units, -ENOMEM. */
int dwarf_names_new(struct dwarf_names **out, Dwarf *dwarf) __must_check;
void dwarf_names_free(struct dwarf_names *names);

/*
 * The frames at @addr (an address of the DWARF): the innermost inlined call first, the function last. Returns their
 * number; 0 = not described. The functions of a unit are indexed at the first search in it. Damaged data is used as
 * far as it makes sense.
 */
size_t dwarf_names_find(struct dwarf_names *names, u64 addr, struct dwarf_frame frames[DWARF_FRAMES_MAX]);
