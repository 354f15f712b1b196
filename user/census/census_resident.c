/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Explains the resident memory: smaps by mapping, and pagemap where a mapping is the allocator's in part. */
#include "user/census/census_resident.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "user/census/census.h"
#include "user/lib/array.h"
#include "user/lib/cleanup.h"
#include "user/lib/maps.h"
#include "user/scan/page_scan.h"

enum { NR_ENTRIES = 512 };

static const struct {
	const char *name, *key;
} parts[] = {
	[RESIDENT_ALLOCATOR] = { "allocator", "allocator" },
	[RESIDENT_STACKS] = { "stacks of threads", "stacks" },
	[RESIDENT_FILES] = { "mapped files", "files" },
	[RESIDENT_SHARED] = { "shared memory", "shared" },
	[RESIDENT_ANONYMOUS] = { "mapped by the program", "anonymous" },
};

_Static_assert(ARRAY_SIZE(parts) == NR_RESIDENT_PARTS, "one name each");

const char *census_resident_name(enum resident_part part)
{
	return parts[part].name;
}

const char *census_resident_key(enum resident_part part)
{
	return parts[part].key;
}

struct resident_mapping {
	taddr_t start, end;
	enum resident_part part;
	u64 rss, swapped, huge; /* bytes */
};

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

/* The bytes of @map that are resident and belong to the allocator. */
static u64 allocator_bytes(const struct reading *r, const struct resident_mapping *map)
{
	const struct census_blocks *b = &r->census->blocks;
	size_t i = array_search(n, 0, b->nr_segments, b->segments[n].end <= map->start);
	taddr_t from = map->start;
	u64 bytes = 0, mapped = 0, all = map->end - map->start;

	for (; i < b->nr_segments && b->segments[i].start < map->end; i++) {
		/* The header of a heap lies in the page of its first chunk, or in the one before. */
		taddr_t start = b->segments[i].start / r->page * r->page, end = b->segments[i].end;

		start = start > from ? start : from;
		end = (end + r->page - 1) / r->page * r->page;
		end = end < map->end ? end : map->end;
		if (start >= end)
			continue;
		bytes += r->pagemap >= 0 && end - start < all ? present_bytes(r, start, end) : 0;
		mapped += end - start;
		from = end;
	}
	if (r->pagemap < 0 || mapped == all)
		bytes = (u64)((double)map->rss * (double)mapped / (double)all);
	return bytes < map->rss ? bytes : map->rss;
}

static enum resident_part census_resident_part_of(const struct snapshot *snap, const struct map_line *map)
{
	if (map->is_shared)
		return RESIDENT_SHARED;
	if (map->inode)
		return RESIDENT_FILES;
	if (!strncmp(map->path, "[stack", 6))
		return RESIDENT_STACKS;
	if (map->path[0] == '[' && strcmp(map->path, "[heap]") != 0 && strncmp(map->path, "[anon", 5) != 0)
		return RESIDENT_FILES;
	for (size_t i = 0; i < snap->nr_threads; i++)
		if (snap->threads[i].sp >= map->start && snap->threads[i].sp < map->end)
			return RESIDENT_STACKS;
	return RESIDENT_ANONYMOUS;
}

/*
 * The kernel gives smaps in pieces. Where the process runs, a mapping may have grown before the next piece, which then
 * has it again: what this one covers was of an earlier moment.
 */
static int add_resident_map(struct census_resident *out, const struct map_line *line, enum resident_part part)
{
	int err;

	while (out->nr_maps && out->maps[out->nr_maps - 1].end > line->start)
		out->nr_maps--;
	err = array_reserve(out->maps, out->max_maps, out->nr_maps + 1);
	if (!err)
		out->maps[out->nr_maps++] =
			(struct resident_mapping){ .start = line->start, .end = line->end, .part = part };
	return err;
}

static void add_resident_line(struct resident_mapping *map, const char *line)
{
	const struct {
		const char *key;
		u64 *sum;
	} keys[] = { { "Rss:", &map->rss }, { "Swap:", &map->swapped }, { "AnonHugePages:", &map->huge } };

	for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
		if (strncmp(line, keys[i].key, strlen(keys[i].key)) == 0)
			*keys[i].sum = strtoull(line + strlen(keys[i].key), NULL, 10) << 10;
}

static int read_resident_maps(struct census_resident *out, const struct snapshot *snap, pid_t tid)
{
	auto_fclose FILE *f = NULL;
	auto_free char *line = NULL;
	size_t size = 0;
	char path[32];
	ssize_t len;

	snprintf(path, sizeof(path), "/proc/%d/smaps", tid);
	f = fopen(path, "re");
	if (!f)
		return errno == ENOENT ? -ESRCH : -errno;
	while ((len = getline(&line, &size, f)) > 0) {
		struct map_line map;
		int err = 0;

		if (!maps_parse_line(line, (size_t)len - 1, &map))
			err = add_resident_map(out, &map, census_resident_part_of(snap, &map));
		else if (out->nr_maps)
			add_resident_line(&out->maps[out->nr_maps - 1], line);
		if (err)
			return err;
	}
	return feof(f) ? 0 : -EIO;
}

static void read_page_tables(struct census_resident *out, pid_t tid)
{
	auto_fclose FILE *f = NULL;
	char path[32], line[256];

	snprintf(path, sizeof(path), "/proc/%d/status", tid);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f))
		if (strncmp(line, "VmPTE:", 6) == 0)
			out->page_tables = strtoull(line + 6, NULL, 10) << 10;
}

/* The thread whose files in /proc show the memory. That of a copy would show the copy. */
static pid_t resident_tid(const struct census *c)
{
	return c->is_copied ? c->pid : c->snap->mem_tid;
}

int census_resident_read(struct census_resident *out, const struct census *c)
{
	int err = read_resident_maps(out, c->snap, resident_tid(c));

	if (err) {
		census_resident_fini(out);
		return err;
	}
	for (size_t i = 0; i < out->nr_maps; i++) {
		out->rss += out->maps[i].rss;
		out->swapped += out->maps[i].swapped;
		out->huge += out->maps[i].huge;
	}
	read_page_tables(out, resident_tid(c));
	return out->rss ? 0 : -ESRCH;
}

void census_resident_split(struct census_resident *out, const struct census *c)
{
	struct reading r = { .census = c, .page = (u64)sysconf(_SC_PAGESIZE) };
	auto_close int pagemap = -1;
	char path[32];

	snprintf(path, sizeof(path), "/proc/%d/pagemap", resident_tid(c));
	pagemap = open(path, O_RDONLY | O_CLOEXEC);
	r.pagemap = pagemap;
	for (size_t i = 0; i < out->nr_maps; i++) {
		const struct resident_mapping *map = &out->maps[i];
		bool may_be = map->rss && map->part != RESIDENT_SHARED && map->part != RESIDENT_FILES;
		u64 allocator = may_be ? allocator_bytes(&r, map) : 0;

		out->of[RESIDENT_ALLOCATOR] += allocator;
		out->of[map->part] += map->rss - allocator;
	}
}

void census_resident_fini(struct census_resident *r)
{
	free(r->maps);
	*r = (struct census_resident){ 0 };
}
