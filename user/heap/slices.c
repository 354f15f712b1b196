/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Counts of callers in slices of time: differences of their counters, packed; slices that double in length. */
#include "user/heap/slices.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "user/heap/heap_private.h"
#include "user/lib/cleanup.h"
#include "user/lib/varint.h"

enum {
	FIRST_SHIFT = 20, /* slices of about a millisecond */
	MAX_SHIFT = 63,
	ITEM_MAX = 5 * VARINT_MAX,
};

static int slices_new(struct slices **out, struct budget *budget)
{
	struct slices *s = NULL;

	if (budget_take(budget, sizeof(*s)))
		s = calloc(1, sizeof(*s));
	if (!s)
		return -ENOMEM;
	s->budget = budget;
	s->shift = FIRST_SHIFT;
	*out = s;
	return 0;
}

static void slices_drop(struct slices *s, struct slice *slice)
{
	budget_give(s->budget, slice->len);
	s->packed_bytes -= slice->len;
	free(slice->packed);
}

void slices_reset(struct slices *s)
{
	while (s->nr)
		slices_drop(s, &s->list[--s->nr]);
	budget_give(s->budget, s->max_seen * sizeof(*s->seen));
	free(s->seen);
	*s = (struct slices){ .budget = s->budget, .shift = FIRST_SHIFT };
}

void slices_free(struct slices *s)
{
	if (!s)
		return;
	slices_reset(s);
	budget_give(s->budget, sizeof(*s));
	free(s);
}

/* Memory of @len bytes that counts in the budget, or NULL. */
static u8 *new_bytes(struct slices *s, u64 len)
{
	u8 *bytes = NULL;

	if (len <= UINT32_MAX && budget_take(s->budget, len)) {
		bytes = malloc(len + !len);
		if (!bytes)
			budget_give(s->budget, len);
	}
	return bytes;
}

int slices_copy(struct slices **out, const struct slices *s, struct budget *budget)
{
	struct slices *copy;
	int err = slices_new(&copy, budget);

	if (err)
		return err;
	*copy = *s;
	copy->budget = budget;
	copy->seen = NULL;
	copy->nr = copy->max_seen = 0;
	copy->packed_bytes = 0;
	err = budget_copy(budget, &copy->seen, s->seen, s->nr_seen * sizeof(*s->seen));
	if (!err)
		copy->max_seen = s->nr_seen;
	for (u32 i = 0; i < s->nr && !err; i++) {
		struct slice *slice = &copy->list[i];

		*slice = s->list[i];
		slice->packed = new_bytes(copy, slice->len);
		if (!slice->packed) {
			err = -ENOMEM;
			break;
		}
		memcpy(slice->packed, s->list[i].packed, slice->len);
		copy->packed_bytes += slice->len;
		copy->nr++;
	}
	if (err)
		slices_free(copy);
	else
		*out = copy;
	return err;
}

/* A row of a slice. */
struct slice_row {
	u32 row;
	struct slice_counts counts;
};

/* @last is the row before in the slice, or -1. Returns the end of what was written. */
static u8 *slices_pack(u8 *out, const struct slice_row *item, s64 last)
{
	out = varint_put(out, (u64)(item->row - last - 1));
	out = varint_put(out, item->counts.allocs);
	out = varint_put(out, item->counts.frees);
	out = varint_put(out, item->counts.alloc_bytes);
	return varint_put(out, to_zigzag((u64)item->counts.live_bytes));
}

/* One that reads a slice. */
struct slice_reader {
	const u8 *at, *end;
	struct slice_row item;
	s64 last; /* row, or -1 */
	bool has_item;
};

