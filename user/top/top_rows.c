/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The callers on the screen. */
#include "user/top/top_rows.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "user/heap/fold.h"
#include "user/lib/array.h"
#include "user/lib/cleanup.h"
#include "user/lib/escape.h"
#include "user/report/report_parts.h"
#include "user/target/allocator.h"
#include "user/target/target.h"

enum { MAX_NAME_BYTES = 1024 };

void top_rows_fini(struct top_rows *t)
{
	for (size_t i = 0; i < t->nr_known; i++)
		free(t->known[i].names);
	free(t->known);
	free(t->list);
	hash_index_fini(&t->index);
	*t = (struct top_rows){ 0 };
}

static u64 known_hash(const struct target *of, u32 id)
{
	return hash_u64(hash_u64((uintptr_t)of) + id);
}

/* The number of what is known of a caller, which is new if it has to be; HASH_NO_ITEM without memory. */
static u32 top_rows_know(struct top_rows *t, const struct target *of, u32 id)
{
	u64 hash = known_hash(of, id);
	u32 item, at = 0;

	while ((item = hash_index_next(&t->index, hash, &at)) != HASH_NO_ITEM)
		if (t->known[item].of == of && t->known[item].id == id)
			return item;
	if (array_reserve(t->known, t->max_known, t->nr_known + 1) ||
	    hash_index_add(&t->index, hash, (u32)t->nr_known))
		return HASH_NO_ITEM;
	t->known[t->nr_known] = (struct top_known){ .of = of, .id = id };
	return (u32)t->nr_known++;
}

bool top_shows_process(const struct report *r, const struct report_process *p)
{
	if (p->is_replaced || !p->target->has_exited)
		return !p->is_replaced;
	for (size_t i = 0; i < r->nr_processes; i++)
		if (!r->processes[i].is_replaced && !r->processes[i].target->has_exited)
			return false;
	return true;
}

const char *top_rows_names(const struct top_rows *t, const struct top_row *row)
{
	const char *names = row->known < t->nr_known ? t->known[row->known].names : NULL;

	return names ? names : "";
}

static const struct report_process *top_rows_find_process(const struct report *r, const struct target *of)
{
	for (size_t i = 0; i < r->nr_processes; i++)
		if (r->processes[i].target == of)
			return &r->processes[i];
	return NULL;
}

/* Look up the names of the caller @k of @p, unless that was done. */
static int name_caller(struct top_known *k, const struct report *r, const struct report_process *p, u16 fn)
{
	char names[MAX_NAME_BYTES];
	size_t len;
	int err;

	if (k->names)
		return 0;
	/* The program's own function first: a narrow screen shows no more. */
	err = report_own_callers(r, p, k->id, names, sizeof(names) / 2);
	if (err)
		return err;
	len = strlen(names);
	if (len)
		len += (size_t)snprintf(names + len, sizeof(names) - len, ", by ");
	escape_buf(names + len, sizeof(names) - len, alloc_fn(heap_functions(p->heap), fn)->name);
	k->names = strdup(names);
	return k->names ? 0 : -ENOMEM;
}

int top_rows_name(struct top_rows *t, const struct report *r, size_t first, size_t nr)
{
	int err = 0;

	for (size_t i = first; i < t->nr && i - first < nr && !err; i++) {
		const struct top_row *row = &t->list[i];
		const struct report_process *p = top_rows_find_process(r, row->of);

		if (p)
			err = name_caller(&t->known[row->known], r, p, row->row.row.fn);
	}
	return err;
}

/* Allocations a second since the last tick. */
static u64 rate_of(struct top_rows *t, struct top_known *k, const struct heap_row *h, u64 now_ns, u64 old)
{
	u64 past_ns = now_ns > t->tick_ns ? now_ns - t->tick_ns : 0;
	u64 nr = h->allocs > k->allocs ? h->allocs - k->allocs : 0;

	k->allocs = h->allocs;
	/* Before the first tick nothing is known of the time. */
	if (!t->tick_ns)
		return 0;
	return past_ns ? (u64)((double)nr * 1e9 / (double)past_ns) : old;
}

/* Rates that rows showed before; rows of the last look are found by what is known of their callers. */
struct old_rates {
	u64 *of; /* by number in known */
	size_t nr;
};

static int keep_rates(const struct top_rows *t, struct old_rates *old)
{
	old->nr = t->nr_known;
	old->of = calloc(t->nr_known + 1, sizeof(*old->of));
	for (size_t i = 0; old->of && i < t->nr; i++)
		old->of[t->list[i].known] = t->list[i].allocs_per_s;
	return old->of ? 0 : -ENOMEM;
}

/* One look at a report. */
struct rows_look {
	const struct report *report;
	const char *filter;
	bool is_tick;
	struct old_rates old;
};

