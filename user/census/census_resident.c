/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Explains the resident memory: smaps by mapping, and pagemap where a mapping is the allocator's in part. */
#include "user/census/census_resident.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "user/lib/array.h"
#include "user/lib/cleanup.h"
#include "user/lib/maps.h"

enum { NR_ENTRIES = 512 };
#define ENTRY_PRESENT (1ULL << 63)

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

struct reading {
	const struct census *census;
	struct census_resident *out;
	int pagemap; /* owned; -1 = may not be read */
	u64 page;
	/* The mapping whose lines are being read. */
	taddr_t start, end;
	enum resident_part part;
	u64 rss;
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

/* The bytes of the present mapping that are resident and belong to the allocator. */
static u64 allocator_bytes(const struct reading *r)
{
	const struct census_blocks *b = &r->census->blocks;
	size_t i = array_search(n, 0, b->nr_segments, b->segments[n].end <= r->start);
	taddr_t from = r->start;
	u64 bytes = 0, mapped = 0;

	for (; i < b->nr_segments && b->segments[i].start < r->end; i++) {
		/* The header of a heap lies in the page of its first chunk, or in the one before. */
		taddr_t start = b->segments[i].start / r->page * r->page, end = b->segments[i].end;

		start = start > from ? start : from;
		end = (end + r->page - 1) / r->page * r->page;
		end = end < r->end ? end : r->end;
		if (start >= end)
			continue;
		bytes += r->pagemap >= 0 ? present_bytes(r, start, end) : 0;
		mapped += end - start;
		from = end;
	}
	if (r->pagemap < 0)
		bytes = (u64)((double)r->rss * (double)mapped / (double)(r->end - r->start));
	return bytes < r->rss ? bytes : r->rss;
}

static enum resident_part part_of(const struct reading *r, const struct map_line *map)
{
	const struct snapshot *snap = r->census->snap;

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

static void end_map(struct reading *r)
{
	u64 allocator =
		r->rss && r->part != RESIDENT_SHARED && r->part != RESIDENT_FILES ? allocator_bytes(r) : 0;

	r->out->of[RESIDENT_ALLOCATOR] += allocator;
	r->out->of[r->part] += r->rss - allocator;
	r->out->rss += r->rss;
	r->rss = 0;
}

static void add_line(struct reading *r, const char *line)
{
	const struct {
		const char *key;
		u64 *sum;
	} keys[] = { { "Rss:", &r->rss },
		     { "Swap:", &r->out->swapped },
		     { "AnonHugePages:", &r->out->huge } };

	for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
		if (strncmp(line, keys[i].key, strlen(keys[i].key)) == 0)
			*keys[i].sum += strtoull(line + strlen(keys[i].key), NULL, 10) << 10;
}

static int read_maps(struct reading *r, pid_t tid)
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

		if (maps_parse_line(line, (size_t)len - 1, &map)) {
			add_line(r, line);
			continue;
		}
		end_map(r);
		r->start = map.start;
		r->end = map.end;
		r->part = part_of(r, &map);
	}
	end_map(r);
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

/* The thread whose files in /proc show the memory. That of a copy shows the copy. */
static pid_t tid_of(const struct census *c)
{
	return c->is_copied ? c->pid : c->snap->mem_tid;
}

int census_resident_read(struct census_resident *out, const struct census *c)
{
	struct reading r = { .census = c, .out = out, .page = (u64)sysconf(_SC_PAGESIZE), .end = 1 };
	auto_close int pagemap = -1;
	char path[32];
	int err;

	*out = (struct census_resident){ 0 };
	if (c->is_core)
		return -ESRCH;
	snprintf(path, sizeof(path), "/proc/%d/pagemap", tid_of(c));
	pagemap = open(path, O_RDONLY | O_CLOEXEC);
	r.pagemap = pagemap;
	err = read_maps(&r, tid_of(c));
	if (!err)
		read_page_tables(out, tid_of(c));
	return err ? err : out->rss ? 0 : -ESRCH;
}
