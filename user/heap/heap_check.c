/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Checks of releases, before they are entered in the heap. */
#include <errno.h>
#include <string.h>

#include "user/heap/heap_private.h"

enum { MAX_LOOKS_INSIDE = 16 }; /* because each one goes through all blocks */

int heap_check(struct heap *h, bool is_complete)
{
	h->is_complete = is_complete;
	return h->misuses ? 0 : misuse_table_new(&h->misuses, &h->budget);
}

void heap_check_gaps(struct heap *h)
{
	h->has_check_gaps = true;
}

void heap_check_blur(struct heap *h, const u64 blurred[ALLOC_MAX_FNS / 64])
{
	memcpy(h->blurred, blurred, sizeof(h->blurred));
}

bool heap_is_blurred(const struct heap *h)
{
	u64 any = 0;

	for (size_t i = 0; i < ARRAY_SIZE(h->blurred); i++)
		any |= h->blurred[i];
	return any != 0;
}

bool heap_is_checked(const struct heap *h)
{
	return h->misuses != NULL;
}

const struct misuse *heap_misuses(const struct heap *h, size_t *nr)
{
	*nr = h->misuses ? h->misuses->nr : 0;
	return h->misuses ? h->misuses->list : NULL;
}

struct misuse_counts heap_misuse_counts(const struct heap *h)
{
	return h->misuses ? h->misuses->counts : (struct misuse_counts){ 0 };
}

/* The row of a release, which allocates nothing, but reports need a row to name the caller. */
static u32 row_of(struct heap *h, u64 stack, u16 fn)
{
	u32 row;

	return row_table_get(&h->rows, stack, fn, &row) ? (u32)MISUSE_NO_ROW : row;
}

static void add(struct heap *h, struct misuse *m, const struct heap_event *ev)
{
	m->fn = ev->h.fn;
	m->free_row = row_of(h, ev->stack, ev->h.fn);
	m->count = 1;
	m->time_ns = ev->time_ns;
	misuse_add(h->misuses, m);
}

static bool is_blurred(const struct heap *h, u16 fn)
{
	/* Functions that the user has named may belong to any family. */
	return alloc_fn(h->fns, fn)->family == FAMILY_CUSTOM || fn >= ALLOC_MAX_FNS ||
	       h->blurred[fn / 64] >> fn % 64 & 1;
}

static bool is_mismatch(const struct heap *h, u16 alloc, u16 release)
{
	return alloc_fn(h->fns, alloc)->family != alloc_fn(h->fns, release)->family &&
	       !is_blurred(h, alloc) && !is_blurred(h, release);
}

/* Does the delete @ev have an alignment, and the new @alloc of the same family none, or the reverse? */
static bool is_misaligned(const struct heap *h, u16 alloc, u16 release)
{
	const struct alloc_fn *a = alloc_fn(h->fns, alloc), *r = alloc_fn(h->fns, release);

	return a->family == r->family && a->is_aligned != r->is_aligned && !is_blurred(h, alloc) &&
	       !is_blurred(h, release);
}

/* @ev says a size that is not the one of @b. */
static void add_wrong_size(struct heap *h, struct misuse *m, const struct block *b,
			   const struct heap_event *ev)
{
	/* After a loss another block may be there, which nobody saw. */
	if (h->is_lossy || b->epoch != h->epoch) {
		h->misuses->counts.nr_unsure++;
		return;
	}
	m->kind = MISUSE_SIZE;
	m->size = b->size;
	m->said = ev->size;
	add(h, m, ev);
}

void check_release(struct heap *h, taddr_t addr, const struct block *b, const struct heap_event *ev)
{
	struct misuse m = {
		.kind = MISUSE_MISMATCHED, .addr = addr, .alloc_row = b->row, .earlier_row = MISUSE_NO_ROW
	};
	u16 fn = h->misuses ? h->rows.rows[b->row].fn : 0;

	if (!h->misuses)
		return;
	if (is_mismatch(h, fn, ev->h.fn)) {
		add(h, &m, ev);
		return;
	}
	if (ev->h.kind != EVENT_FREE)
		return;
	if (is_misaligned(h, fn, ev->h.fn)) {
		m.kind = MISUSE_ALIGNMENT;
		add(h, &m, ev);
	}
	/* Sizes above the maximum were cut, and a custom function is not known to say the size it was asked for. */
	if (ev->size && ev->size != b->size && b->size < BLOCK_MAX_SIZE && !is_blurred(h, fn) &&
	    !is_blurred(h, ev->h.fn))
		add_wrong_size(h, &m, b, ev);
}

/* Sizes of 32-bit programs are never negative here: their word size is not known. */
void check_notice(struct heap *h, const struct heap_event *ev)
{
	bool is_huge = (s64)ev->size < 0, is_realloc = ev->h.kind == EVENT_REALLOC_END;
	enum notice_kind kind = is_huge ? NOTICE_HUGE_SIZE : NOTICE_REALLOC_ZERO;
	struct misuse_notice *n;

	if (!h->misuses || (!is_huge && (!is_realloc || ev->size || !ev->old_addr)) ||
	    (!is_realloc && ev->h.kind != EVENT_ALLOC) || ev->h.flags & EVENT_RETRY)
		return;
	n = &h->misuses->notices[kind];
	if (n->count++)
		return;
	n->size = ev->size;
	n->row = row_of(h, ev->stack, ev->h.fn);
}

const struct misuse_notice *heap_notices(const struct heap *h)
{
	return h->misuses ? h->misuses->notices : NULL;
}

void check_freed(struct heap *h, taddr_t addr, u32 row, const struct heap_event *ev)
{
	if (h->misuses)
		misuse_note_freed(h->misuses, addr, row, ev);
}

/* Find the live block that contains @addr, for @m. */
static void look_inside(struct heap *h, taddr_t addr, struct misuse *m)
{
	const struct block *b = NULL;

	while ((b = block_table_next(&h->blocks, b))) {
		taddr_t start = block_table_addr(&h->blocks, b);

		if (addr <= start || addr - start >= b->size)
			continue;
		m->alloc_row = b->row;
		m->inside = addr - start;
		return;
	}
}

void check_unknown(struct heap *h, taddr_t addr, const struct heap_event *ev)
{
	bool is_realloc = ev->h.kind != EVENT_FREE;
	struct misuse m = { .kind = is_realloc ? MISUSE_BAD_REALLOC : MISUSE_BAD_FREE,
			    .addr = addr,
			    .alloc_row = MISUSE_NO_ROW,
			    .earlier_row = MISUSE_NO_ROW };
	const struct misuse_freed *freed;

	if (!h->misuses || !h->is_complete)
		return;
	if (h->is_lossy || h->has_check_gaps) {
		h->misuses->counts.nr_unsure++;
		return;
	}
	freed = misuse_find_freed(h->misuses, addr);
	if (freed) {
		m.kind = is_realloc ? MISUSE_BAD_REALLOC : MISUSE_DOUBLE;
		m.alloc_row = freed->alloc_row;
		m.earlier_row = row_of(h, freed->stack, freed->fn);
	} else if (h->misuses->counts.of[m.kind] < MAX_LOOKS_INSIDE) {
		look_inside(h, addr, &m);
	}
	add(h, &m, ev);
}
