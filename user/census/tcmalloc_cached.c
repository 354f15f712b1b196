/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Free blocks of tcmalloc that its spans call used: those in the caches of threads, and in the central lists. */
#include <errno.h>
#include <string.h>

#include "user/census/tcmalloc.h"
#include "user/lib/array.h"

/*
 * The cache of a thread begins with an entry of 32 bytes for each size class: the first free block, four numbers of
 * 32 bits, of which the first is the length of the list, and the size. The first class has the size 0, and the last one
 * 256 KiB. Behind all entries are the addresses of the next and the last cache.
 *
 * Central lists are one behind the other in the data, by class. Each has a lock, the class, two heads of lists of
 * spans, two numbers, and 64 places for lists of blocks with their first and last one; then the number of places in
 * use.
 */

enum {
	ENTRY_WORDS = 4,
	MIN_CLASSES = 20,
	MAX_BLOCK = 256 << 10,
	MAX_CACHES = 1 << 14,
	TLS_BYTES = 32 << 10,
	BEHIND_WORDS = 64, /* behind the entries, that may have addresses of caches */
	CHECK_EVERY = 4096,
	PAGE_WORDS = TCMALLOC_PAGE / 8,
};

/* Places of fields in a central list, in bytes. */
enum {
	CENTRAL_CLASS = 8,
	CENTRAL_EMPTY = 16, /* a span that leads to itself, or to others */
	CENTRAL_FILLED = 64,
	CENTRAL_PLACES = 128,
	CENTRAL_NR = CENTRAL_PLACES + 64 * 16,
	CENTRAL_BYTES = 1216, /* with padding */
	CENTRAL_MORE = 128,   /* padding that other builds may have */
	MAX_PLACES = 64,
	SPAN_NEXT = 16,
	SPAN_PREVIOUS = 24,
};

struct tcmalloc_list {
	taddr_t first;
	u32 length, size;
};

static bool tcmalloc_cached_read_entry(const struct tcmalloc *t, taddr_t cache, u32 class,
				       struct tcmalloc_list *out)
{
	u64 words[ENTRY_WORDS];

	if (!census_words(t->w, cache + (taddr_t) class * sizeof(words), words, ENTRY_WORDS))
		return false;
	*out = (struct tcmalloc_list){ words[0], (u32)words[1], (u32)words[3] };
	return !words[0] == !out->length;
}

/* Is a cache at @addr? Its classes must be those of the caches before. */
static bool is_cache(struct tcmalloc *t, taddr_t addr)
{
	const struct snapshot_map *map = addr % 8 ? NULL : snapshot_map_find(t->w->snap, addr);
	u32 sizes[TCMALLOC_MAX_CLASSES] = { 0 }, nr = 1;
	struct tcmalloc_list e;

	if (!map || !census_is_anonymous(map) || !tcmalloc_cached_read_entry(t, addr, 0, &e) || e.size ||
	    e.first)
		return false;
	for (; nr < TCMALLOC_MAX_CLASSES && sizes[nr - 1] < MAX_BLOCK; nr++) {
		if (!tcmalloc_cached_read_entry(t, addr, nr, &e) || e.size % 8 || e.size <= sizes[nr - 1] ||
		    (t->nr_classes && e.size != t->sizes[nr]))
			return false;
		sizes[nr] = e.size;
	}
	if (nr < MIN_CLASSES || sizes[nr - 1] != MAX_BLOCK)
		return false;
	memcpy(t->sizes, sizes, sizeof(sizes));
	t->nr_classes = nr;
	return true;
}

static int add_cache(struct tcmalloc *t, taddr_t addr)
{
	int err;

	for (size_t i = 0; i < t->nr_caches; i++)
		if (t->caches[i] == addr)
			return 0;
	if (t->nr_caches >= MAX_CACHES || !is_cache(t, addr))
		return 0;
	err = array_reserve(t->caches, t->max_caches, t->nr_caches + 1);
	if (!err)
		t->caches[t->nr_caches++] = addr;
	return err;
}

/* Look at the words of [@start, @end) for addresses of caches. */
static int caches_in(struct tcmalloc *t, taddr_t start, taddr_t end)
{
	int err = 0;

	for (taddr_t at = start & ~(taddr_t)7; at < end && !err;) {
		u64 words[PAGE_WORDS];
		size_t nr = tcmalloc_read_words(t, at, words);

		for (size_t i = 0; i < nr && at + i * 8 < end && !err; i++)
			if (words[i] && words[i] >> TCMALLOC_ADDRESS_BITS == 0)
				err = add_cache(t, words[i]);
		at += nr * 8;
	}
	return err;
}

int tcmalloc_find_caches(struct tcmalloc *t)
{
	const struct snapshot *snap = t->w->snap;
	int err = caches_in(t, t->data_start, t->data_end);

	for (size_t i = 0; i < snap->nr_threads && !err; i++) {
		taddr_t tp = snap->threads[i].tp;
		const struct snapshot_map *map = tp ? snapshot_map_find(snap, tp) : NULL;

		if (map)
			err = caches_in(t, tp - map->start > TLS_BYTES ? tp - TLS_BYTES : map->start,
					map->end - tp > TLS_BYTES ? tp + TLS_BYTES : map->end);
	}
	/* Each leads to others, which are added behind it. */
	for (size_t i = 0; i < t->nr_caches && !err; i++) {
		taddr_t behind = t->caches[i] + (taddr_t)TCMALLOC_MAX_CLASSES * ENTRY_WORDS * 8;

		err = caches_in(t, behind, behind + BEHIND_WORDS * 8);
	}
	return err ? err : t->nr_caches ? 0 : -ENOENT;
}

