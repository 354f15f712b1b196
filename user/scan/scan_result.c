/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The results of a scan for reports: by block, by caller, by leader. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "user/heap/heap.h"
#include "user/heap/heap_sample.h"
#include "user/lib/array.h"
#include "user/scan/scan_parts.h"

const char *scan_verdict_name(enum scan_verdict verdict)
{
	static const char *const names[] = {
		[SCAN_NONE] = "none",	      [SCAN_REACHABLE] = "reachable", [SCAN_POSSIBLE] = "possible",
		[SCAN_DEFINITE] = "definite", [SCAN_INDIRECT] = "indirect",   [SCAN_UNSURE] = "unsure",
	};

	_Static_assert(ARRAY_SIZE(names) == NR_SCAN_VERDICTS, "one name each");
	return verdict < NR_SCAN_VERDICTS ? names[verdict] : "none";
}

struct scan_result scan_result(const struct scan *s)
{
	return s->result;
}

u32 scan_count(const struct scan *s)
{
	return s->nr;
}

u64 scan_memory(const struct scan *s)
{
	return s->nr * sizeof(*s->blocks) + s->nr_big * sizeof(*s->big) + s->nr_spans * sizeof(*s->spans) +
	       s->nr_buckets * sizeof(*s->buckets) + s->nr_drained * sizeof(*s->drained) +
	       edges_memory(&s->edges) + s->roots.capacity;
}

void scan_at(const struct scan *s, u32 block, struct scan_block_info *out)
{
	const struct scan_block *b = &s->blocks[block];

	memset(out, 0, sizeof(*out));
	out->addr = b->addr;
	out->index = block;
	out->size = scan_block_size(s, block);
	out->verdict = b->verdict;
	if (b->verdict >= SCAN_DEFINITE && b->link < s->nr)
		out->leader = s->blocks[b->link].addr;
}

bool scan_find(const struct scan *s, taddr_t addr, struct scan_block_info *out)
{
	u32 i = scan_find_start(s, addr);

	if (i == BLOCK_NONE)
		return false;
	scan_at(s, i, out);
	return true;
}

bool scan_find_around(const struct scan *s, taddr_t addr, struct scan_block_info *out)
{
	u32 i = s->nr && !(addr >> 56) ? scan_lookup(s, addr) : BLOCK_NONE;

	if (i == BLOCK_NONE)
		return false;
	scan_at(s, i, out);
	return true;
}

int scan_for_each(const struct scan *s, int (*visit)(void *ctx, const struct scan_block_info *info),
		  void *ctx)
{
	for (u32 i = 0; i < s->nr; i++) {
		struct scan_block_info info;
		int err;

		scan_at(s, i, &info);
		err = visit(ctx, &info);
		if (err)
			return err;
	}
	return 0;
}

/* The leader at @addr in @leaders, which are by address. */
static struct scan_block_info *scan_result_leader_of(struct scan_block_info *leaders, size_t nr, taddr_t addr)
{
	return &leaders[array_search(i, 0, nr, leaders[i].addr < addr)];
}

int scan_leaders(const struct scan *s, struct scan_block_info **out, size_t *nr)
{
	size_t count = s->result.sums.of[SCAN_DEFINITE].blocks, at = 0;
	struct scan_block_info *leaders = calloc(count ? count : 1, sizeof(*leaders));

	if (!leaders)
		return -ENOMEM;
	for (u32 i = 0; i < s->nr; i++)
		if (s->blocks[i].verdict == SCAN_DEFINITE && !parts_has(s, i))
			scan_at(s, i, &leaders[at++]);
	for (u32 i = 0; i < s->nr; i++) {
		const struct scan_block *b = &s->blocks[i];
		struct scan_block_info *leader;

		if (b->verdict == SCAN_DEFINITE && parts_has(s, i))
			scan_result_leader_of(leaders, count, s->blocks[parts_first(s, i)].addr)->size +=
				scan_block_size(s, i);
		if (b->verdict != SCAN_INDIRECT || parts_has(s, b->link))
			continue;
		leader = scan_result_leader_of(leaders, count, s->blocks[b->link].addr);
		leader->indirect_blocks += !parts_has(s, i);
		leader->indirect_bytes += scan_block_size(s, i);
	}
	*out = leaders;
	*nr = count;
	return 0;
}

enum { ROW_BATCH = 64 };

/* Blocks are looked up in batches, so that cache misses overlap. */
struct row_sums {
	const struct scan *s;
	struct scan_sums *rows;
	size_t nr_rows;
	struct heap_block batch[ROW_BATCH];
	size_t nr;
};

static void add_batch(struct row_sums *sums)
{
	const struct scan *s = sums->s;

	for (size_t i = 0; i < sums->nr; i++) {
		const struct scan_span *span = scan_span_find(s, sums->batch[i].addr);

		if (span)
			__builtin_prefetch(&s->buckets[scan_bucket(span, sums->batch[i].addr)]);
	}
	for (size_t i = 0; i < sums->nr; i++) {
		const struct heap_block *block = &sums->batch[i];
		struct heap_worth worth = { 1, block->size };
		u32 found = scan_find_start(s, block->addr);
		struct scan_sum *sum;

		if (found == BLOCK_NONE || block->row >= sums->nr_rows)
			continue;
		sum = &sums->rows[block->row].of[s->blocks[found].verdict];
		if (HAS_SAMPLES && s->books.worth)
			worth = s->books.worth(s->books.ctx, block);
		sum->blocks += parts_has(s, found) ? 0 : worth.nr;
		sum->bytes += worth.bytes;
	}
	sums->nr = 0;
}

static int add_to_row(void *ctx, const struct heap_block *block)
{
	struct row_sums *sums = ctx;

	sums->batch[sums->nr++] = *block;
	if (sums->nr == ROW_BATCH)
		add_batch(sums);
	return 0;
}

int scan_rows(const struct scan *s, struct scan_sums *rows, size_t nr)
{
	struct row_sums sums = { .s = s, .rows = rows, .nr_rows = nr };
	int err;

	memset(rows, 0, nr * sizeof(*rows));
	err = s->books.for_each(s->books.ctx, add_to_row, &sums);
	add_batch(&sums);
	return err;
}
