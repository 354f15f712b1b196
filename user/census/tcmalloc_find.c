/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Finds the map of pages of tcmalloc in the data of a file, by what must be true of it. */
#include <errno.h>
#include <string.h>

#include "user/census/tcmalloc.h"

/*
 * Some word of the root leads to a leaf, and a word of the leaf to the description of a span. This has the number of
 * its first page, which says which place in the root the leaf has: so the start of the root is known. Then the words
 * around must be right, too.
 */

enum {
	PAGE = TCMALLOC_PAGE,
	PAGE_WORDS = PAGE / 8,
	MIN_RIGHT = 3,	      /* words that prove a map */
	MAX_TRIES = 8,	      /* pages of a leaf */
	ENOUGH_WRONG = 8,     /* words of a page that prove that it is no part of a leaf */
	MAX_LOOKS = 1 << 14,  /* pages of what may be leaves, in all */
	MIN_DATA = 256 << 10, /* the smallest root */
	MAX_DATA = 64 << 20,
	SPAN_WORDS = 6,
	MAX_SET = 32, /* words of a page of the root */
	LEAF_ALIGN = 16,
	CLASS_SHIFT = 16,
	LOCATION_SHIFT = 24,
};

/* Bits of a page: 8 KiB, and what may be chosen when tcmalloc is built. */
static const u8 shifts[] = { 13, 12, 14, 15, 16, 18 };

size_t tcmalloc_read_words(const struct tcmalloc *t, taddr_t at, u64 *words)
{
	size_t len = PAGE - at % PAGE;

	census_copy_data(t->w, at, (u8 *)words, len);
	return len / 8;
}

bool tcmalloc_read_span(const struct tcmalloc *t, taddr_t books, struct tcmalloc_span *out)
{
	u64 words[SPAN_WORDS];

	if (!books || books % 8 || books >> TCMALLOC_ADDRESS_BITS ||
	    !census_words(t->w, books, words, SPAN_WORDS))
		return false;
	*out = (struct tcmalloc_span){ .start = words[0],
				       .nr = words[1],
				       .free = words[4],
				       .nr_used = words[5] & 0xffff,
				       .class = words[5] >> CLASS_SHIFT & 0xff,
				       .location = words[5] >> LOCATION_SHIFT & 3 };
	return out->start && out->nr && out->start >> (TCMALLOC_ADDRESS_BITS - t->shift) == 0 &&
	       out->nr >> (TCMALLOC_ADDRESS_BITS - t->shift) == 0 && out->class < TCMALLOC_MAX_CLASSES &&
	       out->location < TCMALLOC_NR_LOCATIONS;
}

static u64 tcmalloc_find_leaf_bytes(const struct tcmalloc *t)
{
	return 8ULL << t->leaf_bits;
}

static u64 root_bytes(const struct tcmalloc *t)
{
	return 8ULL << (TCMALLOC_ADDRESS_BITS - t->shift - t->leaf_bits);
}

/* Try the words at @at of a leaf, which lies at @slot. -ENODATA: there are none. -ENOTSUP: it is no leaf. */
static int tcmalloc_find_try_words(struct tcmalloc *t, taddr_t slot, taddr_t leaf, taddr_t at)
{
	u64 words[PAGE_WORDS], first = (at - leaf) / 8, mask = (1ULL << t->leaf_bits) - 1, base = 0;
	size_t nr = tcmalloc_read_words(t, at, words), nr_words = 0, nr_right = 0;
	bool is_placed = false;

	t->nr_looks++;
	for (size_t i = 0; i < nr; i++) {
		struct tcmalloc_span s;

		/* Each look is a call of the system, and the process may stand meanwhile. */
		if (!nr_right && nr_words >= ENOUGH_WRONG)
			return -ENOTSUP;
		nr_words += words[i] != 0;
		if (!words[i] || !tcmalloc_read_span(t, words[i], &s))
			continue;
		if (!is_placed && (s.start & mask) == first + i) {
			is_placed = true;
			base = s.start & ~mask; /* 0: brk of a program with fixed addresses */
			t->root = slot - (base >> t->leaf_bits) * 8;
		}
		nr_right += is_placed && base + first + i - s.start < s.nr;
	}
	/* Words of earlier spans remain, and are few. */
	if (nr_right >= MIN_RIGHT && nr_right > nr_words / 2)
		return 0;
	return nr_words ? -ENOENT : -ENODATA;
}

