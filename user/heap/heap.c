/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The heap of one process: events come in from a session, and change blocks, rows and sums. */
#include "user/heap/heap.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "user/heap/heap_private.h"
#include "user/heap/heap_worth.h"
#include "user/lib/random.h"

enum {
	MAX_PENDING = 256, /* more than the threads that are in realloc at once; searched one by one */
	MIN_PAGE = 4096,   /* munmap rounds lengths up to pages; the smallest page size of all targets */
};

static u64 random_seed(void)
{
	u64 seed = 0;

	if (random_fill(&seed, sizeof(seed)))
		seed = (u64)clock() ^ (uintptr_t)&seed;
	return seed;
}

int heap_new(struct heap **out, const struct alloc_table *fns)
{
	struct heap *h = calloc(1, sizeof(*h));

	if (!h)
		return -ENOMEM;
	h->fns = fns;
	h->budget.used = sizeof(*h);
	h->epoch = EPOCH_UNSURE + 1;
	h->end_row = UINT32_MAX;
	row_table_init(&h->rows, random_seed(), &h->budget);
	block_table_init(&h->blocks, random_seed(), &h->budget);
	block_table_init(&h->covered, random_seed(), &h->budget);
	block_table_init(&h->ignored, random_seed(), &h->budget);
	region_table_init(&h->regions, &h->budget);
	cover_map_init(&h->cover, &h->budget);
	timeline_init(&h->timeline, &h->budget);
	thread_table_init(&h->threads, &h->budget);
	*out = h;
	return 0;
}

void heap_free(struct heap *h)
{
	if (!h)
		return;
	row_table_fini(&h->rows);
	block_table_fini(&h->blocks);
	block_table_fini(&h->covered);
	block_table_fini(&h->ignored);
	region_table_fini(&h->regions);
	cover_map_fini(&h->cover);
	timeline_fini(&h->timeline);
	thread_table_fini(&h->threads);
	if (HAS_TAPE)
		tape_free(h->tape);
	if (HAS_SLICES)
		slices_free(h->slices);
	free(h->pending);
	misuse_table_free(h->misuses);
	free(h);
}

void heap_keep_cover(struct heap *h)
{
	h->has_cover = true;
}

void heap_note_cover(struct heap *h, const struct heap_event *ev)
{
	if (h->has_cover && ev->addr && (ev->h.kind == EVENT_ALLOC || ev->h.kind == EVENT_REALLOC_END))
		cover_map_add(&h->cover, ev->addr, ev->size);
}

void heap_set_limit(struct heap *h, u64 bytes)
{
	h->budget.limit = bytes;
}

int heap_keep_tape(struct heap *h)
{
	return h->tape ? 0 : HAS_TAPE ? tape_new(&h->tape) : -ENOTSUP;
}

static void __attribute__((noinline)) put_on_tape(struct heap *h, u32 row, u64 bytes, bool is_free)
{
	tape_put(h->tape, &(struct tape_entry){ h->totals.last_time_ns / NS_PER_MS, bytes, row - h->first_row,
						is_free });
}

/* Count the new block of @ev, which is worth @w. Returns the number of its thread, or THREADS_MAX. */
static u32 account_alloc(struct heap *h, u32 row_nr, struct heap_worth w, const struct heap_event *ev)
{
	const u64 bytes = w.bytes, nr = HAS_SAMPLES ? w.nr : 1;
	struct row *row = &h->rows.rows[row_nr];
	struct heap_totals *t = &h->totals;
	u32 thread;

	if (!is_counted(h, row_nr)) {
		h->outside_bytes += bytes;
		return THREADS_MAX;
	}
	if (HAS_TAPE && h->tape)
		put_on_tape(h, row_nr, bytes, false);
	row_keep_peak(row, h->peak_nr);
	row->allocs += nr;
	row->alloc_bytes += bytes;
	row->live_bytes += bytes;
	thread = thread_table_count(&h->threads, ev->h.tid, nr, bytes);
	t->allocs += nr;
	t->alloc_bytes += bytes;
	t->live_blocks += nr;
	t->live_bytes += bytes;
	if (t->live_bytes <= h->timeline.max_bytes)
		return thread;
	h->timeline.max_bytes = t->live_bytes;
	if (t->live_bytes > t->peak_bytes) {
		t->peak_bytes = t->live_bytes;
		t->peak_time_ns = ev->time_ns;
		h->peak_nr++;
	}
	return thread;
}