static void read_next(struct slice_reader *r)
{
	u64 gap = 0, live_bytes = 0;

	r->has_item = r->at < r->end;
	if (!r->has_item)
		return;
	r->at = varint_get(r->at, r->end, &gap);
	r->at = varint_get(r->at, r->end, &r->item.counts.allocs);
	r->at = varint_get(r->at, r->end, &r->item.counts.frees);
	r->at = varint_get(r->at, r->end, &r->item.counts.alloc_bytes);
	r->at = varint_get(r->at, r->end, &live_bytes);
	r->item.counts.live_bytes = (s64)from_zigzag(live_bytes);
	r->item.row = (u32)(r->last + 1 + (s64)gap);
	r->last = r->item.row;
}

static struct slice_reader read_slice(const struct slice *slice)
{
	struct slice_reader r = { .at = slice->packed, .end = slice->packed + slice->len, .last = -1 };

	read_next(&r);
	return r;
}

static void add_counts(struct slice_counts *to, const struct slice_counts *more)
{
	to->allocs += more->allocs;
	to->frees += more->frees;
	to->alloc_bytes += more->alloc_bytes;
	to->live_bytes += more->live_bytes;
}

/* The first item of @a and @b, or of both if they are of one row. */
static struct slice_row take_first(struct slice_reader *a, struct slice_reader *b)
{
	bool is_a = a->has_item && (!b->has_item || a->item.row <= b->item.row);
	bool is_both = is_a && b->has_item && a->item.row == b->item.row;
	struct slice_row item = is_a ? a->item : b->item;

	if (is_both)
		add_counts(&item.counts, &b->item.counts);
	if (is_a)
		read_next(a);
	if (!is_a || is_both)
		read_next(b);
	return item;
}

/* Add @b, which comes after it, to @a. 0 or -ENOMEM: both are as before. */
static int slices_join(struct slices *s, struct slice *a, struct slice *b)
{
	u8 *packed = new_bytes(s, (u64)a->len + b->len);
	struct slice_reader ra = read_slice(a), rb = read_slice(b);
	struct slice both = { .number = a->number, .packed = packed };
	u8 *end = packed;
	u8 *smaller;
	s64 last = -1;

	if (!packed)
		return -ENOMEM;
	while (ra.has_item || rb.has_item) {
		struct slice_row item = take_first(&ra, &rb);

		end = slices_pack(end, &item, last);
		last = item.row;
	}
	both.len = (u32)(end - packed);
	budget_give(s->budget, a->len + b->len - both.len);
	smaller = realloc(packed, both.len + !both.len);
	if (smaller)
		both.packed = smaller;
	s->packed_bytes += both.len;
	slices_drop(s, a);
	slices_drop(s, b);
	*a = both;
	return 0;
}

/* Open the last slice of the list again: the one that is being filled began with it. */
static void reopen_last(struct slices *s)
{
	struct slice *slice = &s->list[--s->nr];

	for (struct slice_reader r = read_slice(slice); r.has_item; read_next(&r)) {
		struct slice_counts *seen = &s->seen[r.item.row];

		seen->allocs -= r.item.counts.allocs;
		seen->frees -= r.item.counts.frees;
		seen->alloc_bytes -= r.item.counts.alloc_bytes;
		seen->live_bytes -= r.item.counts.live_bytes;
	}
	slices_drop(s, slice);
}

/* Double the length of slices. Without memory for that, the slice that is being filled takes in those before it. */
static void double_length(struct slices *s)
{
	u32 kept = 0;
	bool is_full = false;

	s->shift++;
	s->number >>= 1;
	for (u32 i = 0; i < s->nr; i++) {
		struct slice slice = s->list[i];

		slice.number >>= 1;
		if (kept && s->list[kept - 1].number == slice.number && !is_full) {
			is_full = slices_join(s, &s->list[kept - 1], &slice) != 0;
			if (!is_full)
				continue;
			s->number = slice.number;
		}
		s->list[kept++] = slice;
	}
	s->nr = kept;
	while (s->nr && s->list[s->nr - 1].number >= s->number)
		reopen_last(s);
}

