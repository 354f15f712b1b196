/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Any graph of blocks: the verdicts of a scan are those of a model that is too slow and too simple to be wrong (S1). */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tests/fuzz/replay.h"
#include "user/heap/heap.h"
#include "user/scan/scan.h"
#include "user/scan/snapshot_make.h"

enum {
	PAGE = 4096,
	MAX_BLOCKS = 24,
	BLOCK_WORDS = 4,
	BLOCK_BYTES = 8 * BLOCK_WORDS,
	NR_ROOTS = 8,
	NR_MAPS = 2
};

#define GLOBALS 0x10000000ULL
#define HEAP	0x20000000ULL

/* Blocks lie side by side, so that the end of one is the start of the next. */
struct graph {
	struct snapshot snap;
	struct snapshot_map maps[NR_MAPS];
	u64 words[NR_MAPS][PAGE / 8];
	size_t nr_blocks;
	size_t next; /* mapping to deliver */
	/* The model. */
	bool is_possible[MAX_BLOCKS], is_reachable[MAX_BLOCKS];
	bool leads[MAX_BLOCKS][MAX_BLOCKS]; /* along pointers to starts and middles */
};

static int graph_read(struct snapshot *s, const struct snapshot_visitor *v)
{
	struct graph *g = (struct graph *)s;
	int err = 0;

	for (u32 i = 0; !err && i < NR_MAPS; i++) {
		const struct snapshot_chunk chunk = {
			.addr = g->maps[i].start, .data = (const u8 *)g->words[i], .len = PAGE, .map = i
		};

		err = v->look(v->ctx, 0, &chunk);
		err = err ? err : v->done(v->ctx, 0);
	}
	return err;
}

static int graph_peek(struct snapshot *s, taddr_t addr, void *buf, size_t len)
{
	const struct graph *g = (const struct graph *)s;

	for (u32 i = 0; i < NR_MAPS; i++)
		if (addr >= g->maps[i].start && addr + len <= g->maps[i].end) {
			memcpy(buf, (const u8 *)g->words[i] + (addr - g->maps[i].start), len);
			return 0;
		}
	return -EIO;
}

static void nothing(struct snapshot *s)
{
	(void)s;
}

static const struct snapshot_ops ops = {
	.name = "graph", .read = graph_read, .peek = graph_peek, .resume = nothing, .free = nothing
};

static int each_block(const void *ctx, int (*visit)(void *, const struct heap_block *), void *visit_ctx)
{
	const struct graph *g = ctx;
	int err = 0;

	for (size_t i = g->nr_blocks; !err && i-- > 0;) {
		const struct heap_block b = { .addr = HEAP + BLOCK_BYTES * i,
					      .size = BLOCK_BYTES,
					      .time_ns = (i * 7 % MAX_BLOCKS) * 1000000 };

		err = visit(visit_ctx, &b);
	}
	return err;
}

/* The block that @word leads to, or -1; *@is_start: to its first byte. */
static int block_of(const struct graph *g, u64 word, bool *is_start)
{
	if (word < HEAP || word >= HEAP + BLOCK_BYTES * g->nr_blocks)
		return -1;
	*is_start = (word - HEAP) % BLOCK_BYTES == 0;
	return (int)((word - HEAP) / BLOCK_BYTES);
}

static bool reach(struct graph *g, u64 word, bool has_all_starts)
{
	bool is_start;
	int to = block_of(g, word, &is_start);
	bool changed;

	if (to < 0)
		return false;
	changed = !g->is_possible[to] || (has_all_starts && is_start && !g->is_reachable[to]);
	g->is_possible[to] = true;
	g->is_reachable[to] |= has_all_starts && is_start;
	return changed;
}

