/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Free blocks of jemalloc that its extents call used: those in the caches of threads. */
#include <errno.h>
#include <stdlib.h>

#include "user/census/jemalloc.h"
#include "user/lib/array.h"
#include "user/lib/cleanup.h"

/*
 * Thread-local data has a table with an entry of 24 bytes for each size class, beginning with the smallest. Each entry
 * leads to an array of blocks. All arrays lie one behind the other, in a block of jemalloc itself.
 *
 * 5.3: the address of the next block, a counter, then the lowest 16 bits of three addresses: low mark, first place,
 * end. Blocks lie from the next one to the end.
 * 5.0 to 5.2: the low mark and the number of blocks in 32 bits each, a counter, the address behind the array. The last
 * so many places before this address have blocks. Other fields lie between the entries of small and of large sizes.
 *
 * A table is believed if the arrays of all small sizes follow on each other, and every block in them is a live block of
 * the size.
 */

enum {
	ENTRY_WORDS = 3,
	MAX_ENTRIES = 100, /* small and some large sizes */
	MAX_BETWEEN = 32,  /* words between the entries of small and of large sizes, before 5.3 */
	TLS_BYTES = 32 << 10,
	MAX_ARRAY = 1 << 16, /* bytes */
	MAX_NR_CACHED = MAX_ARRAY / 8,
};

/* The blocks of one entry lie at [start, end); its array begins at floor. */
struct cached {
	taddr_t floor, start, end;
};

static bool read_entry_53(const u64 *words, struct cached *out)
{
	u16 low = (u16)words[2], full = (u16)(words[2] >> 16), empty = (u16)(words[2] >> 32),
	    head = (u16)words[0];
	u16 nr_bytes = (u16)(empty - head), size = (u16)(empty - full);

	*out = (struct cached){ .floor = words[0] + nr_bytes - size,
				.start = words[0],
				.end = words[0] + nr_bytes };
	return words[0] > MAX_ARRAY && (low | full | empty | head) % 8 == 0 && nr_bytes <= size;
}

static bool read_entry_50(const u64 *words, struct cached *out)
{
	s32 low = (s32)words[0], nr = (s32)(words[0] >> 32);

	*out = (struct cached){ .start = words[2] - 8 * (u64)(u32)nr, .end = words[2] };
	out->floor = out->start;
	return words[2] > MAX_ARRAY && words[2] % 8 == 0 && nr >= 0 && nr <= MAX_NR_CACHED && low >= -1 &&
	       low <= nr;
}

static bool read_entry(const struct jemalloc_books *j, const u64 *words, struct cached *out)
{
	return j->layout->has_table ? read_entry_53(words, out) : read_entry_50(words, out);
}

/* Are the blocks of @c live blocks of the class @class? With @is_marking, they are marked. */
static bool take_blocks(struct jemalloc_books *j, const struct cached *c, u32 class, bool is_marking)
{
	for (taddr_t at = c->start; at < c->end; at += 8) {
		struct census_block *block;
		u64 addr;

		if (!census_words(j->w, at, &addr, 1))
			return false;
		block = census_find(j->w->out, addr);
		if (!block || block->state != CENSUS_LIVE || block->size > jemalloc_class_bytes(class) ||
		    block->size <= (class ? jemalloc_class_bytes(class - 1) : 0))
			return false;
		if (is_marking)
			block->state = CENSUS_CACHED;
	}
	return true;
}

/*
 * May the array of @c follow on arrays that end at @last? Those of sizes that are not cached lie before, and are
 * empty.
 */
static bool jemalloc_cached_follows(const struct jemalloc_books *j, const struct cached *c, taddr_t last)
{
	if (!j->layout->has_table)
		return c->end > last && c->floor >= last;
	return c->floor == last || (c->floor == c->end && c->end < last && last - c->end <= MAX_ARRAY);
}

/* The number of entries at @words, of at most @nr words, from the class @class on. Their arrays follow on *@last. */
static u32 nr_entries(struct jemalloc_books *j, const u64 *words, size_t nr, u32 class, taddr_t *last)
{
	u32 n = 0, most = j->layout->has_table || class ? MAX_ENTRIES : JEMALLOC_NR_SMALL;

	for (; n < most && (n + 1) * ENTRY_WORDS <= nr; n++) {
		struct cached c;

		if (!read_entry(j, words + n * ENTRY_WORDS, &c) ||
		    (*last && !jemalloc_cached_follows(j, &c, *last)) ||
		    !take_blocks(j, &c, class + n, false))
			break;
		*last = c.end > *last ? c.end : *last;
	}
	return n;
}