/* The counts of @row since @seen; false: there are none. */
static bool has_changed(const struct row *row, const struct slice_counts *seen, struct slice_counts *out)
{
	*out = (struct slice_counts){ .allocs = row->allocs,
				      .frees = row->frees,
				      .alloc_bytes = row->alloc_bytes,
				      .live_bytes = (s64)row->live_bytes };
	if (seen) {
		out->allocs -= seen->allocs;
		out->frees -= seen->frees;
		out->alloc_bytes -= seen->alloc_bytes;
		out->live_bytes -= seen->live_bytes;
	}
	return out->allocs || out->frees || out->live_bytes;
}

/* Visit each row that has changed in the slice that is being filled. */
static int visit_open(const struct slices *s, const struct row *rows, u32 nr_rows,
		      int (*visit)(void *ctx, u32 row, const struct slice_counts *counts), void *ctx)
{
	struct slice_counts counts;
	int ret = 0;

	for (u32 i = 0; i < nr_rows && !ret; i++)
		if (has_changed(&rows[i], i < s->nr_seen ? &s->seen[i] : NULL, &counts))
			ret = visit(ctx, i, &counts);
	return ret;
}

/* A slice that is packed: first its length is found, then it is written. */
struct packing {
	u8 *at; /* NULL = only the length is wanted */
	u64 len;
	s64 last;
};

static int pack_row(void *ctx, u32 row, const struct slice_counts *counts)
{
	const struct slice_row item = { .row = row, .counts = *counts };
	struct packing *p = ctx;
	u8 one[ITEM_MAX];

	if (p->at)
		p->at = slices_pack(p->at, &item, p->last);
	else
		p->len += (u64)(slices_pack(one, &item, p->last) - one);
	p->last = row;
	return 0;
}

static int reserve_seen(struct slices *s, u32 nr_rows)
{
	int err = budget_array(s->budget, s->seen, s->max_seen, nr_rows);

	if (!err && nr_rows > s->nr_seen) {
		memset(s->seen + s->nr_seen, 0, (nr_rows - s->nr_seen) * sizeof(*s->seen));
		s->nr_seen = nr_rows;
	}
	return err;
}

/* Put the slice that is being filled into the list. 0 or -ENOMEM: it goes on. */
static int close_slice(struct slices *s, const struct row *rows, u32 nr_rows)
{
	struct packing p = { .last = -1 };
	struct slice slice = { .number = s->number };

	if (reserve_seen(s, nr_rows))
		return -ENOMEM;
	visit_open(s, rows, nr_rows, pack_row, &p);
	slice.packed = new_bytes(s, p.len);
	if (!slice.packed)
		return -ENOMEM;
	slice.len = (u32)p.len;
	p.at = slice.packed;
	p.last = -1;
	visit_open(s, rows, nr_rows, pack_row, &p);
	for (u32 i = 0; i < nr_rows; i++)
		has_changed(&rows[i], NULL, &s->seen[i]);
	s->list[s->nr++] = slice;
	s->packed_bytes += slice.len;
	return 0;
}

void slices_go_on(struct slices *s, u64 start_ns, u64 now_ns, u32 least_shift, const struct row *rows,
		  u32 nr_rows)
{
	u64 since_ns = now_ns > start_ns ? now_ns - start_ns : 0;

	s->start_ns = start_ns;
	s->has_begun = true;
	while (s->shift < least_shift && s->shift < MAX_SHIFT)
		double_length(s);
	if (since_ns >> s->shift > s->number && !close_slice(s, rows, nr_rows))
		s->number = since_ns >> s->shift;
	if (s->nr == SLICES_MAX)
		/* At least down to a half, so that this is seldom done. */
		while (s->nr > SLICES_MAX / 2 && s->shift < MAX_SHIFT)
			double_length(s);
	while (s->shift < MAX_SHIFT &&
	       ((s->nr && s->packed_bytes > SLICES_BYTES_MAX) || since_ns >> s->shift > s->number))
		double_length(s);
}

