/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The memory of a core file. Text of files is left out, because gdb has the files; there heaptap's probes may lie. */
#include "user/core/core_private.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "user/lib/cleanup.h"
#include "user/lib/file_at.h"
#include "user/lib/zero.h"
#include "user/scan/snapshot_memory.h"

enum {
	CHUNK = 256 * 1024,
	NR_ENTRIES = 4096, /* pagemap entries per read */
	RED_ZONE = 128,
	STACK_BYTES = 1 << 20, /* of each stack, before other memory */
};

enum { RANK_HEADS, RANK_DATA, RANK_STACK, RANK_SMALL, RANK_REST, NR_RANKS };

enum { SMALL = 1 << 20 };

/* Bits of a pagemap entry. */
#define PAGE_POPULATED (3ULL << 62)
#define PAGE_OF_FILE   (1ULL << 61)

/* Larger mappings are address space that was reserved, such as the shadow of a sanitizer: files have no room for it. */
#define MAX_MAP (1ULL << 40)

/* The files of a process, and the file that is written. */
struct memory_dump {
	struct core *core;
	int mem, pagemap; /* owned; pagemap -1: every page counts as populated */
	int out;
	u64 page;
	u8 *chunk; /* owned */
};

static void dump_fini(struct memory_dump *d)
{
	if (d->mem >= 0)
		close(d->mem);
	if (d->pagemap >= 0)
		close(d->pagemap);
	free(d->chunk);
}

static int dump_init(struct memory_dump *d, struct core *c, int out)
{
	char path[32];

	*d = (struct memory_dump){ .core = c, .mem = -1, .pagemap = -1, .out = out };
	d->page = (u64)sysconf(_SC_PAGESIZE);
	d->chunk = malloc(CHUNK);
	if (!d->chunk)
		return -ENOMEM;
	snprintf(path, sizeof(path), "/proc/%d/mem", c->snapshot.mem_tid);
	d->mem = open(path, O_RDONLY | O_CLOEXEC);
	if (d->mem < 0)
		return errno == ENOENT ? -ESRCH : -errno;
	snprintf(path, sizeof(path), "/proc/%d/pagemap", c->snapshot.mem_tid);
	d->pagemap = open(path, O_RDONLY | O_CLOEXEC);
	return 0;
}

/* The entries of the pages from @addr on, at most @nr. Returns how many were read. */
static size_t read_entries(const struct memory_dump *d, taddr_t addr, u64 *entries, size_t nr)
{
	ssize_t len = d->pagemap < 0 ? -1
				     : pread(d->pagemap, entries, nr * sizeof(*entries),
					     (off_t)(addr / d->page * sizeof(*entries)));

	return len < 0 ? 0 : (size_t)len / sizeof(*entries);
}

/* Has the process written to a private mapping of a file that it may only read now? Relocated data is so. */
static bool has_own_pages(const struct memory_dump *d, const struct snapshot_map *map)
{
	u64 entries[NR_ENTRIES];
	size_t nr;

	for (taddr_t at = map->start; at < map->end; at += nr * d->page) {
		u64 left = (map->end - at) / d->page;

		nr = read_entries(d, at, entries, left < NR_ENTRIES ? left : NR_ENTRIES);
		for (size_t i = 0; i < nr; i++)
			if (entries[i] & PAGE_POPULATED && !(entries[i] & PAGE_OF_FILE))
				return true;
		if (!nr)
			return d->pagemap < 0;
	}
	return false;
}

static enum core_part core_memory_choose(const struct memory_dump *d, const struct snapshot_map *map)
{
	bool is_own = !strcmp(map->path, "[vdso]");

	if (!map->is_readable || memory_is_device(map) || map->end - map->start > MAX_MAP ||
	    (!strncmp(map->path, "[v", 2) && !is_own))
		return PART_NONE;
	if (is_own)
		return PART_ALL;
	if (!map->ino)
		return PART_POPULATED;
	/* Of shared memory only that without a file that others can open. */
	if (map->is_shared)
		return *map->path != '/' || strstr(map->path, " (deleted)") ? PART_ALL : PART_NONE;
	if (map->is_writable)
		return PART_ALL;
	if (!map->is_executable && has_own_pages(d, map))
		return PART_ALL;
	return map->file_offset ? PART_NONE : PART_HEAD;
}