static void model(struct graph *g)
{
	bool changed = true, is_start;

	for (size_t i = 0; i < PAGE / 8; i++)
		reach(g, g->words[0][i], true);
	while (changed) {
		changed = false;
		for (size_t from = 0; from < g->nr_blocks; from++)
			for (size_t i = 0; g->is_possible[from] && i < BLOCK_WORDS; i++)
				changed |=
					reach(g, g->words[1][from * BLOCK_WORDS + i], g->is_reachable[from]);
	}
	for (size_t i = 0; i < g->nr_blocks * BLOCK_WORDS; i++) {
		int to = block_of(g, g->words[1][i], &is_start);

		if (to >= 0)
			g->leads[i / BLOCK_WORDS][to] = true;
	}
	for (size_t via = 0; via < g->nr_blocks; via++)
		for (size_t a = 0; a < g->nr_blocks; a++)
			for (size_t b = 0; b < g->nr_blocks; b++)
				g->leads[a][b] |= g->leads[a][via] && g->leads[via][b];
}

/* A lost block: the first of what leads to it, or behind such a one. */
static void check_lost(const struct graph *g, const struct scan *s, size_t i,
		       const struct scan_block_info *info)
{
	size_t leader = (size_t)(info->leader - HEAP) / BLOCK_BYTES;
	struct scan_block_info other;

	if (info->verdict == SCAN_INDIRECT) {
		if (info->leader < HEAP || leader >= g->nr_blocks || !g->leads[leader][i] ||
		    !scan_find(s, info->leader, &other) || other.verdict != SCAN_DEFINITE)
			abort();
		return;
	}
	if (info->verdict != SCAN_DEFINITE)
		abort();
	for (size_t k = 0; k < g->nr_blocks; k++) {
		/* Each that leads to it is in a cycle with it, and not definite. */
		if (k == i || g->is_possible[k] || !g->leads[k][i])
			continue;
		if (!g->leads[i][k] || !scan_find(s, HEAP + BLOCK_BYTES * k, &other) ||
		    other.verdict != SCAN_INDIRECT)
			abort();
	}
}

static void compare(const struct graph *g, const struct scan *s)
{
	struct scan_result r = scan_result(s);
	struct scan_block_info info;
	u64 sum = 0;

	for (size_t i = 0; i < g->nr_blocks; i++) {
		if (!scan_find(s, HEAP + BLOCK_BYTES * i, &info))
			abort();
		if (!g->is_possible[i])
			check_lost(g, s, i, &info);
		else if (info.verdict != (g->is_reachable[i] ? SCAN_REACHABLE : SCAN_POSSIBLE))
			abort();
	}
	for (int v = 0; v < NR_SCAN_VERDICTS; v++)
		sum += r.sums.of[v].blocks;
	if (sum != g->nr_blocks || !r.is_complete)
		abort();
}

/* Two bytes are a pointer: where it lies, and where it leads. */
static void build(struct graph *g, const uint8_t *data, size_t size)
{
	g->snap = (struct snapshot){
		.ops = &ops, .pid = 1, .word_size = 8, .maps = g->maps, .nr_maps = NR_MAPS
	};
	g->maps[0] = (struct snapshot_map){
		.start = GLOBALS, .end = GLOBALS + PAGE, .ino = 7, .path = (char *)(uintptr_t) "/x"
	};
	g->maps[1] = (struct snapshot_map){ .start = HEAP,
					    .end = HEAP + PAGE,
					    .path = (char *)(uintptr_t) "[heap]" };
	for (size_t i = 0; i < NR_MAPS; i++)
		g->maps[i].is_readable = g->maps[i].is_writable = true;
	g->nr_blocks = 1 + data[0] % MAX_BLOCKS;
	for (size_t i = 1; i + 1 < size; i += 2) {
		size_t from = data[i] % (NR_ROOTS + g->nr_blocks * BLOCK_WORDS);
		u64 to = HEAP + 4ULL * (data[i + 1] % (MAX_BLOCKS * BLOCK_BYTES / 4));

		if (from < NR_ROOTS)
			g->words[0][from] = to;
		else
			g->words[1][from - NR_ROOTS] = to;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct scan_options options = { .no_heuristics = SCAN_HEURISTICS };
	struct graph *g = size ? calloc(1, sizeof(*g)) : NULL;
	const struct scan_books books = { .ctx = g, .for_each = each_block };
	struct scan *s = NULL;

	if (!g)
		return 0;
	build(g, data, size);
	model(g);
	if (scan_new(&s, &books, &options) || scan_read(s, &g->snap) || scan_judge(s))
		abort();
	compare(g, s);
	scan_free(s);
	free(g);
	return 0;
}
