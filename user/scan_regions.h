/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Bytes outside blocks that are no roots. For user/scan*.c only. */
#pragma once

#include "user/lib/types.h"

struct scan;

enum region_kind {
	REGION_NEVER, /* no byte of it */
	REGION_PAGES, /* not those pages that hold a part of a block */
	REGION_HEAP,  /* no byte of it, unless a thread's stack or TLS lies there */
};

struct region {
	taddr_t start, end;
	enum region_kind kind;
};

/* An address that a thread stands on: its stack pointer or thread pointer. */
struct point {
	taddr_t addr;
	u32 word; /* index in snapshot.words */
};

struct region_list {
	struct region *regions; /* owned; by address */
	size_t nr;
	struct point *points; /* owned; by address */
	size_t nr_points;
};

int region_list_init(struct region_list *list, const struct scan *s) __must_check;
void region_list_fini(struct region_list *list);
/* True if a thread stands in [start, end). */
bool region_has_point(const struct region_list *list, taddr_t start, taddr_t end);
