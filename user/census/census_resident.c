/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The resident memory of the allocator: pagemap, where a mapping is the allocator's in part. */
#include "user/census/census_resident.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "user/census/census.h"
#include "user/lib/array.h"
#include "user/lib/cleanup.h"
#include "user/scan/page_scan.h"

enum { NR_ENTRIES = 512 };

struct reading {
	const struct census *census;
	int pagemap; /* borrowed; -1 = may not be read */
	u64 page;
};

/* Bytes of present pages in [@start, @end). */
static u64 present_bytes(const struct reading *r, taddr_t start, taddr_t end)
{
	u64 entries[NR_ENTRIES], nr_present = 0;

	for (taddr_t at = start / r->page; at < (end + r->page - 1) / r->page;) {
		u64 want = (end + r->page - 1) / r->page - at;
		ssize_t len;

		want = want < NR_ENTRIES ? want : NR_ENTRIES;
		len = pread(r->pagemap, entries, want * sizeof(*entries), (off_t)(at * sizeof(*entries)));
		if (len <= 0)
			break;
		for (size_t i = 0; i < (size_t)len / sizeof(*entries); i++)
			nr_present += (entries[i] & ENTRY_PRESENT) != 0;
		at += (u64)len / sizeof(*entries);
	}
	return nr_present * r->page;
}

/* The bytes of [@begin, @end), a mapping with @rss resident ones, that are resident and belong to the allocator. */
static u64 allocator_bytes(const struct reading *r, taddr_t begin, taddr_t limit, u64 rss)
{
	const struct census_blocks *b = &r->census->blocks;
	size_t i = array_search(n, 0, b->nr_segments, b->segments[n].end <= begin);
	u64 bytes = 0, mapped = 0, all = limit - begin;
	taddr_t from = begin;

	for (; i < b->nr_segments && b->segments[i].start < limit; i++) {
		/* The header of a heap lies in the page of its first chunk, or in the one before. */
		taddr_t start = b->segments[i].start / r->page * r->page, end = b->segments[i].end;

		start = start > from ? start : from;
		end = (end + r->page - 1) / r->page * r->page;
		end = end < limit ? end : limit;
		if (start >= end)
			continue;
		bytes += r->pagemap >= 0 && end - start < all ? present_bytes(r, start, end) : 0;
		mapped += end - start;
		from = end;
	}
	if (r->pagemap < 0 || mapped == all)
		bytes = (u64)((double)rss * (double)mapped / (double)all);
	return bytes;
}

/* The thread whose files in /proc show the memory. That of a copy would show the copy. */
static pid_t resident_tid(const struct census *c)
{
	return c->is_copied ? c->pid : c->snap->mem_tid;
}

static void census_open_reading(struct reading *r, const struct census *c)
{
	char path[32];

	*r = (struct reading){ .census = c, .page = (u64)sysconf(_SC_PAGESIZE) };
	snprintf(path, sizeof(path), "/proc/%d/pagemap", resident_tid(c));
	r->pagemap = open(path, O_RDONLY | O_CLOEXEC);
}

static void census_close_reading(struct reading *r)
{
	if (r->pagemap >= 0)
		close(r->pagemap);
}

int census_resident_read(struct residence *out, const struct census *c)
{
	return residence_read(out, resident_tid(c));
}

/* The stack pointers of all threads are known. */
static void census_find_stacks(struct residence *out, const struct snapshot *snap)
{
	auto_free taddr_t *sps = calloc(snap->nr_threads + 1, sizeof(*sps));

	for (size_t i = 0; sps && i < snap->nr_threads; i++)
		sps[i] = snap->threads[i].sp;
	if (sps)
		residence_find_stacks(out, sps, snap->nr_threads, 0);
}

void census_resident_split(struct residence *out, const struct census *c)
{
	struct reading r;

	if (!out->rss)
		return;
	census_open_reading(&r, c);
	census_find_stacks(out, c->snap);
	for (size_t i = 0; i < out->nr_maps; i++) {
		taddr_t start, end;
		u64 rss;

		if (residence_may_be_allocator(out, i, &start, &end, &rss))
			residence_set_allocator(out, i, allocator_bytes(&r, start, end, rss));
	}
	residence_add_up(out);
	census_close_reading(&r);
}

/* ---- free memory ---- */

/* The resident bytes of whole pages in [@start, @end). */
static u64 free_bytes(const struct reading *r, taddr_t start, taddr_t end)
{
	start = (start + r->page - 1) / r->page * r->page;
	end = end / r->page * r->page;
	return start < end ? present_bytes(r, start, end) : 0;
}

static bool is_free(const struct census_block *block)
{
	return block->state == CENSUS_CACHED || block->state == CENSUS_FAST;
}

static u64 segment_free_bytes(const struct reading *r, const struct census_segment *s)
{
	const struct census_block *blocks = r->census->blocks.blocks + s->first;
	u64 bytes = 0, header = r->census->word_size;
	taddr_t from = s->start;

	for (size_t i = 0; i < s->nr; i++) {
		if (is_free(&blocks[i]))
			continue;
		bytes += free_bytes(r, from, blocks[i].addr - header);
		from = blocks[i].addr + blocks[i].size;
	}
	return bytes + free_bytes(r, from, s->end);
}

u64 census_resident_free(const struct census *c, bool *is_known)
{
	const struct census_blocks *b = &c->blocks;
	struct reading r;
	u64 bytes = 0;

	census_open_reading(&r, c);
	*is_known = r.pagemap >= 0 && !c->is_core;
	for (size_t i = 0; i < b->nr_segments && *is_known; i++)
		if (!b->segments[i].is_mapped)
			bytes += segment_free_bytes(&r, &b->segments[i]);
	census_close_reading(&r);
	return bytes < census_free_bytes(b) ? bytes : census_free_bytes(b);
}
