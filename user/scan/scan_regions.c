/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Bytes outside blocks that are not roots: the allocator's own memory, and the unused end of stacks. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "user/lib/array.h"
#include "user/lib/cleanup.h"
#include "user/scan/scan_regions.h"
#include "user/scan/scan_state.h"

/*
 * The rule: every writable byte is a root, unless it surely is not.
 *
 * Surely memory of the allocator:
 * - the memory that brk gave, from the start that the kernel names; a .bss merged with it stays a root;
 * - a glibc arena: it is aligned, and its first words are those of an arena;
 * - glibc's main arena in the data of libc, because the free chunks that it lists begin in the last bytes of the block
 *   before;
 * - in other anonymous memory, pages that hold a part of a live block, because allocators take whole pages, and the
 *   runs of pages that jemalloc has for small blocks (user/scan/scan_jemalloc.c). Not directly behind the data of a
 *   file: that is .bss, and musl gives its last page to malloc.
 * In this memory, a hole between two blocks is a root nevertheless if it contains a thread's stack pointer or thread
 * pointer. Static programs have their TLS in brk memory, and stacks may lie anywhere.
 *
 * Nothing is sure while live blocks may exist that the heap does not know: the new copy of a realloc that has not
 * returned yet, or the rest of a block behind another block inside it. After an attach, only bytes that blocks have
 * covered since (user/heap/cover_map.h) are sure, in memory of brk and arenas: older blocks lie elsewhere.
 *
 * Surely dead: a thread's own stack below its red zone, if nothing else can be in the mapping; and memory that glibc
 * keeps of threads that have ended (user/scan/scan_threads.c); and the buffers of streams (user/scan/scan_stdio.c).
 */

enum {
	MAX_ARENA_HEADER = 256, /* bytes; the arena lies behind the header of its first heap */
	NR_BIN_WORDS = 254,	/* of an arena; two for each bin */
	NR_ARENA_WORDS = 12,	/* before the bins: fast bins, top, last remainder */
	MIN_EMPTY_BINS = 32,
	PIECE = 4096, /* a page, or part of one */
	FREED_PIECE = 4 << 20,
	MAX_DATA = 256 << 10, /* bytes of a file's data in which the arena is searched */
};

static int scan_regions_by_addr(const void *a, const void *b)
{
	const struct point *x = a, *y = b;

	return (x->addr > y->addr) - (x->addr < y->addr);
}

/* Index of the first point at or above @addr. */
static size_t point_at(const struct region_list *list, taddr_t addr)
{
	return array_search(i, 0, list->nr_points, list->points[i].addr < addr);
}

bool region_has_point(const struct region_list *list, taddr_t start, taddr_t end)
{
	size_t i = point_at(list, start);

	return i < list->nr_points && list->points[i].addr < end;
}

static int find_points(struct region_list *list, const struct snapshot *snap)
{
	list->points = calloc(snap->nr_words ? snap->nr_words : 1, sizeof(*list->points));
	if (!list->points)
		return -ENOMEM;
	for (size_t i = 0; i < snap->nr_words; i++) {
		const struct snapshot_word *word = &snap->words[i];
		const struct snapshot_thread *thread;

		if (word->owner >= snap->nr_threads)
			continue;
		thread = &snap->threads[word->owner];
		if (word->value == thread->sp || (thread->tp && word->value == thread->tp))
			list->points[list->nr_points++] =
				(struct point){ .addr = word->value, .word = (u32)i };
	}
	qsort(list->points, list->nr_points, sizeof(*list->points), scan_regions_by_addr);
	return 0;
}

int region_add_dead(struct region_list *list, taddr_t start, taddr_t end)
{
	int err = start < end ? array_reserve(list->dead, list->max_dead, list->nr_dead + 1) : 0;

	if (err || start >= end)
		return err;
	list->dead[list->nr_dead++] = (struct dead_range){ .start = start, .end = end };
	return 0;
}

static int scan_regions_by_start(const void *a, const void *b)
{
	const struct dead_range *x = a, *y = b;

	return (x->start > y->start) - (x->start < y->start);
}