/* Count @w as freed: no blocks, if it is a piece of a mapping of which others are left. */
static void account_free(struct heap *h, u32 row_nr, struct heap_worth w)
{
	struct row *row = &h->rows.rows[row_nr];
	const u64 bytes = w.bytes, nr = w.nr;

	if (!is_counted(h, row_nr)) {
		h->outside_bytes -= bytes;
		return;
	}
	if (HAS_TAPE && h->tape)
		put_on_tape(h, row_nr, bytes, true);
	row_keep_peak(row, h->peak_nr);
	row->live_bytes -= bytes;
	row->frees += nr;
	h->totals.live_bytes -= bytes;
	h->totals.live_blocks -= nr;
	h->totals.frees += nr;
}

static void region_gone(void *ctx, const struct heap_region *region, u64 bytes, bool is_last)
{
	account_free(ctx, region->row, (struct heap_worth){ is_last, bytes });
}

static bool is_mapping_fn(const struct heap *h, u16 fn)
{
	enum alloc_kind kind = alloc_fn(h->fns, fn)->kind;

	return kind == ALLOC_MMAP || kind == ALLOC_MREMAP;
}

static int heap_add_region(struct heap *h, const struct heap_event *ev, u32 row)
{
	struct heap_region region = { .order = heap_order_next(h, ev->time_ns),
				      .row = row,
				      .epoch = h->epoch };
	u64 size = ev->size < BLOCK_MAX_SIZE ? ev->size : BLOCK_MAX_SIZE;
	taddr_t start = ev->addr;
	taddr_t end;
	int err = region_table_reserve(&h->regions);

	if (err)
		return err;
	size = size ? size : 1; /* mmap refuses 0, and a piece without bytes could never be unmapped */
	end = start + size > start ? start + size : UINT64_MAX;
	if (start == end)
		return 0;
	/* by MAP_FIXED, or after a lost munmap: in both cases the old mapping is gone */
	region_table_cut(&h->regions, start, end, region_gone, h);
	region.thread = account_alloc(h, row, (struct heap_worth){ 1, end - start }, ev);
	region_table_add(&h->regions, start, end, &region);
	return 0;
}

static u64 pending_bit(taddr_t addr)
{
	return 1ULL << ((addr * 0x9e3779b97f4a7c15ULL) >> 58);
}

static void del_pending(struct heap *h, struct pending *p)
{
	struct pending *end = h->pending + h->nr_pending;

	memmove(p, p + 1, (end - p - 1) * sizeof(*p));
	h->nr_pending--;
	h->pending_filter = 0;
	for (p = h->pending; p < end - 1; p++)
		h->pending_filter |= pending_bit(p->old_addr);
}

static void add_pending(struct heap *h, const struct pending *p)
{
	h->pending[h->nr_pending++] = *p;
	h->pending_filter |= pending_bit(p->old_addr);
}

/* Count the block of @p as freed. */
static void account_pending(struct heap *h, const struct pending *p)
{
	const struct region_piece *piece = &p->piece;

	if (p->kind == PENDING_UNKNOWN)
		h->totals.unknown_frees += !h->is_past;
	else if (p->kind == PENDING_BLOCK)
		account_free(h, p->block.row, block_worth(h, &p->block));
	else if (p->kind == PENDING_REGION)
		account_free(h, h->regions.regions[piece->region].row,
			     (struct heap_worth){ region_table_release(&h->regions, piece),
						  piece->end - piece->start });
}

static void free_pending(struct heap *h, struct pending *p)
{
	account_pending(h, p);
	del_pending(h, p);
}

/*
 * The return of the realloc of @p was lost, and the source has counted the free of its old block as lost. If this heap
 * knows the block, it counts the free, and counts it in lost_ends too.
 */
