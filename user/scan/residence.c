/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reads the resident memory by mapping, and finds the owner of each: from smaps, threads and the books. */
#include "user/scan/residence.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "user/heap/heap_sample.h"
#include "user/lib/array.h"
#include "user/lib/cleanup.h"
#include "user/lib/maps.h"
#include "user/lib/proc.h"

enum {
	MIN_STACK = 16 << 10, /* bytes: PTHREAD_STACK_MIN */
	MAX_GUARD = 64 << 10, /* of a guard below a stack: a page by default */
	ARENA = 64 << 20,     /* HEAP_MAX_SIZE of glibc, 64-bit: the alignment of the heaps of an arena */
	MAX_THREADS = 1 << 14,
};

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

const char *residence_name(enum resident_part part)
{
	return parts[part].name;
}

const char *residence_key(enum resident_part part)
{
	return parts[part].key;
}

struct resident_mapping {
	taddr_t start, end;
	enum resident_part part;
	bool is_heap, is_plain,
		is_closed;	   /* [heap]; anonymous, to be written; anonymous, without any right */
	bool is_thread, has_ended; /* looks like the stack of a thread, which has ended */
	bool is_ours;		   /* of the inline source: nothing of it is counted */
	u64 rss, swapped, huge, allocator; /* bytes; the last ones are a part of rss */
	u64 live;			   /* bytes of live blocks that begin here, also without a page */
	u64 older;			   /* resident bytes of the mappings that were there before */
};

/* ---- reading ---- */

static enum resident_part residence_part_of(const struct map_line *map)
{
	if (map->is_shared)
		return RESIDENT_SHARED;
	if (map->inode)
		return RESIDENT_FILES;
	if (!strncmp(map->path, "[stack", 6))
		return RESIDENT_STACKS;
	if (map->path[0] == '[' && strcmp(map->path, "[heap]") != 0 && strncmp(map->path, "[anon", 5) != 0)
		return RESIDENT_FILES;
	return RESIDENT_ANONYMOUS;
}

/*
 * The kernel gives smaps in pieces. Where the process runs, a mapping may have grown before the next piece, which then
 * has it again: what this one covers was of an earlier moment.
 */
static int residence_add_map(struct residence *out, const struct map_line *line, bool is_ours)
{
	bool is_anon = !line->inode && !line->is_shared && !line->is_executable;
	int err;

	while (out->nr_maps && out->maps[out->nr_maps - 1].end > line->start)
		out->nr_maps--;
	if (out->nr_maps == RESIDENT_MAX_MAPS)
		return -E2BIG;
	err = array_reserve(out->maps, out->max_maps, out->nr_maps + 1);
	if (!err)
		out->maps[out->nr_maps++] = (struct resident_mapping){
			.start = line->start,
			.end = line->end,
			.part = residence_part_of(line),
			.is_heap = !strcmp(line->path, "[heap]"),
			.is_plain = is_anon && line->is_readable && line->is_writable,
			.is_closed = is_anon && !line->is_readable && !line->is_writable,
			.is_ours = is_ours,
		};
	return err;
}

static void residence_add_line(struct resident_mapping *map, const char *line)
{
	const struct {
		const char *key;
		u64 *sum;
	} keys[] = { { "Rss:", &map->rss }, { "Swap:", &map->swapped }, { "AnonHugePages:", &map->huge } };

	for (size_t i = 0; i < ARRAY_SIZE(keys) && !map->is_ours; i++)
		if (strncmp(line, keys[i].key, strlen(keys[i].key)) == 0)
			*keys[i].sum = strtoull(line + strlen(keys[i].key), NULL, 10) << 10;
}

/* Is @line memory of the inline source? @parked_end: maps_is_parked(). */
static bool residence_is_ours(taddr_t *parked_end, const struct map_line *line)
{
	return maps_is_parked(parked_end, line) ||
	       !strncmp(line->path, MAPS_PIECE_PATH, strlen(MAPS_PIECE_PATH));
}

static int residence_read_maps(struct residence *out, pid_t tid)
{
	auto_fclose FILE *f = NULL;
	auto_free char *line = NULL;
	taddr_t parked_end = 0;
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

		/* Lines about a mapping begin with a capital letter. */
		if ((*line < 'A' || *line > 'Z') && !maps_parse_line(line, (size_t)len - 1, &map))
			err = residence_add_map(out, &map, residence_is_ours(&parked_end, &map));
		else if (out->nr_maps)
			residence_add_line(&out->maps[out->nr_maps - 1], line);
		if (err)
			return err;
	}
	return feof(f) ? 0 : -EIO;
}