/* The array lies in a block that no program has asked for. */
static void mark_own(struct jemalloc_books *j, taddr_t addr)
{
	const struct census_blocks *out = j->w->out;
	size_t at = array_search(i, 0, out->nr, out->blocks[i].addr <= addr);
	struct census_block *block = at ? &out->blocks[at - 1] : NULL;

	if (block && addr - block->addr <= block->size && block->state == CENSUS_LIVE)
		block->state = CENSUS_OWN;
}

static void mark_entries(struct jemalloc_books *j, const u64 *words, u32 nr, u32 class)
{
	for (u32 i = 0; i < nr; i++) {
		struct cached c;

		if (!read_entry(j, words + i * ENTRY_WORDS, &c) || !take_blocks(j, &c, class + i, true))
			census_note(j->w->out, c.start, "the cache of a thread at 0x%llx lists a block twice",
				    (unsigned long long)c.start);
		if (class + i == 0)
			mark_own(j, c.end - 8);
	}
}

/* Mark the blocks of large sizes, whose entries lie somewhere behind those of the small ones, at @words. */
static void mark_large(struct jemalloc_books *j, const u64 *words, size_t nr, taddr_t small_end)
{
	size_t best = 0;
	u32 most = 0;

	for (size_t at = 0; at < MAX_BETWEEN && at < nr; at++) {
		taddr_t last = small_end;
		u32 n = nr_entries(j, words + at, nr - at, JEMALLOC_NR_SMALL, &last);

		if (n > most) {
			most = n;
			best = at;
		}
	}
	mark_entries(j, words + best, most, JEMALLOC_NR_SMALL);
}

/* Mark the table at @words, of at most @nr words. Returns its words; 0 = none is there. */
static size_t jemalloc_cached_mark_table(struct jemalloc_books *j, const u64 *words, size_t nr)
{
	taddr_t last = 0;
	u32 n = nr_entries(j, words, nr, 0, &last);
	size_t size = (size_t)n * ENTRY_WORDS;

	if (n < JEMALLOC_NR_SMALL)
		return 0;
	mark_entries(j, words, n, 0);
	if (!j->layout->has_table)
		mark_large(j, words + size, nr - size, last);
	return size;
}

/* Thread-local data lies next to the thread pointer: below it on x86_64, above it on aarch64. */
static u32 jemalloc_cached_search_thread(struct jemalloc_books *j, taddr_t tp, u64 *words)
{
	const struct snapshot_map *map = tp ? snapshot_map_find(j->w->snap, tp) : NULL;
	taddr_t start, end;
	u32 nr_tables = 0;

	if (!map)
		return 0;
	start = tp - map->start > TLS_BYTES ? (tp & ~(taddr_t)7) - TLS_BYTES : map->start;
	end = map->end - tp > TLS_BYTES ? tp + TLS_BYTES : map->end;
	census_copy_data(j->w, start, (u8 *)words, end - start);
	for (size_t i = 0; i + (size_t)JEMALLOC_NR_SMALL * ENTRY_WORDS <= (end - start) / 8; i++) {
		size_t n = words[i] || words[i + 2]
				   ? jemalloc_cached_mark_table(j, words + i, (end - start) / 8 - i)
				   : 0;

		nr_tables += n != 0;
		i += n ? n - 1 : 0;
	}
	return nr_tables;
}

int jemalloc_mark_cached(struct jemalloc_books *j)
{
	auto_free u64 *words = calloc(2 * TLS_BYTES / 8 + 1, sizeof(*words));
	u32 nr_tables = 0;
	int err = words ? 0 : -ENOMEM;

	for (size_t i = 0; i < j->w->snap->nr_threads && !err; i++) {
		nr_tables += jemalloc_cached_search_thread(j, j->w->snap->threads[i].tp, words);
		err = census_check_time(j->w);
	}
	if (!err && !nr_tables && j->w->out->nr)
		census_note(j->w->out, 0, "no cache of a thread was found: blocks in it would count as live");
	return err;
}