/* Mark the list of blocks of @class from @at on, at most @nr. Returns how many there were, or -ETIME. */
static s64 tcmalloc_cached_mark_list(struct tcmalloc *t, taddr_t at, u32 class, u64 nr,
				     enum census_state state)
{
	u64 n = 0;

	for (; at && n < nr; n++) {
		struct census_block *block = census_find(t->w->out, at);

		if (!block || block->state != CENSUS_LIVE || block->size != t->sizes[class] ||
		    !census_words(t->w, at, &at, 1))
			break;
		block->state = state;
		if (n % CHECK_EVERY == CHECK_EVERY - 1 && census_check_time(t->w))
			return -ETIME;
	}
	return (s64)n;
}

static int mark_cache(struct tcmalloc *t, taddr_t cache)
{
	for (u32 class = 1; class < t->nr_classes; class ++) {
		struct tcmalloc_list e;
		s64 nr;

		if (!tcmalloc_cached_read_entry(t, cache, class, &e))
			e = (struct tcmalloc_list){ 0 };
		nr = tcmalloc_cached_mark_list(t, e.first, class, e.length, CENSUS_CACHED);
		if (nr < 0)
			return (int)nr;
		if (nr != e.length)
			census_note(t->w->out, e.first,
				    "the cache of a thread at 0x%llx has something else in a list",
				    (unsigned long long)cache);
	}
	return 0;
}

/* Are the two words at @at, next and previous, those of a head of a list at @head? */
static bool is_head(const struct tcmalloc *t, taddr_t head)
{
	u64 links[2], back[2];

	return census_words(t->w, head + SPAN_NEXT, links, 2) &&
	       census_words(t->w, links[0] + SPAN_NEXT, back, 2) && back[1] == head &&
	       census_words(t->w, links[1] + SPAN_NEXT, back, 2) && back[0] == head;
}

static bool is_central(const struct tcmalloc *t, taddr_t at, u32 class)
{
	u64 number;

	return census_words(t->w, at + CENTRAL_CLASS, &number, 1) && number == class &&
	       is_head(t, at + CENTRAL_EMPTY) && is_head(t, at + CENTRAL_FILLED);
}

/* Bytes from the central list of the first class at @at to the next one; 0 = none is there. */
static u64 central_step(const struct tcmalloc *t, taddr_t at)
{
	if (!is_central(t, at, 1))
		return 0;
	for (u64 step = CENTRAL_NR; step <= CENTRAL_BYTES + CENTRAL_MORE; step += 8)
		if (is_central(t, at + step, 2) && is_central(t, at + 2 * step, 3))
			return step;
	return 0;
}

/* Find the central list of the first class that has a size, and *@step to the next one. 0 = not found. */
static taddr_t find_central(const struct tcmalloc *t, u64 *step)
{
	for (taddr_t page = t->data_start; page < t->data_end; page += TCMALLOC_PAGE) {
		u64 words[PAGE_WORDS];
		size_t nr = tcmalloc_read_words(t, page, words);

		for (size_t i = 0; i < nr; i++) {
			*step = words[i] == 1 ? central_step(t, page + i * 8 - CENTRAL_CLASS) : 0;
			if (*step)
				return page + i * 8 - CENTRAL_CLASS;
		}
	}
	return 0;
}

static int mark_central(struct tcmalloc *t, taddr_t at, u32 class)
{
	u64 nr_places, ends[2];

	if (!is_central(t, at, class) || !census_words(t->w, at + CENTRAL_NR, &nr_places, 1) ||
	    (u32)nr_places > MAX_PLACES) {
		census_note(t->w->out, at, "the central list at 0x%llx is damaged", (unsigned long long)at);
		return 0;
	}
	for (u32 i = 0; i < (u32)nr_places; i++) {
		s64 nr;

		if (!census_words(t->w, at + CENTRAL_PLACES + i * sizeof(ends), ends, 2))
			ends[0] = 0;
		nr = tcmalloc_cached_mark_list(t, ends[0], class, UINT32_MAX, CENSUS_FAST);
		if (nr <= 0)
			census_note(t->w->out, at, "the central list at 0x%llx has something else",
				    (unsigned long long)at);
		if (nr < 0)
			return (int)nr;
	}
	return 0;
}

int tcmalloc_mark_cached(struct tcmalloc *t)
{
	u64 step = 0;
	taddr_t central = find_central(t, &step);
	int err = 0;

	for (size_t i = 0; i < t->nr_caches && !err; i++)
		err = mark_cache(t, t->caches[i]);
	for (u32 class = 1; central && class < t->nr_classes && !err; class ++)
		err = mark_central(t, central + (class - 1) * step, class);
	if (!central && !err)
		census_note(t->w->out, 0,
			    "the central lists were not found: blocks in them would count as live");
	return err;
}
