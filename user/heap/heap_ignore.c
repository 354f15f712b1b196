/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Blocks that the program has declared to be no leaks. */
#include "user/heap/heap_private.h"

int heap_ignore(struct heap *h, taddr_t addr)
{
	struct block *b;
	int err;

	if (!addr || !block_table_find(&h->blocks, addr))
		return 0;
	err = block_table_put(&h->ignored, addr, &b);
	return err < 0 ? err : 0;
}

bool heap_is_ignored(const struct heap *h, taddr_t addr)
{
	return h->ignored.nr && block_table_find(&h->ignored, addr);
}

void ignored_end(struct heap *h, const struct heap_event *ev)
{
	bool is_free = ev->h.kind == EVENT_FREE;
	struct block *b = NULL;

	if (is_free || ev->h.kind == EVENT_REALLOC_BEGIN)
		b = block_table_find(&h->ignored, is_free ? ev->addr : ev->old_addr);
	if (b)
		block_table_del(&h->ignored, b);
}
