/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Checks of releases, before they are entered in the heap. */
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

void heap_check_own(struct heap *h, bool (*is_own)(const void *ctx, u64 stack), const void *ctx)
{
	h->is_own = is_own;
	h->own_ctx = ctx;
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
static u32 heap_check_row_of(struct heap *h, u64 stack, u16 fn)
{
	u32 row;

	return row_table_find(&h->rows, stack, fn, &row) ? (u32)MISUSE_NO_ROW : row;
}

static void heap_check_add(struct heap *h, struct misuse *m, const struct heap_event *ev)
{
	m->fn = ev->h.fn;
	m->free_row = heap_check_row_of(h, ev->stack, ev->h.fn);
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

/* @ev says the size or alignment @said of @b, and its allocation asked for @asked. */
static void add_wrong_number(struct heap *h, enum misuse_kind kind, const struct misuse *like,
			     const struct block *b, u64 asked, u64 said, const struct heap_event *ev)
{
	struct misuse m = *like;

	/* After a loss another block may be there, which nobody saw. */
	if (h->is_lossy || b->epoch != h->epoch) {
		h->misuses->counts.nr_unsure++;
		return;
	}
	m.kind = kind;
	m.asked = asked;
	m.said = said;
	heap_check_add(h, &m, ev);
}

/* The release @ev of @b by a function of the right family: does it say the alignment that the block has, if any? */
static void check_alignment(struct heap *h, const struct misuse *like, const struct block *b,
			    const struct heap_event *ev)
{
	const struct row *row = &h->rows.rows[b->row];
	const struct alloc_fn *a = alloc_fn(h->fns, row->fn), *r = alloc_fn(h->fns, ev->h.fn);
	u64 said = ev->alignment == ALIGNMENT_ZERO ? 0 : ev->alignment, asked = 0;
	struct misuse m = *like;

	if (row->alignment_log && row->alignment_log != ROW_ALIGNMENTS)
		asked = 1ULL << (row->alignment_log - 1);
	if (alloc_fn_is_aligned_operator(a) != alloc_fn_is_aligned_operator(r)) {
		m.kind = MISUSE_ALIGNMENT;
		heap_check_add(h, &m, ev);
	} else if (ev->alignment && asked && said != asked) {
		add_wrong_number(h, MISUSE_ALIGNMENT, like, b, asked, said, ev);
	}
}

void check_release(struct heap *h, taddr_t addr, const struct block *b, const struct heap_event *ev)
{
	struct misuse m = {
		.kind = MISUSE_MISMATCHED, .addr = addr, .alloc_row = b->row, .earlier_row = MISUSE_NO_ROW
	};
	u16 fn = h->rows.rows[b->row].fn;

	if (is_mismatch(h, fn, ev->h.fn)) {
		heap_check_add(h, &m, ev);
		return;
	}
	/* A custom function is not known to say the size it was asked for. */
	if (ev->h.kind != EVENT_FREE || is_blurred(h, fn) || is_blurred(h, ev->h.fn))
		return;
	check_alignment(h, &m, b, ev);
	/* Sizes above the maximum were cut. */
	if (ev->size && ev->size != b->size && b->size < BLOCK_MAX_SIZE)
		add_wrong_number(h, MISUSE_SIZE, &m, b, b->size, ev->size, ev);
}

static void add_notice(struct heap *h, enum notice_kind kind, const struct heap_event *ev)
{
	struct misuse_notice *n = &h->misuses->notices[kind];

	if (n->count++)
		return;
	n->size = ev->size;
	n->row = heap_check_row_of(h, ev->stack, ev->h.fn);
}

/* Is the alignment that @ev asks for no power of two, or one that posix_memalign has refused? */
static bool has_bad_alignment(const struct heap *h, const struct heap_event *ev)
{
	enum { WORD = 8 };

	if (ev->alignment & (ev->alignment - 1))
		return true;
	return alloc_fn(h->fns, ev->h.fn)->kind == ALLOC_OUT && !ev->addr && ev->alignment < WORD;
}

/* Sizes of 32-bit programs are never negative here: their word size is not known. */
void check_notice(struct heap *h, const struct heap_event *ev)
{
	bool is_realloc = ev->h.kind == EVENT_REALLOC_END;

	if ((!is_realloc && ev->h.kind != EVENT_ALLOC) || ev->h.flags & EVENT_RETRY)
		return;
	if ((s64)ev->size < 0)
		add_notice(h, NOTICE_HUGE_SIZE, ev);
	else if (is_realloc && !ev->size && ev->old_addr)
		add_notice(h, NOTICE_REALLOC_ZERO, ev);
	if (!is_realloc && ev->alignment && has_bad_alignment(h, ev))
		add_notice(h, NOTICE_BAD_ALIGNMENT, ev);
}

const struct misuse_notice *heap_notices(const struct heap *h)
{
	return h->misuses ? h->misuses->notices : NULL;
}

void check_freed(struct heap *h, taddr_t addr, u32 row, const struct heap_event *ev)
{
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

	if (!h->is_complete)
		return;
	if (h->is_lossy || h->has_check_gaps) {
		h->misuses->counts.nr_unsure++;
		return;
	}
	freed = misuse_find_freed(h->misuses, addr);
	if (freed) {
		m.kind = is_realloc ? MISUSE_BAD_REALLOC : MISUSE_DOUBLE;
		m.alloc_row = freed->alloc_row;
		m.earlier_row = heap_check_row_of(h, freed->stack, freed->fn);
	} else if (h->misuses->counts.of[m.kind] < MAX_LOOKS_INSIDE) {
		look_inside(h, addr, &m);
	}
	heap_check_add(h, &m, ev);
}