static int top_rows_add_row(struct top_rows *t, const struct rows_look *look, const struct report_process *p,
			    const struct report_row *row)
{
	u32 known = top_rows_know(t, p->target, row->id);
	u64 rate;
	int err = 0;

	if (known == HASH_NO_ITEM)
		return -ENOMEM;
	rate = known < look->old.nr ? look->old.of[known] : 0;
	if (look->is_tick)
		rate = rate_of(t, &t->known[known], &row->row, look->report->time_ns, rate);
	if (!report_key_value(t->key, row))
		return 0;
	if (*look->filter)
		err = name_caller(&t->known[known], look->report, p, row->row.fn);
	if (err || (*look->filter && !strcasestr(t->known[known].names, look->filter)))
		return err;
	if (array_reserve(t->list, t->max, t->nr + 1))
		return -ENOMEM;
	t->list[t->nr] = (struct top_row){
		.of = p->target, .pid = p->target->pid, .row = *row, .allocs_per_s = rate, .known = known
	};
	t->list[t->nr++].row.why = NULL;
	return 0;
}

static int top_rows_add_process(struct top_rows *t, const struct rows_look *look,
				const struct report_process *p)
{
	auto_free struct report_row *rows = NULL;
	const struct report_key *key;
	size_t nr;
	int err = report_rows(look->report, p, &rows, &nr, &key);

	if (err)
		return err;
	/* A process without what the key is about has another key. All rows need the same one. */
	if (!t->key || key == look->report->options.sort)
		t->key = key;
	for (size_t i = 0; i < nr && !err; i++)
		err = top_rows_add_row(t, look, p, &rows[i]);
	t->is_scanned |= p->leaks != NULL;
	return err;
}

static int top_rows_compare_rows(const void *pa, const void *pb, void *ctx)
{
	const struct top_row *a = pa, *b = pb;
	const struct report_key *key = ctx;
	double va = report_key_value(key, &a->row), vb = report_key_value(key, &b->row);

	if (va != vb)
		return va < vb ? 1 : -1;
	if (a->row.row.live_bytes != b->row.row.live_bytes)
		return a->row.row.live_bytes < b->row.row.live_bytes ? 1 : -1;
	if (a->row.row.alloc_bytes != b->row.row.alloc_bytes)
		return a->row.row.alloc_bytes < b->row.row.alloc_bytes ? 1 : -1;
	if (a->pid != b->pid)
		return a->pid < b->pid ? -1 : 1;
	return (a->row.id > b->row.id) - (a->row.id < b->row.id);
}

/* The key may have become another one since the first rows were added. */
static void drop_empty(struct top_rows *t)
{
	size_t kept = 0;

	for (size_t i = 0; i < t->nr; i++)
		if (report_key_value(t->key, &t->list[i].row))
			t->list[kept++] = t->list[i];
	t->nr = kept;
}

static u64 whole_of(const struct top_rows *t, const struct report *r)
{
	u64 whole = 0;

	for (size_t i = 0; i < r->nr_processes; i++) {
		struct heap_totals totals = heap_totals(r->processes[i].heap);

		if (top_shows_process(r, &r->processes[i]))
			whole += t->key->is_of_live ? totals.live_bytes : totals.alloc_bytes;
	}
	return whole;
}

/* Where callers were folded, the rows have new numbers: nothing is known of them. */
static void forget_folded(struct top_rows *t, const struct report *r)
{
	u64 nr = 0;

	for (size_t i = 0; i < r->nr_processes; i++)
		nr += heap_folded(r->processes[i].heap).callers;
	if (nr == t->nr_folded)
		return;
	for (size_t i = 0; i < t->nr_known; i++)
		free(t->known[i].names);
	t->nr_known = t->nr = 0;
	hash_index_clear(&t->index);
	t->nr_folded = nr;
}

int top_rows_take(struct top_rows *t, const struct report *r, const char *filter, bool is_tick)
{
	struct rows_look look = { .report = r, .filter = filter, .is_tick = is_tick };
	int err;

	forget_folded(t, r);
	err = keep_rates(t, &look.old);
	t->nr = 0;
	t->key = NULL;
	t->is_scanned = false;
	for (size_t i = 0; i < r->nr_processes && !err; i++)
		if (top_shows_process(r, &r->processes[i]))
			err = top_rows_add_process(t, &look, &r->processes[i]);
	free(look.old.of);
	if (is_tick)
		t->tick_ns = r->time_ns;
	if (!t->key)
		return err;
	t->whole = whole_of(t, r);
	drop_empty(t);
	if (t->nr)
		qsort_r(t->list, t->nr, sizeof(*t->list), top_rows_compare_rows, (void *)t->key);
	return err;
}

size_t top_rows_find(const struct top_rows *t, const struct target *of, u32 id, size_t otherwise)
{
	for (size_t i = 0; i < t->nr; i++)
		if (t->list[i].of == of && t->list[i].row.id == id)
			return i;
	return otherwise;
}