static void settle_lost_end(struct heap *h, struct pending *p)
{
	if (p->kind != PENDING_UNKNOWN) {
		account_pending(h, p);
		h->totals.lost_ends++;
	}
	del_pending(h, p);
}

static struct pending *find_pending(struct heap *h, u32 tid, taddr_t addr)
{
	for (u32 i = 0; i < h->nr_pending; i++)
		if (h->pending[i].old_addr == addr && h->pending[i].tid == tid)
			return &h->pending[i];
	return NULL;
}

/* The oldest pending block at @addr, whoever holds it. */
static struct pending *find_pending_block(struct heap *h, taddr_t addr)
{
	if (!(h->pending_filter & pending_bit(addr)))
		return NULL;
	for (u32 i = 0; i < h->nr_pending; i++)
		if (h->pending[i].old_addr == addr && h->pending[i].kind == PENDING_BLOCK)
			return &h->pending[i];
	return NULL;
}

static int heap_add_block(struct heap *h, const struct heap_event *ev, u32 row)
{
	struct pending *gone = NULL;
	struct block *b;
	int is_known = block_table_put(&h->blocks, ev->addr, &b);

	if (is_known < 0)
		return is_known;
	if (is_known && !pool_cover(h, ev->addr, b, ev->h.fn)) {
		h->totals.collisions += is_counted(h, b->row);
		account_free(h, b->row, block_worth(h, b));
	} else if (!is_known) {
		gone = find_pending_block(h, ev->addr);
	}
	if (gone) {
		account_pending(h, gone);
		gone->kind = PENDING_GONE;
	}
	b->size = ev->size < BLOCK_MAX_SIZE ? ev->size : BLOCK_MAX_SIZE;
	if (HAS_SAMPLES && h->sample_bytes)
		heap_sample_enter(h, b, ev);
	b->epoch = h->epoch;
	b->row = row;
	block_set_order(b, heap_order_next(h, ev->time_ns));
	b->thread = account_alloc(h, row, block_worth(h, b), ev);
	if (HAS_SAMPLES && h->sample_bytes && is_counted(h, row))
		heap_sample_spread(h, &h->rows.rows[row], b);
	if (h->has_cover)
		cover_map_add(&h->cover, ev->addr, ev->size);
	return 0;
}

static void note_alignment(struct row *row, u64 alignment)
{
	u8 log = alignment & (alignment - 1) ? ROW_ALIGNMENTS : 1 + __builtin_ctzll(alignment);

	row->alignment_log = row->alignment_log && row->alignment_log != log ? ROW_ALIGNMENTS : log;
}

/* The number of calls that @ev stands for. */
static u64 heap_calls_of(const struct heap *h, const struct heap_event *ev)
{
	return HAS_SAMPLES && h->sample_bytes ? heap_sampled_calls(h, ev) : 1;
}

/* Enter the block that a call returned. */
static int add_result(struct heap *h, const struct heap_event *ev)
{
	u32 row;
	int err;

	if (!ev->addr) {
		h->totals.failed_allocs += h->is_past ? 0 : heap_calls_of(h, ev);
		return 0;
	}
	err = row_table_get(&h->rows, ev->stack, ev->h.fn, &row);
	if (err)
		return err;
	if (is_mapping_fn(h, ev->h.fn))
		return heap_add_region(h, ev, row);
	if (ev->h.kind == EVENT_ALLOC && ev->alignment)
		note_alignment(&h->rows.rows[row], ev->alignment);
	return heap_add_block(h, ev, row);
}

static void count_call(struct heap *h, const struct heap_event *ev)
{
	if (ev->h.fn < ALLOC_MAX_FNS && !h->is_past)
		h->calls[ev->h.fn] += heap_calls_of(h, ev);
}

static int enter_alloc(struct heap *h, const struct heap_event *ev)
{
	if (!(ev->h.flags & EVENT_RETRY))
		count_call(h, ev);
	else if (h->totals.failed_allocs && !h->is_past)
		h->totals.failed_allocs--;
	return add_result(h, ev);
}

