/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Mappings that were unmapped between the copy of the books and the stop: cuts the blocks that they were, in order. */
#include "user/scan/scan_unmap.h"

#include "user/scan/scan_state.h"

enum {
	PAGE = 4096,	     /* munmap rounds lengths up to pages; the smallest page size of all targets */
	MAX_LOOKS = 1 << 22, /* at earlier events, while the target stands: some 10 ms */
};

/* Take [@start, @end) from [*@addr, *@addr + *@size). 1: a part is left; 0: nothing; -1: two parts. */
static int scan_unmap_cut(taddr_t start, taddr_t end, taddr_t *addr, u64 *size)
{
	taddr_t last = *addr + *size;

	if (start <= *addr && end >= last)
		return 0;
	if (start > *addr && end < last)
		return -1;
	if (start > *addr) {
		*size = start - *addr;
	} else {
		*size = last - end;
		*addr = end;
	}
	return 1;
}

/* The end of what @d unmaps, in pages. */
static taddr_t scan_unmap_end(const struct drained *d)
{
	return (d->addr + d->size + PAGE - 1) / PAGE * PAGE;
}

/* Blocks of the books are older than all events. */
static void scan_unmap_blocks(struct scan *s, const struct drained *d)
{
	taddr_t end = scan_unmap_end(d);
	u32 i = scan_lower_bound(s, d->addr);

	if (i && scan_block_end(s, i - 1) > d->addr)
		i--;
	for (; i < s->nr && s->blocks[i].addr < end; i++) {
		struct scan_block *b = &s->blocks[i];
		taddr_t addr = b->addr;
		u64 size = scan_block_size(s, i);
		int left = scan_unmap_cut(d->addr, end, &addr, &size);

		/* The sizes of big blocks are kept by their addresses. */
		if (!left) {
			b->verdict = BLOCK_GONE;
		} else if (left < 0 || b->size == BLOCK_BIG) {
			b->flags |= BLOCK_TAINTED;
		} else {
			b->addr = addr;
			b->size = (u32)size;
		}
	}
}

/* Blocks that an event before number @nr made. One with a hole stays whole: what is mapped there overlaps it. */
static void scan_unmap_young(struct scan *s, size_t nr)
{
	taddr_t start = s->drained[nr].addr, end = scan_unmap_end(&s->drained[nr]);

	for (size_t i = 0; i < nr; i++) {
		struct drained *d = &s->drained[i];

		if (d->kind == DRAINED_ALLOC && d->addr < end && d->addr + d->size > start &&
		    !scan_unmap_cut(start, end, &d->addr, &d->size))
			d->kind = DRAINED_UNMAP;
	}
}

void scan_unmap_drained(struct scan *s)
{
	u64 nr_looks = 0;
	size_t nr = 0;

	for (size_t i = 0; i < s->nr_drained; i++) {
		if (s->drained[i].kind != DRAINED_UNMAP)
			continue;
		scan_unmap_blocks(s, &s->drained[i]);
		nr_looks += i;
		if (nr_looks < MAX_LOOKS)
			scan_unmap_young(s, i);
	}
	for (size_t i = 0; i < s->nr_drained; i++)
		if (s->drained[i].kind != DRAINED_UNMAP)
			s->drained[nr++] = s->drained[i];
	s->nr_drained = nr;
}