static void residence_read_page_tables(struct residence *out, pid_t tid)
{
	auto_fclose FILE *f = NULL;
	char path[32], line[256];

	snprintf(path, sizeof(path), "/proc/%d/status", tid);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f))
		if (strncmp(line, "VmPTE:", 6) == 0)
			out->page_tables = strtoull(line + 6, NULL, 10) << 10;
}

int residence_read(struct residence *out, pid_t tid)
{
	int err;

	*out = (struct residence){ 0 };
	err = residence_read_maps(out, tid);
	if (err) {
		residence_fini(out);
		return err;
	}
	for (size_t i = 0; i < out->nr_maps; i++) {
		out->rss += out->maps[i].rss;
		out->swapped += out->maps[i].swapped;
		out->huge += out->maps[i].huge;
		out->heap += out->maps[i].is_heap ? out->maps[i].end - out->maps[i].start : 0;
	}
	residence_read_page_tables(out, tid);
	return out->rss ? 0 : -ESRCH;
}

void residence_fini(struct residence *r)
{
	free(r->maps);
	*r = (struct residence){ 0 };
}

/* The first mapping that ends behind @addr; r->nr_maps = none. */
static size_t residence_search(const struct residence *r, taddr_t addr)
{
	return array_search(n, 0, r->nr_maps, r->maps[n].end <= addr);
}

/* ---- stacks ---- */

/* A heap of an arena of glibc: it begins at a multiple of its size, and what it does not use yet has no rights. */
static bool residence_is_arena(const struct residence *r, size_t i)
{
	const struct resident_mapping *m = &r->maps[i], *next = i + 1 < r->nr_maps ? m + 1 : NULL;

	if (!m->is_plain || m->start % ARENA)
		return false;
	return m->end - m->start >= ARENA ||
	       (next && next->is_closed && next->start == m->end && next->end >= m->start + ARENA);
}

/* The C library maps the stack of a thread with a guard below it. */
static bool residence_is_thread(const struct residence *r, size_t i)
{
	const struct resident_mapping *m = &r->maps[i], *guard = i ? m - 1 : NULL;

	return m->is_plain && !m->is_heap && m->end - m->start >= MIN_STACK && guard && guard->is_closed &&
	       guard->end == m->start && guard->end - guard->start <= MAX_GUARD && !residence_is_arena(r, i);
}

void residence_find_stacks(struct residence *r, const taddr_t *sps, size_t nr, size_t nr_unknown)
{
	for (size_t i = 0; i < r->nr_maps; i++) {
		r->maps[i].is_thread = residence_is_thread(r, i);
		r->maps[i].has_ended = r->maps[i].is_thread;
		if (r->maps[i].is_thread)
			r->maps[i].part = RESIDENT_STACKS;
	}
	for (size_t i = 0; i < nr; i++) {
		size_t k = residence_search(r, sps[i]);

		if (k == r->nr_maps || r->maps[k].start > sps[i] || r->maps[k].part == RESIDENT_FILES)
			continue;
		r->maps[k].has_ended = false;
		if (r->maps[k].part == RESIDENT_ANONYMOUS)
			r->maps[k].part = RESIDENT_STACKS;
	}
	/* Stacks are mapped downwards: the newest one is first. */
	for (size_t i = 0; i < r->nr_maps && nr_unknown; i++)
		if (r->maps[i].has_ended) {
			r->maps[i].has_ended = false;
			nr_unknown--;
		}
}

/* The stack pointer of a thread that waits. False: it runs, or is not to be seen. */
static bool residence_read_sp(pid_t pid, pid_t tid, taddr_t *sp)
{
	char path[64], line[256] = "", *last;
	int len = snprintf(path, sizeof(path), "/proc/%d/task/%d/syscall", pid, tid);
	auto_fclose FILE *f = len > 0 ? fopen(path, "re") : NULL;

	/* "230 0x0 ... 0x7ffd1c 0x7f3a2e": the last two are stack pointer and program counter. */
	if (!f || !fgets(line, sizeof(line), f))
		return false;
	last = strrchr(line, ' ');
	if (!last)
		return false;
	*last = '\0';
	last = strrchr(line, ' ');
	*sp = last ? strtoull(last, NULL, 16) : 0;
	return *sp;
}

void residence_find_threads(struct residence *r, pid_t pid)
{
	auto_free pid_t *tids = NULL;
	auto_free taddr_t *sps = NULL;
	size_t nr_tids = 0, nr = 0, nr_unknown = SIZE_MAX;

	if (!proc_threads(pid, &tids, &nr_tids) && nr_tids <= MAX_THREADS)
		sps = calloc(nr_tids + 1, sizeof(*sps));
	for (size_t i = 0; sps && i < nr_tids; i++)
		nr += residence_read_sp(pid, tids[i], &sps[nr]);
	if (sps)
		nr_unknown = nr_tids - nr;
	residence_find_stacks(r, sps, nr, nr_unknown);
}

