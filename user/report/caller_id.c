/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Computes the ids of callers from their frames, and gives equal ids other values in an order that runs share. */
#include "user/report/caller_id.h"

#include <endian.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "user/heap/stacks.h"
#include "user/lib/cleanup.h"
#include "user/lib/hash.h"
#include "user/report/report_rows.h"

/* The id that a row would like to have. */
struct wish {
	u64 id;
	u64 tie; /* another hash, with the paths of files: orders equal ids */
	u32 row;
};

static u64 hash_text(const char *text, u64 seed)
{
	return hash_bytes(text, strlen(text), seed);
}

/* Two files may have one build ID: paths are in @tie only. */
static void caller_id_add_frame(struct wish *w, const struct report *r, struct code_ref ref)
{
	const struct module *m = module_get(r->modules, ref.module);
	const u64 offset = htole64(ref.offset);

	if (m && m->build_id_len)
		w->id = hash_bytes(m->build_id, m->build_id_len, w->id);
	else if (m)
		w->id = hash_text(m->path, w->id);
	if (m)
		w->tie = hash_text(m->path, w->tie);
	w->id = hash_bytes(&offset, sizeof(offset), w->id);
	w->tie = hash_bytes(&offset, sizeof(offset), w->tie);
}

static struct wish wish_of(const struct report *r, const struct report_process *p, u32 row)
{
	const struct report_row of = { .row = heap_row_get(p->heap, row) };
	const char *truncated;
	const struct stack *s = report_stack(p, &of, &truncated);
	struct wish w = { .row = row };

	w.id = hash_text(alloc_fn(heap_functions(p->heap), of.row.fn)->name, 0);
	if (truncated)
		w.id = hash_text(truncated, w.id);
	for (size_t i = 0; s && i < s->nr_frames; i++)
		caller_id_add_frame(&w, r, s->frames[i]);
	w.id >>= 1; /* there is room above the largest one */
	return w;
}

static int caller_id_compare(const void *pa, const void *pb)
{
	const struct wish *a = pa, *b = pb;

	if (a->id != b->id)
		return a->id < b->id ? -1 : 1;
	if (a->tie != b->tie)
		return a->tie < b->tie ? -1 : 1;
	return (a->row > b->row) - (a->row < b->row);
}

/* Give each wish the first id that is free, in the order of ids. */
static void caller_id_grant(struct caller_ids *ids, const struct wish *wishes)
{
	u64 next = 0;

	for (size_t i = 0; i < ids->nr; i++) {
		u64 id = wishes[i].id < next ? next : wishes[i].id;

		ids->nr_changed += id != wishes[i].id;
		ids->list[wishes[i].row] = id;
		next = id + 1;
	}
}

int caller_ids_init(struct caller_ids *ids, const struct report *r, const struct report_process *p)
{
	size_t nr = heap_row_count(p->heap);
	auto_free struct wish *wishes = calloc(nr + 1, sizeof(*wishes));
	auto_free u64 *list = calloc(nr + 1, sizeof(*list));

	*ids = (struct caller_ids){ .list = NULL };
	if (!wishes || !list)
		return -ENOMEM;
	for (size_t i = 0; i < nr; i++)
		wishes[i] = wish_of(r, p, (u32)i);
	qsort(wishes, nr, sizeof(*wishes), caller_id_compare);
	ids->list = take_ptr(list);
	ids->nr = nr;
	caller_id_grant(ids, wishes);
	return 0;
}

void caller_ids_fini(struct caller_ids *ids)
{
	free(ids->list);
	*ids = (struct caller_ids){ .list = NULL };
}

u64 caller_id(const struct caller_ids *ids, u32 row)
{
	return row < ids->nr ? ids->list[row] : 0;
}

void caller_id_text(const struct caller_ids *ids, u32 row, char text[CALLER_ID_TEXT])
{
	snprintf(text, CALLER_ID_TEXT, "%016" PRIx64, caller_id(ids, row));
}