static void region_sort_dead(struct region_list *list)
{
	size_t nr = 0;

	if (!list->nr_dead)
		return;
	qsort(list->dead, list->nr_dead, sizeof(*list->dead), scan_regions_by_start);
	for (size_t i = 1; i < list->nr_dead; i++) {
		struct dead_range *last = &list->dead[nr];

		if (list->dead[i].start > last->end)
			list->dead[++nr] = list->dead[i];
		else if (list->dead[i].end > last->end)
			last->end = list->dead[i].end;
	}
	list->nr_dead = nr + 1;
}

static int scan_regions_add_region(struct region_list *list, taddr_t start, taddr_t end,
				   enum region_kind kind)
{
	int err = start < end ? array_reserve(list->regions, list->max, list->nr + 1) : 0;

	if (err || start >= end)
		return err;
	list->regions[list->nr++] = (struct scan_region){ .start = start, .end = end, .kind = kind };
	return 0;
}

u64 region_word(const struct snapshot *snap, const u8 *p)
{
	u64 value = 0;

	for (u8 i = 0; i < snap->word_size; i++)
		value = value << 8 | p[snap->is_big_endian ? i : snap->word_size - 1 - i];
	return value;
}

bool region_is_libc(const struct snapshot_map *map)
{
	const char *name = strrchr(map->path, '/');

	return name && (strncmp(name, "/libc.", 6) == 0 ||
			(strncmp(name, "/libc-", 6) == 0 && name[6] >= '0' && name[6] <= '9'));
}

/* Size of the part of a glibc arena at @base, 0 if no such part is there. Parts have the alignment @align. */
static u64 arena_size(const struct snapshot *cs, taddr_t base, taddr_t end, u64 align)
{
	struct snapshot *snap = (struct snapshot *)(uintptr_t)cs;
	u64 arena, previous, size, writable;
	u8 w = snap->word_size, head[32];

	if (snapshot_peek(snap, base, head, 4U * w) != 0)
		return 0;
	arena = region_word(snap, head);
	previous = region_word(snap, head + w);
	size = region_word(snap, head + 2 * w);
	writable = region_word(snap, head + 3 * w);
	if (arena % align < 4U * w || arena % align > MAX_ARENA_HEADER || previous % align)
		return 0;
	if ((previous == 0) != (arena - arena % align == base))
		return 0;
	if (size > writable || writable > align || !size || writable > end - base || writable % 4096)
		return 0;
	return writable;
}

static bool is_anonymous(const struct snapshot_map *map)
{
	return !map->ino && (!map->path[0] || strncmp(map->path, "[anon:", 6) == 0);
}

/* End of the private, writable, anonymous memory without gaps that contains @base; @base if none does. */
static taddr_t anonymous_end(const struct snapshot *snap, taddr_t base)
{
	const struct snapshot_map *map = snapshot_map_find(snap, base);
	taddr_t end = base;

	for (; map && map < snap->maps + snap->nr_maps; map++) {
		if (!is_anonymous(map) || !map->is_writable || map->is_shared ||
		    (end != base && map->start != end))
			break;
		end = map->end;
	}
	return end;
}

/*
 * Find an arena of glibc in the data [start, end): the end of its bins, 0 if no arena is there. Most bins are empty,
 * and the last one always is. An empty bin has two pointers to the place two words before itself.
 */
static taddr_t find_bins(const struct scan *s, taddr_t start, taddr_t end)
{
	auto_free u8 *bytes = calloc(1, MAX_DATA);
	u8 w = s->word_size;
	size_t len = end - start < MAX_DATA ? end - start : MAX_DATA;
	taddr_t last = 0;
	u32 nr = 0;

	if (!bytes)
		return 0;
	/* Page by page: a page that is not in memory was never written. */
	for (size_t at = 0; at < len; at += PIECE)
		if (snapshot_peek(s->snap, start + at, bytes + at, len - at < PIECE ? len - at : PIECE) != 0)
			memset(bytes + at, 0, PIECE);
	for (size_t at = 0; at + 2U * w <= len; at += w) {
		u64 itself = start + at - 2U * w;

		if (region_word(s->snap, bytes + at) != itself ||
		    region_word(s->snap, bytes + at + w) != itself)
			continue;
		nr = last && start + at - last < (u64)NR_BIN_WORDS * w ? nr + 1 : 1;
		last = start + at + 2U * w;
	}
	return nr >= MIN_EMPTY_BINS && last - start > (u64)(NR_BIN_WORDS + NR_ARENA_WORDS) * w ? last : 0;
}