/* ---- the allocator ---- */

bool residence_may_be_allocator(const struct residence *r, size_t i, taddr_t *start, taddr_t *end, u64 *rss)
{
	const struct resident_mapping *m = &r->maps[i];

	*start = m->start;
	*end = m->end;
	*rss = m->rss;
	return m->rss && m->part != RESIDENT_SHARED && m->part != RESIDENT_FILES;
}

void residence_set_allocator(struct residence *r, size_t i, u64 bytes)
{
	r->maps[i].allocator = bytes < r->maps[i].rss ? bytes : r->maps[i].rss;
}

/* The mappings that blocks are counted in. */
struct residence_blocks {
	struct residence *r;
	const struct heap *heap;
	size_t last; /* the mapping of the last block: the next one is often in it */
	u64 page;
};

static int residence_count_block(void *ctx, const struct heap_block *block)
{
	struct residence_blocks *b = ctx;
	struct residence *r = b->r;
	u64 first = block->addr / b->page, last = (block->addr + block->size + b->page - 1) / b->page;
	struct resident_mapping *m;

	if (b->last >= r->nr_maps || block->addr < r->maps[b->last].start ||
	    block->addr >= r->maps[b->last].end)
		b->last = residence_search(r, block->addr);
	m = b->last < r->nr_maps ? &r->maps[b->last] : NULL;
	if (m && m->start <= block->addr) {
		m->allocator += (last - first) * b->page;
		m->live += heap_worth_or(b->heap, block, block->size).bytes;
	}
	return 0;
}

/* Pages that exist of blocks, at most. Older pages lie where no block is, as far as there is room. */
static u64 residence_of_blocks(const struct resident_mapping *m)
{
	u64 size = m->end - m->start, room = size > m->allocator ? size - m->allocator : 0;
	u64 older = m->older < room ? m->older : room;

	return m->rss > older ? m->rss - older : 0;
}

/* Of what was counted in it, make what belongs to the allocator. */
static void residence_settle(struct residence *r, size_t i, bool has_own_mappings)
{
	struct resident_mapping *m = &r->maps[i];
	bool is_whole = m->is_heap || residence_is_arena(r, i) || (m->allocator && !has_own_mappings);

	if (m->part == RESIDENT_SHARED || m->part == RESIDENT_FILES)
		m->allocator = 0;
	else if (is_whole)
		m->allocator = m->rss;
	else if (m->allocator > residence_of_blocks(m))
		m->allocator = residence_of_blocks(m);
}

void residence_find_blocks(struct residence *now, struct residence *before, const struct heap *heap,
			   bool has_own_mappings)
{
	struct residence_blocks b = { .r = now, .heap = heap, .page = (u64)sysconf(_SC_PAGESIZE) };
	int err = heap_for_each_block(heap, residence_count_block, &b);

	for (size_t i = 0; before && i < before->nr_maps; i++) {
		size_t k = residence_search(now, before->maps[i].start);

		if (k < now->nr_maps && now->maps[k].start < before->maps[i].end)
			now->maps[k].older += before->maps[i].rss;
	}
	for (size_t i = 0; !err && i < now->nr_maps; i++)
		residence_settle(now, i, has_own_mappings);
	for (size_t i = 0; before && i < before->nr_maps; i++) {
		struct resident_mapping *m = &before->maps[i];
		size_t k = residence_search(now, m->start);
		bool is_same = k < now->nr_maps && now->maps[k].start < m->end;

		/* The blocks of then are not known: the mapping was the allocator's if it is now. */
		m->allocator = is_same && !has_own_mappings && now->maps[k].allocator ? m->rss : 0;
		residence_settle(before, i, has_own_mappings);
	}
}

void residence_add_up(struct residence *r)
{
	memset(r->of, 0, sizeof(r->of));
	r->nr_ended = r->ended = r->ended_mapped = r->live = 0;
	for (size_t i = 0; i < r->nr_maps; i++) {
		const struct resident_mapping *m = &r->maps[i];

		r->of[RESIDENT_ALLOCATOR] += m->allocator;
		r->live += m->live < m->allocator ? m->live : m->allocator;
		r->of[m->part] += m->rss - m->allocator;
		/* A mapping with blocks is no stack. */
		if (m->has_ended && !m->allocator) {
			r->nr_ended++;
			r->ended += m->rss;
			r->ended_mapped += m->end - m->start;
		}
	}
}
