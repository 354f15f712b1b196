/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reads words of the moment for those who read the books of allocators. */
#include "user/scan/page_reader.h"

#include <string.h>

#include "user/lib/clock.h"
#include "user/scan/snapshot.h"

void page_reader_init(struct page_reader *r, struct snapshot *snap, u64 deadline_ns)
{
	r->snap = snap;
	r->deadline_ns = deadline_ns;
	r->addr = 1;
	r->nr_looks = 0;
	r->is_there = false;
}

bool page_reader_is_late(const struct page_reader *r)
{
	return r->deadline_ns && clock_now_ns() > r->deadline_ns;
}

const u64 *page_reader_page(struct page_reader *r, taddr_t page)
{
	if (r->addr != page) {
		bool may_fetch = r->may_fetch && page_reader_own(r->snap, page);

		r->is_there = !page_reader_is_late(r) && !(may_fetch ? snapshot_fetch : snapshot_peek)(
								 r->snap, page, r->words, READER_PAGE);
		r->nr_looks++;
	}
	r->addr = page;
	return r->is_there ? r->words : NULL;
}

u64 page_reader_at(struct page_reader *r, taddr_t addr)
{
	const u64 *words = addr % 8 ? NULL : page_reader_page(r, addr & ~(taddr_t)(READER_PAGE - 1));

	return words ? words[addr % READER_PAGE / 8] : 0;
}

u64 page_reader_next(struct page_reader *r, taddr_t *at, taddr_t end)
{
	while (*at < end) {
		taddr_t page = *at & ~(taddr_t)(READER_PAGE - 1), next = page + READER_PAGE;
		const u64 *words = page_reader_page(r, page);
		const struct snapshot_map *map;

		for (; words && *at < next && *at < end; *at += 8)
			if (words[*at % READER_PAGE / 8]) {
				*at += 8;
				return words[(*at - 8) % READER_PAGE / 8];
			}
		if (words)
			continue;
		map = snapshot_map_find(r->snap, page);
		if (!map || page_reader_is_late(r))
			return 0;
		*at = next < map->end ? snapshot_next(r->snap, next, end < map->end ? end : map->end) : next;
	}
	return 0;
}

const struct snapshot_map *page_reader_own(const struct snapshot *snap, taddr_t addr)
{
	const struct snapshot_map *map = addr && addr % 8 == 0 ? snapshot_map_find(snap, addr) : NULL;

	return map && !map->ino && map->is_writable && map->is_readable && !map->is_shared ? map : NULL;
}

taddr_t page_reader_data_end(const struct snapshot *snap, size_t map)
{
	const struct snapshot_map *m = &snap->maps[map];
	taddr_t end = m->end;

	if (!m->ino || !m->is_writable || !m->is_readable || m->is_shared)
		return 0;
	while (++map < snap->nr_maps && snap->maps[map].start == end && page_reader_own(snap, end) &&
	       strcmp(snap->maps[map].path, "[heap]") != 0)
		end = snap->maps[map].end;
	return end;
}