/* After an attach: the arena itself is dead too, if its first part is at @base. */
static int add_header(struct region_list *list, const struct scan *s, taddr_t base)
{
	taddr_t arena, end = 0;
	u8 bytes[8];

	if (!s->cover || snapshot_peek(s->snap, base, bytes, s->word_size) != 0)
		return 0;
	arena = region_word(s->snap, bytes);
	if (arena > base && arena - base <= MAX_ARENA_HEADER && arena % s->word_size == 0)
		end = find_bins(s, arena, arena + PIECE);
	return region_add_dead(list, base, end);
}

/* The kind of memory that belongs to the allocator alone. */
static enum region_kind heap_kind(const struct scan *s)
{
	return s->cover ? REGION_COVERED : REGION_HEAP;
}

/* The part [from, to) of a glibc arena, which begins at @base. */
static int add_arena(struct region_list *list, const struct scan *s, taddr_t base, taddr_t from, taddr_t to)
{
	int err = scan_regions_add_region(list, from, to, heap_kind(s));

	if (err || from >= to)
		return err;
	list->regions[list->nr - 1].is_glibc = true;
	return base == from ? add_header(list, s, base) : 0;
}

/* Does a block lie in the piece of memory at @addr as a whole? */
static bool has_small_block(const struct scan *s, taddr_t addr)
{
	taddr_t end = addr + FREED_PIECE;

	for (u32 i = scan_lower_bound(s, addr); i < s->nr && s->blocks[i].addr < end; i++)
		if (scan_block_end(s, i) <= end)
			return true;
	return false;
}

/*
 * Memory between arenas that is in no slab: pages with blocks are the allocator's. Where it keeps freed memory, bytes
 * that blocks have covered are, too, if a block lies close: an allocator gives memory back in larger pieces only
 * (mimalloc: 4 MiB and more).
 */
static int add_rest(struct region_list *list, const struct scan *s, taddr_t from, taddr_t to)
{
	int err = 0;

	while (s->freed && from < to && !err) {
		taddr_t piece = from - from % FREED_PIECE, end = piece + FREED_PIECE;
		size_t nr = list->nr;

		end = end < to ? end : to;
		err = s->cover && !has_small_block(s, piece)
			      ? 0
			      : scan_regions_add_region(list, from, end,
							s->cover ? REGION_COVERED : REGION_PAGES);
		if (list->nr > nr)
			list->regions[nr].has_freed = has_small_block(s, piece);
		from = end;
	}
	return err || s->cover ? err : scan_regions_add_region(list, from, to, REGION_PAGES);
}

/* Memory of the allocator whose blocks are known, in the mapping [from, to). */
static int add_own(struct region_list *list, taddr_t from, taddr_t to)
{
	size_t i = array_search(k, 0, list->nr_slabs, list->slabs[k].end <= from);
	int err = 0;

	for (; i < list->nr_slabs && list->slabs[i].start < to && !err; i++) {
		taddr_t start = list->slabs[i].start > from ? list->slabs[i].start : from;
		taddr_t end = list->slabs[i].end < to ? list->slabs[i].end : to;

		err = scan_regions_add_region(list, start, end, REGION_HEAP);
	}
	return err;
}

/* Memory [from, to) between arenas: pages with blocks are the allocator's, and the whole of a slab is. */
static int add_pages(struct region_list *list, const struct scan *s, taddr_t from, taddr_t to)
{
	size_t i = array_search(k, 0, list->nr_slabs, list->slabs[k].end <= from);
	int err = 0;

	for (; i < list->nr_slabs && list->slabs[i].start < to && !err; i++) {
		taddr_t start = list->slabs[i].start > from ? list->slabs[i].start : from;
		taddr_t end = list->slabs[i].end < to ? list->slabs[i].end : to;

		err = add_rest(list, s, from, start);
		if (!err)
			err = scan_regions_add_region(list, start, end, heap_kind(s));
		from = end > from ? end : from;
	}
	return err ? err : add_rest(list, s, from, to);
}

/*
 * Regions of the anonymous mapping [start, end) that holds blocks: arenas, and pages between them. An arena may have
 * begun in the mapping before: after a fork the kernel does not join what is added to it.
 */
