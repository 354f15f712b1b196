/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Chooses leaked blocks to show, and reads what is in them. */
#include "user/scan/leaks_samples.h"

#include <stdlib.h>

#include "user/lib/array.h"
#include "user/scan/leaks.h"

/* All leaked blocks come first, and most of them go again: a program may have leaked millions. */
enum { SAMPLES_PLENTY = 1 << 16 };

struct sampling {
	struct leak_samples *samples;
	const struct leak_blocks *blocks;
	u32 nr_each;
	size_t max;
};

static int sample_compare(const void *pa, const void *pb)
{
	const struct leak_sample *a = pa, *b = pb;

	if (a->block.row != b->block.row)
		return a->block.row < b->block.row ? -1 : 1;
	if (a->block.size != b->block.size)
		return a->block.size < b->block.size ? 1 : -1;
	return (a->block.addr > b->block.addr) - (a->block.addr < b->block.addr);
}

/* Keep the first of each caller. */
static void samples_thin(struct leak_samples *s, u32 nr_each)
{
	size_t kept = 0, nr_row = 0;

	if (s->nr)
		qsort(s->list, s->nr, sizeof(*s->list), sample_compare);
	for (size_t i = 0; i < s->nr; i++) {
		nr_row = i && s->list[i].block.row == s->list[i - 1].block.row ? nr_row + 1 : 1;
		if (nr_row <= nr_each)
			s->list[kept++] = s->list[i];
	}
	s->nr = kept;
}

static int sample_block(void *ctx, const struct heap_block *block)
{
	struct sampling *sg = ctx;
	struct leak_samples *s = sg->samples;
	enum scan_verdict verdict = leak_blocks_find(sg->blocks, block);
	int err;

	if (verdict != SCAN_DEFINITE && verdict != SCAN_INDIRECT && verdict != SCAN_POSSIBLE)
		return 0;
	if (s->nr == sg->max && s->nr >= SAMPLES_PLENTY)
		samples_thin(s, sg->nr_each);
	err = array_reserve(s->list, sg->max, s->nr + 1);
	if (!err)
		s->list[s->nr++] = (struct leak_sample){ .block = *block, .verdict = verdict };
	return err;
}

/* Read the contents of @sample. Memory that is gone or that there is no room for is left out. */
static void sample_read(struct leak_sample *sample, u64 max, struct snapshot *snap)
{
	size_t len = sample->block.size < max ? sample->block.size : max;

	sample->bytes = len ? malloc(len) : NULL;
	if (!sample->bytes)
		return;
	if (!snapshot_fetch(snap, sample->block.addr, sample->bytes, len)) {
		sample->nr_bytes = (u32)len;
		return;
	}
	free(sample->bytes);
	sample->bytes = NULL;
}

int leak_samples_init(struct leak_samples *s, const struct leaks *l, const struct leaks_options *o,
		      struct snapshot *snap)
{
	struct sampling sg = { .samples = s, .blocks = &l->blocks, .nr_each = o->nr_samples };
	int err;

	*s = (struct leak_samples){ .list = NULL };
	if (!o->nr_samples)
		return 0;
	err = heap_for_each_block(o->heap, sample_block, &sg);
	if (err) {
		leak_samples_fini(s);
		return err;
	}
	samples_thin(s, o->nr_samples);
	for (size_t i = 0; snap && o->content_bytes && i < s->nr; i++)
		sample_read(&s->list[i], o->content_bytes, snap);
	return 0;
}

void leak_samples_fini(struct leak_samples *s)
{
	for (size_t i = 0; i < s->nr; i++)
		free(s->list[i].bytes);
	free(s->list);
	*s = (struct leak_samples){ .list = NULL };
}