/* Free the block at @addr, by free() or by a realloc whose entry was not seen. */
static void free_block(struct heap *h, taddr_t addr, const struct heap_event *ev)
{
	struct block *under = h->covered.nr ? pool_under(h, addr, ev->h.fn) : NULL;
	struct block *b = under ? under : block_table_find(&h->blocks, addr);
	bool is_temporary = ev->h.kind == EVENT_FREE && ev->h.flags & EVENT_TEMPORARY;
	struct pending *p;

	if (b) {
		if (h->misuses) {
			check_release(h, addr, b, ev);
			check_freed(h, addr, b->row, ev);
		}
		if (is_temporary && is_counted(h, b->row)) {
			u64 nr = block_worth(h, b).nr;

			h->rows.rows[b->row].temporary += nr;
			h->totals.temporary += nr;
		}
		account_free(h, b->row, block_worth(h, b));
		if (under)
			block_table_del(&h->covered, under);
		else if (!h->covered.nr || !pool_uncover(h, addr, b))
			block_table_del(&h->blocks, b);
		return;
	}
	p = find_pending_block(h, addr);
	if (p && h->is_lossy) {
		/* A lost call has returned the address since: this is the free of that block. */
		account_pending(h, p);
		p->kind = PENDING_GONE;
		h->totals.unknown_frees += !h->is_past;
	} else if (p) {
		free_pending(h, p);
	} else if (IS_AGENT || !h->is_own || !h->is_own(h->own_ctx, ev->stack)) {
		if (h->misuses)
			check_unknown(h, addr, ev);
		h->totals.unknown_frees += !h->is_past;
	}
}

/* Free all mappings in the pages of [@start, @start + @size). */
static int unmap_range(struct heap *h, taddr_t start, u64 size)
{
	u64 live_bytes = h->totals.live_bytes + h->outside_bytes;
	taddr_t end = start + size;
	int err = region_table_reserve(&h->regions);

	if (err)
		return err;
	if (end < start || end > UINT64_MAX - MIN_PAGE)
		end = UINT64_MAX;
	else
		end = (end + MIN_PAGE - 1) / MIN_PAGE * MIN_PAGE;
	region_table_cut(&h->regions, start, end, region_gone, h);
	for (u32 i = h->nr_pending; i-- > 0;) {
		const struct pending *p = &h->pending[i];

		/* its mremap has never returned */
		if (p->kind == PENDING_REGION && p->piece.start >= start && p->piece.end <= end)
			free_pending(h, &h->pending[i]);
	}
	if (h->totals.live_bytes + h->outside_bytes == live_bytes)
		h->totals.unknown_frees += !h->is_past;
	return 0;
}

/* Is the release made inside another request, of memory that was reported with that one? */
static bool is_part_of_request(struct heap *h, const struct heap_event *ev)
{
	return ev->h.flags & EVENT_WITHIN && !block_table_find(&h->blocks, ev->addr) &&
	       !find_pending_block(h, ev->addr);
}

static int heap_enter_free(struct heap *h, const struct heap_event *ev)
{
	u8 kind = alloc_fn(h->fns, ev->h.fn)->kind;

	if (!ev->addr || is_part_of_request(h, ev))
		return 0;
	count_call(h, ev);
	if (ev->h.flags & EVENT_UNMAP)
		return unmap_range(h, ev->addr, ev->size);
	if (kind == ALLOC_DESTROY)
		heap_taint(h);
	/* A heap may be a block that was seen. */
	if (!alloc_kind_ends_heap(kind) || block_table_find(&h->blocks, ev->addr))
		free_block(h, ev->addr, ev);
	return 0;
}