static int slices_compare_rows(const void *pa, const void *pb)
{
	const struct slice_row *a = pa, *b = pb;

	return (a->row > b->row) - (a->row < b->row);
}

/* Join the @nr items of equal rows, which are sorted. Returns how many there are then. */
static u32 join_items(struct slice_row *items, u32 nr)
{
	u32 kept = 0;

	for (u32 i = 1; i < nr; i++) {
		if (items[i].row == items[kept].row)
			add_counts(&items[kept].counts, &items[i].counts);
		else
			items[++kept] = items[i];
	}
	return nr ? kept + 1 : 0;
}

/* The items of @slice, with new numbers and sorted. NULL without memory. The caller owns them. */
static struct slice_row *slices_read_anew(const struct slice *slice, const u32 *to, u32 *nr)
{
	struct slice_row *items;

	*nr = 0;
	for (struct slice_reader r = read_slice(slice); r.has_item; read_next(&r))
		++*nr;
	items = calloc((size_t)*nr + 1, sizeof(*items));
	*nr = 0;
	for (struct slice_reader r = read_slice(slice); items && r.has_item; read_next(&r)) {
		items[*nr] = r.item;
		items[(*nr)++].row = to[r.item.row];
	}
	if (items)
		qsort(items, *nr, sizeof(*items), slices_compare_rows);
	return items;
}

static int fold_slice(struct slices *s, struct slice *slice, const u32 *to)
{
	u32 nr;
	auto_free struct slice_row *items = slices_read_anew(slice, to, &nr);
	u8 *packed, *end;
	s64 last = -1;

	nr = items ? join_items(items, nr) : 0;
	packed = items ? malloc((size_t)nr * ITEM_MAX + 1) : NULL;
	if (!packed)
		return -ENOMEM;
	end = packed;
	for (u32 i = 0; i < nr; i++) {
		end = slices_pack(end, &items[i], last);
		last = items[i].row;
	}
	slices_drop(s, slice);
	slice->len = (u32)(end - packed);
	slice->packed = realloc(packed, slice->len + !slice->len);
	if (!slice->packed)
		slice->packed = packed;
	/* The slice is about as long as before: no limit is asked. */
	s->budget->used += slice->len;
	s->packed_bytes += slice->len;
	return 0;
}

int slices_fold(struct slices *s, const u32 *to, u32 nr_rows)
{
	int err = 0;

	for (u32 i = 0; i < s->nr && !err; i++)
		err = fold_slice(s, &s->list[i], to);
	for (u32 i = 0; i < s->nr_seen; i++) {
		struct slice_counts counts = s->seen[i];

		s->seen[i] = (struct slice_counts){ 0 };
		add_counts(&s->seen[to[i]], &counts);
	}
	if (s->nr_seen > nr_rows)
		s->nr_seen = nr_rows;
	return err;
}

int heap_keep_slices(struct heap *h)
{
	return h->slices ? 0 : slices_new(&h->slices, &h->budget);
}

bool heap_slice(const struct heap *h, u32 i, u64 *begin_ns)
{
	const struct slices *s = h->slices;

	if (!s || !s->has_begun || i > s->nr)
		return false;
	*begin_ns = s->start_ns + ((i < s->nr ? s->list[i].number : s->number) << s->shift);
	return true;
}

int heap_slice_visit(const struct heap *h, u32 i,
		     int (*visit)(void *ctx, u32 row, const struct slice_counts *counts), void *ctx)
{
	const struct slices *s = h->slices;
	int ret = 0;

	if (!s || i > s->nr)
		return 0;
	if (i == s->nr)
		return visit_open(s, h->rows.rows + h->first_row, (u32)heap_row_count(h), visit, ctx);
	for (struct slice_reader r = read_slice(&s->list[i]); r.has_item && !ret; read_next(&r))
		ret = visit(ctx, r.item.row, &r.item.counts);
	return ret;
}
