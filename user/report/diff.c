/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Puts two JSON reports into one table of callers. Callers are equal if the names of all their frames are equal. */
#include "user/report/diff.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "user/lib/array.h"
#include "user/lib/cleanup.h"
#include "user/lib/hash.h"
#include "user/lib/hash_index.h"
#include "user/lib/random.h"

enum { MAX_ROWS = 1 << 22 };

struct diff {
	struct diff_row *rows; /* owned */
	size_t nr, max;
	struct hash_index by_names; /* rows by function and frames */
	u64 seed;		    /* random, so that a report cannot choose names whose hashes are equal */
	const struct diff_row **sorted; /* owned */
	struct saved_totals totals[2];
};

/* The side that is being read. */
struct side {
	struct diff *diff;
	u32 number;
};

int diff_new(struct diff **out)
{
	struct diff *d = calloc(1, sizeof(*d));

	if (!d)
		return -ENOMEM;
	if (random_fill(&d->seed, sizeof(d->seed)))
		d->seed = (uintptr_t)d;
	*out = d;
	return 0;
}

void diff_free(struct diff *d)
{
	if (!d)
		return;
	for (size_t i = 0; i < d->nr; i++) {
		free(d->rows[i].function);
		free(d->rows[i].frames);
		free(d->rows[i].place);
	}
	free(d->rows);
	hash_index_fini(&d->by_names);
	free(d->sorted);
	free(d);
}

static u64 diff_hash_of(const struct diff *d, const char *function, const char *frames)
{
	return hash_bytes(frames, strlen(frames), hash_bytes(function, strlen(function), d->seed));
}

/* The row with these names and this @hash of them, or NULL. */
static struct diff_row *diff_find_row(const struct diff *d, u64 hash, const char *function,
				      const char *frames)
{
	u32 item, at = 0;

	while ((item = hash_index_next(&d->by_names, hash, &at)) != HASH_NO_ITEM) {
		struct diff_row *row = &d->rows[item];

		if (!strcmp(row->frames, frames) && !strcmp(row->function, function))
			return row;
	}
	return NULL;
}

/* Add a row without numbers to *@out. 0 or -ENOMEM. */
static int new_row(struct diff *d, u64 hash, const struct saved_caller *c, struct diff_row **out)
{
	auto_free char *function = strdup(c->function), *frames = strdup(c->frames);

	if (!function || !frames || d->nr == MAX_ROWS || array_reserve(d->rows, d->max, d->nr + 1) ||
	    hash_index_add(&d->by_names, hash, (u32)d->nr))
		return -ENOMEM;
	*out = &d->rows[d->nr++];
	**out = (struct diff_row){ .function = take_ptr(function), .frames = take_ptr(frames) };
	return 0;
}

static int diff_add_caller(void *ctx, const struct saved_process *p, const struct saved_caller *c)
{
	const struct side *s = ctx;
	struct diff *d = s->diff;
	u64 hash = diff_hash_of(d, c->function, c->frames);
	struct diff_row *row = diff_find_row(d, hash, c->function, c->frames);
	int err = row ? 0 : new_row(d, hash, c, &row);

	(void)p;
	if (!err && *c->place && s->number) {
		free(row->place);
		row->place = NULL;
	}
	if (!err && *c->place && !row->place) {
		row->place = strdup(c->place);
		err = row->place ? 0 : -ENOMEM;
	}
	if (!err)
		saved_add(&row->of[s->number], &c->numbers);
	return err;
}

int diff_add(struct diff *d, u32 side, const char *text, size_t len, const char **why, size_t *at)
{
	struct side s = { d, side };
	const struct saved_sink sink = { &s, diff_add_caller, NULL };

	return saved_read(text, len, &sink, &d->totals[side], why, at);
}

int diff_all(const struct diff *d, const struct diff_row ***rows, size_t *nr)
{
	*rows = calloc(d->nr + 1, sizeof(**rows));
	if (!*rows)
		return -ENOMEM;
	for (size_t i = 0; i < d->nr; i++)
		(*rows)[i] = &d->rows[i];
	*nr = d->nr;
	return 0;
}