/* The realloc of @p failed: put its block back, unless another block is there by now. */
static int restore_pending(struct heap *h, struct pending *p)
{
	struct block *b;
	int err = 0;

	if (p->kind == PENDING_REGION) {
		err = region_table_reserve(&h->regions);
		if (!err && !region_table_put(&h->regions, &p->piece))
			err = -EEXIST;
	} else if (p->kind == PENDING_GONE) {
		err = -EEXIST;
	} else if (p->kind == PENDING_BLOCK) {
		err = block_table_put(&h->blocks, p->old_addr, &b);
		if (err == 1) {
			err = -EEXIST;
		} else if (!err) {
			*b = p->block; /* the key is the same, because the address is */
		}
	}
	if (!err) {
		del_pending(h, p);
		return 0;
	}
	h->totals.collisions += err == -EEXIST && (p->kind == PENDING_GONE || pending_is_counted(h, p));
	free_pending(h, p);
	return err == -EEXIST ? 0 : err;
}

/*
 * Make room for one more pending block. If there are too many, the returns of their calls were lost: put the oldest one
 * back. A late return is then treated like a realloc whose entry was lost.
 */
static int reserve_pending(struct heap *h)
{
	if (h->nr_pending == MAX_PENDING)
		return restore_pending(h, h->pending);
	return budget_array(&h->budget, h->pending, h->max_pending, (size_t)h->nr_pending + 1);
}

/* Move the block at @p->old_addr from its table into @p. */
static int take_block(struct heap *h, struct pending *p, u16 fn)
{
	struct block *b;
	int err;

	if (is_mapping_fn(h, fn)) {
		err = region_table_reserve(&h->regions);
		if (!err && region_table_take(&h->regions, p->old_addr, &p->piece))
			p->kind = PENDING_REGION;
		return err;
	}
	b = h->covered.nr ? pool_under(h, p->old_addr, fn) : NULL;
	if (b) {
		p->kind = PENDING_BLOCK;
		p->block = *b;
		block_table_del(&h->covered, b);
		b = block_table_find(&h->blocks, p->old_addr);
		p->block.key = b ? b->key : 0;
		return 0;
	}
	b = block_table_find(&h->blocks, p->old_addr);
	if (b) {
		p->kind = PENDING_BLOCK;
		p->block = *b;
		block_table_del(&h->blocks, b);
	}
	return 0;
}

static int enter_realloc_begin(struct heap *h, const struct heap_event *ev)
{
	struct pending new = { .old_addr = ev->old_addr, .tid = ev->h.tid };
	struct pending *known;
	int err;

	if (!ev->old_addr)
		return 0;
	err = reserve_pending(h);
	if (!err)
		err = take_block(h, &new, ev->h.fn);
	if (err)
		return err;
	known = find_pending(h, ev->h.tid, ev->old_addr);
	/* The return of @known was lost. The address has no new block, so this is the same block. */
	if (known && pending_is_live(known) && new.kind == PENDING_UNKNOWN)
		return 0;
	if (h->misuses && new.kind == PENDING_BLOCK)
		check_release(h, ev->old_addr, &new.block, ev);
	else if (h->misuses && new.kind == PENDING_UNKNOWN && !is_mapping_fn(h, ev->h.fn))
		check_unknown(h, ev->old_addr, ev);
	if (known && h->is_lossy)
		settle_lost_end(h, known);
	else if (known)
		free_pending(h, known);
	add_pending(h, &new);
	return 0;
}

/* Free the old block of the realloc @ev. */
static int free_old(struct heap *h, const struct heap_event *ev)
{
	struct pending *p = find_pending(h, ev->h.tid, ev->old_addr);
	struct pending unseen = { .old_addr = ev->old_addr, .tid = ev->h.tid };
	int err;

	if (p) {
		if (h->misuses && p->kind == PENDING_BLOCK && ev->addr != ev->old_addr)
			check_freed(h, ev->old_addr, p->block.row, ev);
		free_pending(h, p);
		return 0;
	}
	/* The entry was lost or not sent, so the block is not pending. */
	if (!is_mapping_fn(h, ev->h.fn)) {
		free_block(h, ev->old_addr, ev);
		return 0;
	}
	err = take_block(h, &unseen, ev->h.fn);
	if (err)
		return err;
	account_pending(h, &unseen);
	return 0;
}

