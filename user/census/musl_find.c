/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Finds the books of musl's malloc in the data of libc, or of a static program, by its secret number. */
#include <errno.h>
#include <stdlib.h>

#include "user/census/musl.h"
#include "user/lib/cleanup.h"

/*
 * The structure begins with the secret, of 64 bits; the address of the first page of descriptions follows. This page
 * begins with the same number. Where the size of a page is not fixed, it lies between them.
 */

enum {
	MAX_DATA = 4 << 20, /* bytes of a file's data that are searched */
	CHECK_EVERY = 4096, /* words between two looks at the clock */
};

static u64 secret_of(const struct census_walk *w, const u8 *p)
{
	u64 first = census_word_of(w, p), second = w->w == 4 ? census_word_of(w, p + 4) : 0;

	if (w->w == 8)
		return first;
	return w->snap->is_big_endian ? first << 32 | second : second << 32 | first;
}

bool musl_is_area(const struct musl *m, taddr_t addr)
{
	const struct snapshot_map *map =
		addr && addr % MUSL_AREA == 0 ? snapshot_map_find(m->w->snap, addr) : NULL;
	u8 check[8];

	return map && census_is_anonymous(map) && snapshot_fetch(m->w->snap, addr, check, 8) == 0 &&
	       secret_of(m->w, check) == m->secret;
}

/* Is the page at @addr one of descriptions, one of which has a group that names it? */
static bool musl_find_is_proved(const struct musl *m, taddr_t addr)
{
	u32 header, size, nr = musl_is_area(m, addr) ? musl_descriptions(m, addr, &header, &size) : 0;

	for (u32 i = 0; i < nr; i++) {
		struct musl_group g;

		if (!musl_read_group(m, addr + header + (u64)i * size, &g))
			return true;
	}
	return false;
}

/* Look for the structure in @len bytes of data at @p. */
static int musl_find_look(struct musl *m, const u8 *p, size_t len)
{
	u8 w = m->w->w;
	/* After the secret: two numbers of 32 bits, five words, then the address. */
	size_t to_area = 8 + 8 + 5U * w;

	for (size_t at = 0; at + to_area + 2U * w <= len; at += w) {
		m->secret = secret_of(m->w, p + at);
		if (at / w % CHECK_EVERY == 0 && census_check_time(m->w))
			return -ETIME;
		for (u32 extra = 0; m->secret && extra < 2; extra++) {
			m->area = census_word_of(m->w, p + at + to_area + extra * w);
			if (musl_find_is_proved(m, m->area))
				return 0;
		}
	}
	return -ENOENT;
}

int musl_find(struct musl *m)
{
	const struct snapshot *snap = m->w->snap;
	auto_free u8 *bytes = malloc(MAX_DATA);
	int err = bytes ? -ENOENT : -ENOMEM;

	for (size_t i = 0; i < snap->nr_maps && err == -ENOENT; i++) {
		taddr_t start = snap->maps[i].start, end = page_reader_data_end(snap, i);
		size_t len = end - start < MAX_DATA ? end - start : MAX_DATA;

		if (!end)
			continue;
		census_copy_data(m->w, start, bytes, len);
		err = musl_find_look(m, bytes, len);
	}
	return err;
}