static int add_anonymous(struct region_list *list, const struct scan *s, taddr_t start, taddr_t end)
{
	u64 align = s->word_size == 8 ? 64 << 20 : 1 << 20;
	taddr_t pos = start;
	int err = 0;

	for (u32 i = scan_lower_bound(s, start); !err && i < s->nr && s->blocks[i].addr < end;) {
		taddr_t base = s->blocks[i].addr - s->blocks[i].addr % align;
		taddr_t whole_end = base >= pos || pos == start ? anonymous_end(s->snap, base) : base;
		u64 size = whole_end > pos ? arena_size(s->snap, base, whole_end, align) : 0;

		if (size && base + size > pos) {
			taddr_t from = base > pos ? base : pos, to = base + size < end ? base + size : end;

			if (!s->cover || s->freed || (!IS_AGENT && list->nr_slabs))
				err = add_pages(list, s, pos, from);
			if (!err)
				err = add_arena(list, s, base, from, to);
			pos = to;
		}
		i = scan_lower_bound(s, base + align);
	}
	return err || (s->cover && !s->freed && (IS_AGENT || !list->nr_slabs)) ? err
									       : add_pages(list, s, pos, end);
}

/* True if @map is the .bss behind the data of a file. */
static bool is_bss(const struct snapshot *snap, size_t map)
{
	return map && snap->maps[map - 1].end == snap->maps[map].start && snap->maps[map - 1].ino &&
	       snap->maps[map - 1].is_writable;
}

/* Index of the thread that @point belongs to. */
static u32 owner_of(const struct snapshot *snap, const struct point *point)
{
	return snap->words[point->word].owner;
}

/* The thread whose stack @map surely is, with nothing else but its TLS. BLOCK_NONE if that is not sure. */
static u32 stack_owner(const struct region_list *list, const struct snapshot *snap, size_t map)
{
	const struct snapshot_map *m = &snap->maps[map], *below = map ? m - 1 : NULL;
	const struct snapshot_thread *thread;
	size_t first = point_at(list, m->start);
	u32 owner;

	if (first == list->nr_points || list->points[first].addr >= m->end)
		return BLOCK_NONE;
	owner = owner_of(snap, &list->points[first]);
	thread = &snap->threads[owner];
	for (size_t i = first; i < list->nr_points && list->points[i].addr < m->end; i++)
		if (owner_of(snap, &list->points[i]) != owner)
			return BLOCK_NONE;
	if (thread->sp < m->start || thread->sp >= m->end)
		return BLOCK_NONE;
	if (strcmp(m->path, "[stack]") == 0)
		return thread->tid == snap->pid ? owner : BLOCK_NONE;
	if (!is_anonymous(m) || thread->tp <= thread->sp || thread->tp >= m->end)
		return BLOCK_NONE;
	/* Without a guard page below, the kernel may have joined the mapping with another one. */
	return below && below->end == m->start && !below->is_readable && !below->is_writable ? owner
											     : BLOCK_NONE;
}

taddr_t region_stack_end(const struct snapshot *snap, const struct snapshot_thread *thread)
{
	return thread->sp - (thread->has_no_red_zone ? 0 : snap->red_zone);
}

static int scan_regions_add_stack(struct region_list *list, const struct snapshot *snap, size_t map)
{
	u32 owner = stack_owner(list, snap, map);
	taddr_t end;

	if (owner == BLOCK_NONE)
		return 0;
	end = region_stack_end(snap, &snap->threads[owner]);
	return end > snap->maps[map].start
		       ? scan_regions_add_region(list, snap->maps[map].start, end, REGION_NEVER)
		       : 0;
}

static bool may_be_libc(const struct snapshot *snap, const struct snapshot_map *map)
{
	const char *name = strrchr(map->path, '/');

	/* libc, or a static program. */
	return map->ino && !map->is_shared && name &&
	       (strncmp(name, "/libc", 5) == 0 || strcmp(map->path, snap->maps[0].path) == 0);
}

static int add_main_arena(struct region_list *list, const struct scan *s, const struct snapshot_map *map)
{
	u8 w = s->word_size;
	taddr_t end = find_bins(s, map->start, map->end);

	u8 top[8];

	if (!end)
		return 0;
	if (snapshot_peek(s->snap, end - (u64)(NR_BIN_WORDS + 2) * w, top, w) == 0)
		list->top = region_word(s->snap, top);
	return scan_regions_add_region(list, end - (u64)(NR_BIN_WORDS + NR_ARENA_WORDS) * w, end,
				       REGION_NEVER);
}