static int enter_realloc_end(struct heap *h, const struct heap_event *ev)
{
	/* glibc: realloc(p, 0) frees p */
	bool is_free = !ev->addr && !ev->size && !is_mapping_fn(h, ev->h.fn);
	struct pending *p;
	int err = 0;
	int add_err;

	if (!(ev->h.flags & EVENT_RETRY))
		count_call(h, ev);
	else if (h->totals.failed_allocs && !h->is_past)
		h->totals.failed_allocs--;
	if (!ev->old_addr)
		return add_result(h, ev);
	if (ev->addr || is_free) {
		err = free_old(h, ev);
		if (is_free)
			return err;
	} else {
		p = find_pending(h, ev->h.tid, ev->old_addr);
		if (p)
			err = restore_pending(h, p);
	}
	add_err = HAS_SAMPLES && ev->h.flags & EVENT_UNSAMPLED ? 0 : add_result(h, ev);
	return err ? err : add_err;
}

typedef int enter_event(struct heap *h, const struct heap_event *ev);

static enter_event *const enter[] = {
	[EVENT_ALLOC] = enter_alloc,
	[EVENT_FREE] = heap_enter_free,
	[EVENT_REALLOC_BEGIN] = enter_realloc_begin,
	[EVENT_REALLOC_END] = enter_realloc_end,
};

/*
 * When events get lost, a thread that makes another call has returned from its realloc before: the old block is freed.
 * An allocation in a signal handler looks alike, therefore this is not done without losses.
 */
static void settle_lost_ends(struct heap *h, const struct heap_event *ev)
{
	for (u32 i = h->nr_pending; i-- > 0;) {
		struct pending *p = &h->pending[i];

		if (p->tid == ev->h.tid && (ev->h.kind != EVENT_REALLOC_END || ev->old_addr != p->old_addr))
			settle_lost_end(h, p);
	}
}

/* The first event at all, or the first one of a slot of the timeline. */
static void __attribute__((cold, noinline)) begin_slot(struct heap *h, u64 now_ns)
{
	if (!h->totals.first_time_ns) {
		h->totals.first_time_ns = now_ns;
		heap_order_begin(h, now_ns);
	}
	timeline_go_on(&h->timeline, now_ns, now_in_time(h));
	if (HAS_SLICES && h->slices)
		slices_go_on(h->slices, h->timeline.start_ns, now_ns, h->timeline.shift,
			     h->rows.rows + h->first_row, (u32)heap_row_count(h));
}

int heap_event(struct heap *h, const struct heap_event *ev)
{
	int err;

	if (ev->h.kind >= ARRAY_SIZE(enter) || !enter[ev->h.kind])
		return -EINVAL;
	if (ev->time_ns >= h->timeline.end_ns)
		begin_slot(h, ev->time_ns);
	if (ev->time_ns > h->totals.last_time_ns)
		h->totals.last_time_ns = ev->time_ns;
	if (h->is_lossy && h->nr_pending)
		settle_lost_ends(h, ev);
	if (h->misuses && ev->h.kind != EVENT_FREE &&
	    (!ev->size || (s64)ev->size < 0 || (ev->h.kind == EVENT_ALLOC && ev->alignment)))
		check_notice(h, ev);
	if (h->ignored.nr)
		ignored_end(h, ev);
	err = enter[ev->h.kind](h, ev);
	if (h->totals.live_bytes < h->timeline.min_bytes)
		h->timeline.min_bytes = h->totals.live_bytes;
	h->lost += err == -ENOMEM;
	return err;
}

void heap_prefetch(const struct heap *h, const struct heap_event *ev)
{
	block_table_prefetch(&h->blocks, ev->addr ? ev->addr : ev->old_addr);
}

/* Make every block unsure for ever, so that the numbers of epochs can begin anew. */
static void forget_epochs(struct heap *h)
{
	struct block *b = NULL;

	while ((b = block_table_next(&h->blocks, b)))
		b->epoch = EPOCH_UNSURE;
	b = NULL;
	while ((b = block_table_next(&h->covered, b)))
		b->epoch = EPOCH_UNSURE;
	for (size_t i = 0; i < h->regions.nr_regions; i++)
		h->regions.regions[i].epoch = EPOCH_UNSURE;
	for (u32 i = 0; i < h->nr_pending; i++)
		if (h->pending[i].kind == PENDING_BLOCK)
			h->pending[i].block.epoch = EPOCH_UNSURE;
}

