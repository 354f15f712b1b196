/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The place that a stack is named by, in every output: the innermost function of the program's own code. */
#pragma once

#include "user/report/report.h"

enum { OWN_PLACE_MAX = 256, OWN_MAX_WRAPPERS = 64 };

/* A frame of a stack. All zero: there is no stack. */
struct own_code {
	struct code_ref ref;
	const struct symbol *symbol; /* borrowed from the symbolizer; NULL = no stack */
	u32 frame;		     /* its number on the stack, from 0 */
	u32 inlined;		     /* its number among the functions that are inlined into the frame */
	u32 number;		     /* its number with all inlined functions: as the formats list them */
};

/*
 * Find the place of the stack @id of @p. Left out are the libraries of languages, files of the C library, and wrappers
 * of the allocator, by name or by structure. Where the place is in an interpreter, it is the innermost function that a
 * perf map names, if there is one, and not in the program that only starts it. If nothing is left: the innermost frame
 * of the program's file, or else the innermost one. May block on disk I/O. 0, -ENOMEM or -ECANCELED.
 */
int own_code_find(const struct report *r, const struct report_process *p, u64 id,
		  struct own_code *out) __must_check;

/*
 * Write @o escaped: "make_node (list.c:42)", "make_node (libx.so)", "libx.so+0x18032", "" without a stack. Parameters
 * are left out. Returns @text.
 */
char *own_code_text(const struct report *r, const struct own_code *o, char text[OWN_PLACE_MAX]);

/* Both for the stack @id. */
int own_code_name(const struct report *r, const struct report_process *p, u64 id,
		  char text[OWN_PLACE_MAX]) __must_check;

/* The functions of @p that are left out as wrappers; borrowed as by report_symbols(). 0, -ENOMEM or -ECANCELED. */
int own_code_wrappers(const struct report *r, const struct report_process *p,
		      const char *names[OWN_MAX_WRAPPERS], size_t *nr) __must_check;
