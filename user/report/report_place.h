/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Names what an address of a process leads to: a live block, a function, a variable, a mapping. */
#pragma once

#include "user/heap/heap.h"
#include "user/report/report.h"
#include "user/scan/memory_view.h"

/* The live block that holds an address. */
struct place_block {
	taddr_t addr;
	struct heap_block block;
	bool is_found; /* else no block holds it */
};

/*
 * Find the blocks that hold the addresses @list[0..@nr), which are sorted on the way. Looks at each live block once. Of
 * nested blocks the smallest is taken.
 */
void report_place_blocks(const struct heap *heap, struct place_block *list, size_t nr);

enum { PLACE_MAX = 512 };

/*
 * Name the place that @b->addr leads to, escaped: "64 B of make_node < add_node (0x55d0c0de10)", "main in
 * redis-server", "server+0x10 in redis-server", "the stack of the main thread". "" if it is in no mapping, or nothing
 * is known of it. May block on disk I/O. 0 or -ENOMEM.
 */
int report_place(const struct report *r, const struct report_process *p, const struct memory_view *v,
		 const struct place_block *b, char text[PLACE_MAX]) __must_check;
