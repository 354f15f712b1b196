/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Free blocks of jemalloc that its extents call used: those in the caches of threads. */
#include <errno.h>
#include <stdlib.h>

#include "user/census/jemalloc.h"
#include "user/lib/array.h"
#include "user/lib/cleanup.h"

/*
 * A table is believed if the arrays of all small sizes follow on each other, and every block in them is a live block of
 * the size.
 */

enum {
	MAX_ENTRIES = 100, /* small and some large sizes */
	MAX_BETWEEN = 32,  /* words between the entries of small and of large sizes, before 5.3 */
};

/* Are the blocks of @c live blocks of the class @class? With @is_marking, they are marked. */
static bool take_blocks(struct jemalloc_books *j, const struct jemalloc_bin *c, u32 class, bool is_marking)
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

/* The number of entries at @words, of at most @nr words, from the class @class on. Their arrays follow on *@last. */
static u32 nr_entries(struct jemalloc_books *j, const u64 *words, size_t nr, u32 class, taddr_t *last)
{
	u32 n = 0, most = j->tree.layout->has_table || class ? MAX_ENTRIES : JEMALLOC_NR_SMALL;

	for (; n < most && (n + 1) * JEMALLOC_BIN_WORDS <= nr; n++) {
		struct jemalloc_bin c;

		if (!jemalloc_bin_read(&j->tree, words + n * JEMALLOC_BIN_WORDS, *last, &c) ||
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
		struct jemalloc_bin c;

		if (!jemalloc_bin_read(&j->tree, words + i * JEMALLOC_BIN_WORDS, 0, &c) ||
		    !take_blocks(j, &c, class + i, true))
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
	size_t size = (size_t)n * JEMALLOC_BIN_WORDS;

	if (n < JEMALLOC_NR_SMALL)
		return 0;
	mark_entries(j, words, n, 0);
	if (!j->tree.layout->has_table)
		mark_large(j, words + size, nr - size, last);
	return size;
}

static u32 jemalloc_cached_search_thread(struct jemalloc_books *j, taddr_t tp, u64 *words)
{
	taddr_t start;
	size_t nr = jemalloc_thread_words(&j->tree, tp, words, &start);
	u32 nr_tables = 0;

	for (size_t i = 0; i + (size_t)JEMALLOC_NR_SMALL * JEMALLOC_BIN_WORDS <= nr; i++) {
		size_t n = words[i] || words[i + 2] ? jemalloc_cached_mark_table(j, words + i, nr - i) : 0;

		nr_tables += n != 0;
		i += n ? n - 1 : 0;
	}
	return nr_tables;
}

int jemalloc_mark_cached(struct jemalloc_books *j)
{
	auto_free u64 *words = calloc(JEMALLOC_MAX_TLS, sizeof(*words));
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