/* Without the first ones gdb shows nothing. The dynamic linker's list of libraries is in one of the small ones. */
static u8 core_memory_rank(const struct core_map *m)
{
	if (m->part == PART_HEAD || !strcmp(m->map->path, "[vdso]") || !strcmp(m->map->path, "[stack]"))
		return RANK_HEADS;
	if (m->map->ino)
		return RANK_DATA;
	return m->end - m->start <= SMALL ? RANK_SMALL : RANK_REST;
}

static int by_value(const void *pa, const void *pb)
{
	const taddr_t *a = pa, *b = pb;

	return (*a > *b) - (*a < *b);
}

/* Cut [@start, @end) off the last map of @c. The rest in front stays, and what is behind becomes a map, too. */
static void cut_stack(struct core *c, taddr_t start, taddr_t end)
{
	struct core_map *last = &c->maps[c->nr_maps - 1], stack = *last, behind = *last;

	stack.start = start;
	stack.end = behind.start = end;
	stack.rank = RANK_STACK;
	last->end = start;
	if (last->end == last->start)
		c->nr_maps--;
	c->maps[c->nr_maps++] = stack;
	if (behind.start < behind.end)
		c->maps[c->nr_maps++] = behind;
}

/* The kernel joins stacks of threads with other memory beside them: the part at the stack pointer is cut out. */
static void cut_stacks(struct core *c, const taddr_t *sps, u64 page)
{
	for (size_t i = 0; i < c->nr_threads; i++) {
		const struct core_map *last = &c->maps[c->nr_maps - 1];
		taddr_t start = (sps[i] - RED_ZONE) / page * page, end = start + STACK_BYTES;

		if (sps[i] < last->start + RED_ZONE || sps[i] >= last->end)
			continue;
		cut_stack(c, start, end < last->end ? end : last->end);
	}
}

static taddr_t *list_stacks(const struct core *c)
{
	taddr_t *sps = calloc(c->nr_threads + 1, sizeof(*sps));

	for (size_t i = 0; sps && i < c->nr_threads; i++)
		sps[i] = c->threads[i].regs->sp;
	if (sps)
		qsort(sps, c->nr_threads, sizeof(*sps), by_value);
	return sps;
}

int core_choose_memory(struct core *c)
{
	auto_free taddr_t *sps = list_stacks(c);
	struct memory_dump d;
	int err = dump_init(&d, c, -1);

	c->maps = calloc(c->snapshot.nr_maps + 2 * c->nr_threads + 1, sizeof(*c->maps));
	if (!err && (!c->maps || !sps))
		err = -ENOMEM;
	for (size_t i = 0; i < c->snapshot.nr_maps && !err; i++) {
		const struct snapshot_map *map = &c->snapshot.maps[i];
		struct core_map *m = &c->maps[c->nr_maps++];

		*m = (struct core_map){ .map = map,
					.start = map->start,
					.end = map->end,
					.part = (u8)core_memory_choose(&d, map) };
		m->rank = core_memory_rank(m);
		if (!map->ino && m->rank != RANK_HEADS && m->part == PART_POPULATED)
			cut_stacks(c, sps, d.page);
	}
	dump_fini(&d);
	return err;
}

/* The bytes at the start of @data that are pages of zeros, or pages of something else. */
static size_t run_of(const struct memory_dump *d, const u8 *data, size_t len, bool *is_hole)
{
	size_t at = 0;

	*is_hole = is_zero(data, len < d->page ? len : d->page);
	while (at < len && is_zero(data + at, len - at < d->page ? len - at : d->page) == *is_hole)
		at += d->page;
	return at < len ? at : len;
}

/* Write @len bytes of @m at @addr. Pages of zeros stay holes. */
static int core_memory_write_pages(struct memory_dump *d, const struct core_map *m, taddr_t addr,
				   const u8 *data, size_t len)
{
	size_t part;
	int err = 0;

	for (size_t at = 0; at < len && !err; at += part) {
		bool is_hole;

		part = run_of(d, data + at, len - at, &is_hole);
		if (!is_hole)
			err = file_write_at(d->out, data + at, part, m->offset + (addr + at - m->start));
	}
	return err;
}

