/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reading a heap: totals, rows and live blocks for reports, the console and the scan. */
#include "user/heap/heap.h"

#include "user/heap/heap_private.h"
#include "user/heap/heap_worth.h"

u64 heap_lost(const struct heap *h)
{
	return h->lost;
}

u64 heap_pending(const struct heap *h)
{
	u64 nr = 0;

	for (u32 i = 0; i < h->nr_pending; i++)
		nr += pending_is_counted(h, &h->pending[i]);
	return nr;
}

const struct alloc_table *heap_functions(const struct heap *h)
{
	return h->fns;
}

bool heap_is_pending(const struct heap *h, u32 tid, taddr_t addr)
{
	for (u32 i = 0; i < h->nr_pending; i++)
		if (h->pending[i].old_addr == addr && h->pending[i].tid == tid)
			return h->pending[i].kind != PENDING_UNKNOWN;
	return false;
}

struct heap_totals heap_totals(const struct heap *h)
{
	struct heap_totals totals = h->totals;

	totals.unknown_frees += h->unseen_frees;
	return totals;
}

void heap_set_unseen_frees(struct heap *h, u64 nr)
{
	h->unseen_frees = nr;
}

bool heap_timeline(const struct heap *h, size_t i, struct timeline_point *out)
{
	return timeline_point(&h->timeline, i, now_in_time(h), out);
}

struct tape *heap_tape(const struct heap *h)
{
	return h->tape;
}

bool heap_thread(const struct heap *h, size_t i, struct thread_row *out)
{
	const struct thread_table *t = &h->threads;

	if (i > t->nr || (i == t->nr && !t->others.allocs))
		return false;
	*out = i < t->nr ? t->rows[i] : t->others;
	return true;
}

struct thread_row *heap_thread_row(struct heap *h, size_t i)
{
	return i < h->threads.nr ? &h->threads.rows[i] : NULL;
}

struct thread_row *heap_add_thread(struct heap *h, u32 tid)
{
	return heap_thread_row(h, thread_table_number(&h->threads, tid));
}

u64 heap_live_bytes(const struct heap *h)
{
	return h->totals.live_bytes;
}

u64 heap_calls(const struct heap *h, u16 fn)
{
	return fn < ALLOC_MAX_FNS ? h->calls[fn] : 0;
}

size_t heap_row_count(const struct heap *h)
{
	return (h->rows.nr < h->end_row ? h->rows.nr : h->end_row) - h->first_row;
}

struct heap_row heap_row_get(const struct heap *h, u32 row)
{
	const struct row *r = &h->rows.rows[h->first_row + row];

	if (row >= heap_row_count(h))
		return (struct heap_row){ 0 };
	return (struct heap_row){
		.stack = r->stack,
		.fn = r->fn,
		.allocs = r->allocs,
		.frees = r->frees,
		.alloc_bytes = r->alloc_bytes,
		.live_blocks = r->allocs - r->frees,
		.live_bytes = r->live_bytes,
		.peak_bytes = row_at_peak(r, h->peak_nr),
		.temporary = r->temporary,
		.spread = HAS_SAMPLES ? r->spread : 0,
		.nr_folded = r->nr_folded,
	};
}

/* The number for heap_thread(). */
static u32 heap_read_thread_of(const struct heap *h, u32 thread)
{
	return thread < h->threads.nr ? thread : h->threads.nr;
}

static struct heap_block describe_block(const struct heap *h, taddr_t addr, const struct block *b)
{
	return (struct heap_block){
		.addr = addr,
		.size = block_size(h, b),
		.order = block_order(b),
		.time_ns = heap_order_time_ns(h, block_order(b)),
		.row = b->row - h->first_row,
		.thread = heap_read_thread_of(h, b->thread),
		.is_ignored = heap_is_ignored(h, addr),
		.is_unsure = b->epoch != h->epoch,
		.is_more = HAS_SAMPLES && b->is_more,
		.distance = HAS_SAMPLES && h->sample_bytes ? (u8)heap_sample_distance(b) : 0,
	};
}

static struct heap_block describe_piece(const struct heap *h, const struct region_piece *piece)
{
	const struct heap_region *r = &h->regions.regions[piece->region];

	return (struct heap_block){
		.addr = piece->start,
		.size = piece->end - piece->start,
		.order = r->order,
		.time_ns = heap_order_time_ns(h, r->order),
		.row = r->row - h->first_row,
		.thread = heap_read_thread_of(h, r->thread),
		.whole = r->nr_pieces > 1 ? piece->region + 1 : 0,
		.is_unsure = r->epoch != h->epoch,
	};
}

static struct heap_block describe_pending(const struct heap *h, const struct pending *p)
{
	struct heap_block block;

	if (p->kind == PENDING_BLOCK)
		block = describe_block(h, p->old_addr, &p->block);
	else
		block = describe_piece(h, &p->piece);
	block.is_unsure = true;
	block.is_pending = true;
	return block;
}

bool heap_find(const struct heap *h, taddr_t addr, struct heap_block *out)
{
	const struct block *b = block_table_find(&h->blocks, addr);
	const struct region_piece *piece;

	if (b) {
		*out = describe_block(h, addr, b);
		return is_counted(h, b->row);
	}
	piece = region_table_find(&h->regions, addr);
	if (!piece || piece->start != addr)
		return false;
	*out = describe_piece(h, piece);
	return is_counted(h, h->regions.regions[piece->region].row);
}

/* The part of a pool's memory behind the block that begins with it. False if nothing is left of it. */
static bool describe_covered(const struct heap *h, const struct block *under, struct heap_block *out)
{
	taddr_t addr = block_table_addr(&h->covered, under);
	const struct block *over = block_table_find(&h->blocks, addr);
	u64 over_size = over && over->size ? over->size : 1;

	*out = describe_block(h, addr, under);
	out->addr += over_size;
	out->size -= over_size < out->size ? over_size : out->size;
	out->is_unsure = true;
	return is_counted(h, under->row) && out->size;
}

int heap_for_each_block(const struct heap *h, int (*visit)(void *ctx, const struct heap_block *block),
			void *ctx)
{
	const struct block *b = NULL;
	struct heap_block block;
	int ret = 0;

	while (!ret && (b = block_table_next(&h->blocks, b))) {
		if (!is_counted(h, b->row))
			continue;
		block = describe_block(h, block_table_addr(&h->blocks, b), b);
		ret = visit(ctx, &block);
	}
	b = NULL;
	while (!ret && (b = block_table_next(&h->covered, b))) {
		if (describe_covered(h, b, &block))
			ret = visit(ctx, &block);
	}
	for (size_t i = 0; !ret && i < h->regions.nr_pieces; i++) {
		if (!is_counted(h, h->regions.regions[h->regions.pieces[i].region].row))
			continue;
		block = describe_piece(h, &h->regions.pieces[i]);
		ret = visit(ctx, &block);
	}
	for (u32 i = 0; !ret && i < h->nr_pending; i++) {
		if (!pending_is_counted(h, &h->pending[i]))
			continue;
		block = describe_pending(h, &h->pending[i]);
		ret = visit(ctx, &block);
	}
	return ret;
}

const struct cover_map *heap_cover(const struct heap *h)
{
	return h->has_cover && !h->nr_pending && !h->is_lossy && !(HAS_SAMPLES && h->sample_bytes) ? &h->cover
												   : NULL;
}

u64 heap_memory(const struct heap *h)
{
	return h->budget.used;
}