struct diff_sums diff_sums(const struct diff *d)
{
	const struct saved_numbers *a = &d->totals[0].numbers, *b = &d->totals[1].numbers;
	double change = (double)b->live_bytes - (double)a->live_bytes, variance = a->variance + b->variance;

	return (struct diff_sums){ .live_bytes = (s64)(b->live_bytes - a->live_bytes),
				   .leaked_bytes = (s64)(b->leaked_bytes - a->leaked_bytes),
				   .leaked_blocks = (s64)(b->leaked_blocks - a->leaked_blocks),
				   .definite_bytes = (s64)(b->definite_bytes - a->definite_bytes),
				   .definite_blocks = (s64)(b->definite_blocks - a->definite_blocks),
				   .has_leaks = d->totals[0].nr_scanned && d->totals[1].nr_scanned,
				   .is_estimate = variance > 0,
				   .is_noise = change * change < 1.96 * 1.96 * variance };
}

struct saved_totals diff_totals(const struct diff *d, u32 side)
{
	return d->totals[side];
}

static const struct {
	const char *name;
	size_t at;
} keys[NR_DIFF_KEYS] = {
	[DIFF_LIVE_BYTES] = { "live-bytes", offsetof(struct saved_numbers, live_bytes) },
	[DIFF_LIVE_BLOCKS] = { "live-blocks", offsetof(struct saved_numbers, live_blocks) },
	[DIFF_TOTAL_BYTES] = { "total-bytes", offsetof(struct saved_numbers, alloc_bytes) },
	[DIFF_TOTAL_BLOCKS] = { "total-blocks", offsetof(struct saved_numbers, allocs) },
	[DIFF_LEAKED_BYTES] = { "leaked-bytes", offsetof(struct saved_numbers, leaked_bytes) },
	[DIFF_PEAK] = { "peak", offsetof(struct saved_numbers, peak_bytes) },
	[DIFF_LOST_BYTES] = { "", offsetof(struct saved_numbers, lost_bytes) },
};

enum diff_key diff_key_find(const char *name)
{
	u32 key = 0;

	while (key < NR_DIFF_KEYS && strcmp(keys[key].name, name))
		key++;
	return key;
}

s64 diff_change(const struct diff_row *row, enum diff_key key)
{
	u64 before = *(const u64 *)((const char *)&row->of[0] + keys[key].at);
	u64 after = *(const u64 *)((const char *)&row->of[1] + keys[key].at);

	return (s64)(after - before);
}

static int diff_compare(const void *a, const void *b, void *key)
{
	const struct diff_row *x = *(const struct diff_row *const *)a,
			      *y = *(const struct diff_row *const *)b;
	s64 cx = diff_change(x, *(enum diff_key *)key), cy = diff_change(y, *(enum diff_key *)key);
	int order = (cx < cy) - (cx > cy);

	/* Names decide among equals, so that two runs give one order. */
	if (!order)
		order = strcmp(x->frames, y->frames);
	return order ? order : strcmp(x->function, y->function);
}

const struct diff_row *const *diff_rows(struct diff *d, enum diff_key key, size_t *nr)
{
	const struct diff_row **list = reallocarray(d->sorted, d->nr + 1, sizeof(*list));

	*nr = 0;
	if (!list)
		return d->sorted;
	d->sorted = list;
	for (size_t i = 0; i < d->nr; i++)
		if (diff_change(&d->rows[i], key))
			list[(*nr)++] = &d->rows[i];
	qsort_r(list, *nr, sizeof(*list), diff_compare, &key);
	return list;
}

enum diff_key diff_key_for(struct diff *d, enum diff_key key)
{
	size_t nr;

	diff_rows(d, key, &nr);
	if (nr || key != DIFF_LIVE_BYTES)
		return key;
	diff_rows(d, DIFF_LIVE_BLOCKS, &nr);
	return nr ? DIFF_LIVE_BLOCKS : DIFF_TOTAL_BYTES;
}
