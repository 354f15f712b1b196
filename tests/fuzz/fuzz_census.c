/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Books of glibc's malloc in which any words are changed: the walk ends after a bounded number of reads, and what it
 * finds lies in the memory of the process, in order, and does not overlap (S1).
 */
#include "tests/fuzz/replay.h"
#include "tests/unit/glibc_heaps.h"

enum { PATCH = 4, MAX_READS = 4 << 20 };

/* Words that lead somewhere, or nearly. */
static u64 word_of(u8 which, u8 step)
{
	static const u64 bases[] = { 0,
				     FIRST,
				     ARENA,
				     SECOND,
				     THIRD,
				     MAIN,
				     LIBC,
				     ARENA + TOP,
				     ARENA + BINS,
				     CHUNK | 1,
				     SIZE | 1,
				     ~0ULL,
				     1ULL << 63,
				     1ULL << 31,
				     HEADER,
				     ARENA + ARENA_SIZE };

	return bases[which % ARRAY_SIZE(bases)] + (u64)(s64)(s8)step * 8;
}

static void patch(struct process *p, const uint8_t *data)
{
	struct region *r = &p->regions[data[0] % p->snap.nr_maps];
	const struct snapshot_map *map = &p->maps[r - p->regions];
	/* The beginnings of mappings have most of the books. */
	u64 at = (u64)(data[0] >> 4) * 0x400 + 8ULL * data[1], word = word_of(data[2], data[3]);

	if (r->bytes && at + sizeof(word) <= map->end - map->start)
		memcpy(r->bytes + at, &word, sizeof(word));
}

static void check(struct process *p)
{
	const struct census_blocks *found = &p->blocks;
	taddr_t end = 0;
	u64 nr_reads = 0;

	for (size_t i = 0; i < p->snap.nr_maps; i++)
		nr_reads += p->regions[i].nr_reads;
	if (nr_reads > MAX_READS)
		abort();
	for (size_t i = 0; i < found->nr; i++) {
		const struct census_block *b = &found->blocks[i];

		if (b->addr < end || !snapshot_map_find(&p->snap, b->addr))
			abort();
		end = b->addr + b->size;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct process *p = with_heaps(FIRST, SECOND, 3 * SIZE);

	for (size_t at = 0; at + PATCH <= size; at += PATCH)
		patch(p, data + at);
	if (walk(p, 0) == 0)
		check(p);
	process_free(p);
	return 0;
}