/* Copy [@addr, @addr + @len), page by page where a page cannot be read. */
static int core_memory_copy_range(struct memory_dump *d, const struct core_map *m, taddr_t addr, u64 len)
{
	int err = 0;

	while (len && !err) {
		size_t want = len < CHUNK ? len : CHUNK;
		ssize_t n = pread(d->mem, d->chunk, want, (off_t)addr);
		size_t step = n > 0 ? (size_t)n : want < d->page ? want : d->page;

		if (n > 0)
			err = core_memory_write_pages(d, m, addr, d->chunk, (size_t)n);
		else
			d->core->sums.unreadable_bytes += step;
		addr += step;
		len -= step;
	}
	return err;
}

/* The room for memory that is left. */
static u64 core_memory_room(const struct core *c)
{
	u64 max = c->options.max_bytes ? c->options.max_bytes : UINT64_MAX;

	return c->sums.memory_bytes < max ? max - c->sums.memory_bytes : 0;
}

/* How many of @entries, from the first on, are alike: populated or not. */
static size_t core_memory_alike(const u64 *entries, size_t nr, bool *is_populated)
{
	size_t n = 1;

	*is_populated = entries[0] & PAGE_POPULATED;
	while (n < nr && !!(entries[n] & PAGE_POPULATED) == *is_populated)
		n++;
	return n;
}

/* Copy the populated ones of @nr pages from *@at on, until the room ends. Moves *@at behind what is done. */
static int copy_entries(struct memory_dump *d, const struct core_map *m, taddr_t *at, const u64 *entries,
			size_t nr)
{
	int err = 0;

	for (size_t i = 0; i < nr && !err;) {
		bool is_populated;
		size_t pages = core_memory_alike(entries + i, nr - i, &is_populated);
		u64 len = pages * d->page, left = core_memory_room(d->core) / d->page * d->page;

		i += pages;
		if (is_populated && left < len) {
			len = left;
			i = nr;
		}
		if (is_populated) {
			d->core->sums.memory_bytes += len;
			err = core_memory_copy_range(d, m, *at, len);
		}
		*at += len;
	}
	return err;
}

/* Copy populated pages of @m until the room ends. Sets file_bytes. */
static int copy_populated(struct memory_dump *d, struct core_map *m, u64 len)
{
	u64 entries[NR_ENTRIES];
	taddr_t at = m->start, end = at + len, before;
	int err = 0;

	do {
		u64 left = (end - at) / d->page;
		size_t pages = left < NR_ENTRIES ? left : NR_ENTRIES;
		size_t nr = read_entries(d, at, entries, pages);

		before = at;
		/* Without pagemap every page counts as populated. */
		for (size_t i = nr; i < pages; i++)
			entries[i] = PAGE_POPULATED;
		err = copy_entries(d, m, &at, entries, pages);
	} while (!err && at < end && at > before);
	m->file_bytes = at - m->start;
	return err;
}

static int core_memory_copy_map(struct memory_dump *d, struct core_map *m)
{
	u64 len = m->end - m->start;
	int err;

	if (m->part == PART_NONE)
		return 0;
	if (m->part == PART_HEAD)
		len = d->page;
	if (m->part == PART_POPULATED) {
		err = copy_populated(d, m, len);
	} else {
		m->file_bytes =
			len < core_memory_room(d->core) ? len : core_memory_room(d->core) / d->page * d->page;
		d->core->sums.memory_bytes += m->file_bytes;
		err = core_memory_copy_range(d, m, m->start, m->file_bytes);
	}
	d->core->sums.left_out_bytes += len - m->file_bytes;
	return err;
}

static int copy_all(struct memory_dump *d)
{
	struct core *c = d->core;
	int err = 0;

	for (int r = 0; r < NR_RANKS; r++)
		for (size_t i = 0; i < c->nr_maps && !err; i++)
			if (c->maps[i].rank == r)
				err = core_memory_copy_map(d, &c->maps[i]);
	return err;
}

int core_write_memory(struct core *c, int fd, u64 offset)
{
	struct memory_dump d;
	u64 end;
	int err = dump_init(&d, c, fd);

	end = (offset + d.page - 1) / d.page * d.page;
	for (size_t i = 0; i < c->nr_maps; i++) {
		struct core_map *m = &c->maps[i];

		m->offset = end;
		if (m->part != PART_NONE)
			end += m->part == PART_HEAD ? d.page : m->end - m->start;
	}
	if (!err)
		err = copy_all(&d);
	dump_fini(&d);
	/* Holes at the end belong to the file. */
	if (!err && ftruncate(fd, (off_t)end))
		err = -errno;
	return err;
}