/* An arena without any live block. No block proves it, so its bins must look right too. */
static int add_empty_arena(struct region_list *list, const struct scan *s, const struct snapshot_map *map)
{
	u64 align = s->word_size == 8 ? 64 << 20 : 1 << 20, size, arena;
	u8 bytes[8];

	if (!is_anonymous(map) || map->is_shared || map->start % align)
		return 0;
	size = arena_size(s->snap, map->start, map->end, align);
	if (!size || snapshot_peek(s->snap, map->start, bytes, s->word_size) != 0)
		return 0;
	arena = region_word(s->snap, bytes);
	if (arena % s->word_size || !find_bins(s, arena, arena + PIECE))
		return 0;
	return add_arena(list, s, map->start, map->start, map->start + size);
}

static int scan_regions_add_map(struct region_list *list, const struct scan *s, size_t map)
{
	const struct snapshot *snap = s->snap;
	const struct snapshot_map *m = &snap->maps[map];
	u32 first = scan_lower_bound(s, m->start);
	taddr_t start;
	bool is_empty;

	if (!m->is_writable)
		return 0;
	if (may_be_libc(snap, m))
		return add_main_arena(list, s, m);
	is_empty = first == s->nr || s->blocks[first].addr >= m->end;
	if (is_empty && stack_owner(list, snap, map) != BLOCK_NONE)
		return scan_regions_add_stack(list, snap, map);
	if ((s->options.is_partial && !s->cover) || s->has_pending || s->result.nr_overlaps)
		return 0;
	if (!IS_AGENT && s->options.has_others)
		return add_own(list, m->start, m->end);
	if (is_empty && strcmp(m->path, "[heap]") != 0)
		return add_empty_arena(list, s, m);
	if (strcmp(m->path, "[heap]") == 0) {
		if (is_empty && !s->cover)
			return 0; /* no block proves that it belongs to the allocator */
		start = is_empty || snap->heap_start ? snap->heap_start : s->blocks[first].addr;
		return scan_regions_add_region(list, start > m->start ? start : m->start, m->end,
					       heap_kind(s));
	}
	if (!is_anonymous(m) || m->is_shared || is_bss(snap, map))
		return 0;
	return add_anonymous(list, s, m->start, m->end);
}

static int scan_regions_add_own(void *ctx, taddr_t start, taddr_t end)
{
	struct region_list *list = ctx;

	if (array_reserve(list->slabs, list->max_slabs, list->nr_slabs + 1))
		return -ENOMEM;
	list->slabs[list->nr_slabs++] = (struct dead_range){ start, end };
	return 0;
}

int region_list_init(struct region_list *list, const struct scan *s)
{
	int err;

	memset(list, 0, sizeof(*list));
	err = find_points(list, s->snap);
	if (!err)
		err = region_find_callers(s->snap);
	if (!err)
		err = region_find_dead(list, s);
	if (!err)
		err = region_find_exit(list, s);
	if (!IS_AGENT && !err)
		err = region_find_jemalloc(list, s);
	if (!IS_AGENT && !err)
		err = region_find_mimalloc(list, s);
	if (!IS_AGENT && !err)
		err = region_find_tcmalloc(list, s);
	/* All slabs, and more. */
	if (!err && s->books.for_each_own) {
		list->nr_slabs = 0;
		err = s->books.for_each_own(s->books.ctx, scan_regions_add_own, list);
	}
	if (!err)
		err = region_find_stdio(list, s);
	for (size_t i = 0; i < s->snap->nr_maps && !err; i++)
		err = scan_regions_add_map(list, s, i);
	for (size_t i = 0; i < list->nr; i++)
		list->regions[i].is_glibc |= list->regions[i].kind == REGION_COVERED &&
					     list->top >= list->regions[i].start &&
					     list->top < list->regions[i].end;
	region_sort_dead(list);
	if (err)
		region_list_fini(list);
	return err;
}

void region_list_fini(struct region_list *list)
{
	free(list->regions);
	free(list->points);
	free(list->dead);
	free(list->slabs);
	free(list->pages);
	free(list->cached);
	memset(list, 0, sizeof(*list));
}