/* Is a leaf at @leaf, which the word at @slot leads to? */
static bool tcmalloc_find_try_leaf(struct tcmalloc *t, taddr_t slot, taddr_t leaf)
{
	const struct snapshot_map *map = snapshot_map_find(t->w->snap, leaf);
	taddr_t end = leaf + tcmalloc_find_leaf_bytes(t), at = leaf;
	int err = -ENOENT;

	if (!map || !census_is_anonymous(map) || map->end < end)
		return false;
	for (int tries = 0;
	     tries < MAX_TRIES && at < end && err && err != -ENOTSUP && t->nr_looks < MAX_LOOKS;
	     at = (at / PAGE + 1) * PAGE) {
		taddr_t next = snapshot_next(t->w->snap, at, end);

		at = next > at ? next & ~(taddr_t)(PAGE - 1) : at;
		err = at < end ? tcmalloc_find_try_words(t, slot, leaf, at) : -ENOENT;
		tries += err == -ENOENT;
	}
	return !err && t->root >= t->data_start && t->root + root_bytes(t) <= t->data_end;
}

static bool tcmalloc_find_try_shifts(struct tcmalloc *t, taddr_t slot, taddr_t leaf)
{
	for (size_t k = 0; k < ARRAY_SIZE(shifts); k++) {
		t->shift = shifts[k];
		t->leaf_bits = (TCMALLOC_ADDRESS_BITS - t->shift + 1) / 2;
		if (tcmalloc_find_try_leaf(t, slot, leaf))
			return true;
	}
	return false;
}

/*
 * May some of @nr words of a page lead to leaves that begin anywhere? Each is for 2 GiB of addresses, so there are few.
 * Before 2.17 leaves began with a page.
 */
static bool has_few(const u64 *words, size_t nr)
{
	size_t nr_set = 0;

	for (size_t i = 0; i < nr; i++)
		nr_set += words[i] != 0;
	return nr_set <= MAX_SET;
}

static int tcmalloc_find_in_data(struct tcmalloc *t)
{
	for (taddr_t page = t->data_start; page < t->data_end && t->nr_looks < MAX_LOOKS; page += PAGE) {
		u64 words[PAGE_WORDS];
		size_t nr = tcmalloc_read_words(t, page, words);
		u64 align = has_few(words, nr) ? LEAF_ALIGN : PAGE;

		for (size_t i = 0; i < nr; i++)
			if (words[i] && words[i] % align == 0 &&
			    tcmalloc_find_try_shifts(t, page + i * 8, words[i]))
				return tcmalloc_find_caches(t);
		if (census_check_time(t->w))
			return -ETIME;
	}
	return -ENOENT;
}

int tcmalloc_find(struct tcmalloc *t)
{
	const struct snapshot *snap = t->w->snap;
	int err = -ENOENT;

	if (snap->word_size != 8 || snap->is_big_endian || t->w->page != PAGE)
		return -ENOENT;
	for (size_t i = 0; i < snap->nr_maps && err == -ENOENT; i++) {
		t->data_start = snap->maps[i].start;
		/* In the variant for debugging each block has a header. */
		t->data_end = strstr(snap->maps[i].path, "_debug.so") ? 0 : page_reader_data_end(snap, i);
		if (t->data_end && t->data_end - t->data_start >= MIN_DATA &&
		    t->data_end - t->data_start <= MAX_DATA)
			err = tcmalloc_find_in_data(t);
	}
	return err;
}
