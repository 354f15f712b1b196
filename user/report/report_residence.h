/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Says how the resident memory of a process changed, and where that went. */
#pragma once

#include "user/report/report_rows.h"
#include "user/scan/residence.h"

/* report_process.residence points to this. */
struct report_residence {
	struct residence now, before; /* before.rss 0: all of it is of the trace */
	const char *allocator;	      /* "glibc"; "" = not known */
	bool sees_mappings;	      /* --mmap: mappings of the program are blocks */
};

enum { RESIDENCE_TEXT_MAX = 1024, RESIDENCE_MAX_ITEMS = 8 };

/* A part of the change: of blocks, free in the allocator, of stacks... */
struct residence_item {
	s64 bytes;
	const char *key, *what; /* for JSON; for people */
};

/* The parts, in a fixed order; their sum is the change of RSS. Returns how many, at most RESIDENCE_MAX_ITEMS. */
size_t report_residence_items(const struct report_process *p, struct residence_item *items);

/*
 * By how many bytes resident memory grew since the attach in no block, where that is most of the growth and worth a
 * word in the verdict, else 0. *@what: where most of it is, "mapped by the program itself".
 */
u64 report_residence_unheld(const struct report_process *p, const char **what);

/*
 * "resident: 120.4 MiB, 80.2 MiB more since the attach: 78.0 MiB in blocks (most of it from remember (svc.c:19)), 2.1
 * MiB free in the allocator; malloc_trim(0) gives ...", escaped, without its end. "" = nothing is known. 0, -ENOMEM or
 * -ECANCELED.
 */
int report_residence(char text[RESIDENCE_TEXT_MAX], const struct report *r, const struct report_process *p,
		     const struct report_row *rows, size_t nr) __must_check;
