/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Any program's calls, of which some events are lost, or arrive late: the books of the heap add up, seen and lost are
 * the true count, and a block that is not there any more is unsure (F1, B11).
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tests/fuzz/replay.h"
#include "user/heap/heap.h"

enum { NR_ADDRS = 16, NR_TIDS = 3, STEP = 3 };

/* The true counts, and those of lost events. */
struct truth {
	u64 size[NR_ADDRS], time_ns[NR_ADDRS];
	bool is_live[NR_ADDRS];
	u64 allocs, frees, lost_allocs, lost_frees;
	u64 time_ns_now;
};

struct seen {
	u64 blocks, bytes;
	const struct truth *truth;
	bool is_exact; /* no event came late */
};

static taddr_t addr_of(size_t i)
{
	return 0x1000 + 16 * i;
}

static int check_block(void *ctx, const struct heap_block *b)
{
	struct seen *seen = ctx;
	size_t i = (b->addr - 0x1000) / 16;

	seen->blocks++;
	seen->bytes += b->size;
	if (i >= NR_ADDRS)
		abort();
	if (seen->is_exact && !b->is_unsure && (!seen->truth->is_live[i] || seen->truth->size[i] != b->size))
		abort();
	return 0;
}

static void check(const struct heap *h, const struct truth *t, bool is_exact)
{
	struct seen seen = { .truth = t, .is_exact = is_exact };
	struct heap_totals sum = heap_totals(h);
	u64 live = 0, allocs = 0;

	(void)heap_for_each_block(h, check_block, &seen);
	for (u32 k = 0; k < heap_row_count(h); k++) {
		struct heap_row r = heap_row_get(h, k);

		live += r.live_bytes;
		allocs += r.allocs;
		if (r.live_blocks != r.allocs - r.frees)
			abort();
	}
	if (sum.live_blocks != seen.blocks || sum.live_bytes != seen.bytes || sum.live_bytes != live ||
	    sum.allocs != allocs || sum.live_blocks != sum.allocs - sum.frees)
		abort();
	/* An allocation at an address that was live stands for a free that was lost. */
	if (sum.allocs + t->lost_allocs != t->allocs ||
	    sum.frees - sum.collisions + sum.unknown_frees + t->lost_frees != t->frees)
		abort();
}

static struct heap_event next_event(struct truth *t, size_t i, u8 tid, u8 size)
{
	struct heap_event ev = { .h = { .tid = 1U + tid % NR_TIDS }, .addr = addr_of(i), .stack = 100 };

	t->time_ns_now += 1000000;
	ev.time_ns = t->time_ns_now;
	if (t->is_live[i]) {
		ev.h.kind = EVENT_FREE;
		ev.h.fn = alloc_fn_find(NULL, "free");
		t->frees++;
	} else {
		ev.h.kind = EVENT_ALLOC;
		ev.h.fn = alloc_fn_find(NULL, "malloc");
		ev.size = size;
		t->size[i] = size;
		t->allocs++;
	}
	t->is_live[i] = !t->is_live[i];
	return ev;
}

static void lose(struct heap *h, struct truth *t, const struct heap_event *ev)
{
	t->lost_allocs += ev->h.kind == EVENT_ALLOC;
	t->lost_frees += ev->h.kind == EVENT_FREE;
	heap_expect_gaps(h);
	if (ev->h.kind == EVENT_FREE)
		heap_taint(h);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct truth t = { 0 };
	struct heap_event late;
	bool has_late = false, is_exact = true;
	struct heap *h;

	if (heap_new(&h, NULL))
		return 0;
	for (size_t at = 0; at + STEP <= size; at += STEP) {
		struct heap_event ev = next_event(&t, data[at] % NR_ADDRS, data[at + 1], data[at + 2]);
		u8 how = data[at + 1] >> 5;

		if (how == 1) {
			lose(h, &t, &ev);
			continue;
		}
		/* One event is overtaken by the next one. */
		if (how == 2 && !has_late) {
			late = ev;
			has_late = true;
			is_exact = false;
			continue;
		}
		if (heap_event(h, &ev) || (has_late && heap_event(h, &late)))
			abort();
		has_late = false;
	}
	if (has_late && heap_event(h, &late))
		abort();
	check(h, &t, is_exact);
	heap_end(h);
	check(h, &t, is_exact);
	heap_free(h);
	return 0;
}