void heap_expect_gaps(struct heap *h)
{
	h->is_lossy = true;
}

void heap_end(struct heap *h)
{
	while (h->is_lossy && h->nr_pending)
		settle_lost_end(h, &h->pending[h->nr_pending - 1]);
	misuse_table_end(h->misuses);
}

void heap_taint(struct heap *h)
{
	if (h->epoch == EPOCH_MAX) {
		forget_epochs(h);
		h->epoch = EPOCH_UNSURE;
	}
	h->epoch++;
}

/* The thread that would settle @p does not exist in the child. */
static int adopt_pending(struct heap *h, struct pending *p)
{
	if (p->kind == PENDING_BLOCK)
		p->block.epoch = EPOCH_UNSURE;
	else if (p->kind == PENDING_REGION)
		h->regions.regions[p->piece.region].epoch = EPOCH_UNSURE;
	return restore_pending(h, p);
}

static int copy_pending(struct heap *copy, const struct heap *h)
{
	int err = 0;

	for (u32 i = 0; i < h->nr_pending && !err; i++) {
		err = reserve_pending(copy);
		if (err)
			return err;
		add_pending(copy, &h->pending[i]);
		err = adopt_pending(copy, &copy->pending[copy->nr_pending - 1]);
	}
	return err;
}

int heap_clone(struct heap **out, const struct heap *h)
{
	struct heap *copy = malloc(sizeof(*copy));
	int err;

	if (!copy)
		return -ENOMEM;
	*copy = *h;
	copy->budget.used = sizeof(*copy);
	copy->pending = NULL;
	copy->nr_pending = 0;
	copy->max_pending = 0;
	copy->pending_filter = 0;
	cover_map_init(&copy->cover,
		       &copy->budget); /* begins empty: the scan is less sure then, but never wrong */
	copy->misuses = NULL;
	copy->is_own = NULL;
	copy->tape = NULL;
	copy->slices = NULL;
	err = row_table_copy(&copy->rows, &h->rows, &copy->budget);
	if (err)
		goto undo_copy;
	err = block_table_copy(&copy->blocks, &h->blocks, &copy->budget);
	if (err)
		goto undo_rows;
	err = block_table_copy(&copy->covered, &h->covered, &copy->budget);
	if (err)
		goto undo_blocks;
	err = block_table_copy(&copy->ignored, &h->ignored, &copy->budget);
	if (err)
		goto undo_covered;
	err = region_table_copy(&copy->regions, &h->regions, &copy->budget);
	if (err)
		goto undo_ignored;
	err = timeline_copy(&copy->timeline, &h->timeline, &copy->budget);
	if (err)
		goto undo_regions;
	err = thread_table_copy(&copy->threads, &h->threads, &copy->budget);
	if (err)
		goto undo_timeline;
	err = copy_pending(copy, h);
	if (!err && h->misuses)
		err = misuse_table_copy(&copy->misuses, h->misuses, &copy->budget);
	if (HAS_TAPE && !err && h->tape)
		err = tape_copy(&copy->tape, h->tape);
	if (HAS_SLICES && !err && h->slices)
		err = slices_copy(&copy->slices, h->slices, &copy->budget);
	if (err)
		goto undo_threads;
	*out = copy;
	return 0;

undo_threads:
	if (HAS_TAPE)
		tape_free(copy->tape);
	misuse_table_free(copy->misuses);
	free(copy->pending);
	thread_table_fini(&copy->threads);
undo_timeline:
	timeline_fini(&copy->timeline);
undo_regions:
	region_table_fini(&copy->regions);
undo_ignored:
	block_table_fini(&copy->ignored);
undo_covered:
	block_table_fini(&copy->covered);
undo_blocks:
	block_table_fini(&copy->blocks);
undo_rows:
	row_table_fini(&copy->rows);
undo_copy:
	free(copy);
	return err;
}
