/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Memory of threads that is dead, found in glibc's own lists. For user/scan/scan_regions.c. */
#include <string.h>
#include <unistd.h>

#include "user/lib/array.h"
#include "user/scan/scan_regions.h"
#include "user/scan/scan_state.h"

/*
 * glibc keeps the stacks of threads that have ended, for later threads. Old pointers on them would make lost blocks
 * reachable for ever. Each stack is in one of glibc's lists: used, user's, cache. A node of the list lies in the
 * descriptor of the thread. The descriptor lies at the upper end of the stack, its words 0 and 2 are its own address,
 * and it names the range of the stack. This is believed only if each node and its neighbours point to each other, all
 * around the list, and the descriptor agrees with the mapping. A stack that was unmapped, or that the program uses
 * otherwise, is in no list.
 *
 * Dead memory of a thread that does not exist: its stack with its TLS, and its TLS blocks of modules loaded later. Not
 * its descriptor, which holds the result for pthread_join(). In the cache the descriptor is dead, too, but for the
 * pointer to its table of TLS blocks: the result was fetched. The cache is the list whose head is followed by the sum
 * of the sizes of its stacks. Dead memory of a thread that runs on its own stack: the
 * stack below the stack pointer.
 */

enum {
	MAX_NODES = 4096,      /* of one list */
	MAX_BEFORE = 1024,     /* bytes of a descriptor before its node */
	MAX_DESCRIPTOR = 4096, /* bytes */
	KEPT_WORDS = 3,	       /* of a descriptor in the cache: its own address and the table of TLS blocks */
	MAX_ABOVE = 64 << 10,  /* bytes between the start of a descriptor and the end of the stack */
	MAX_MODULES = 4096,
	MAX_DATA = 256 << 10, /* bytes of a file's data in which heads of lists are searched */
	PIECE = 4096,
};

struct thread_finder {
	const struct scan *s;
	struct snapshot *snap;
	struct region_list *list;
	u64 page;
	u8 w;		 /* bytes of a word */
	u32 node_offset; /* in a descriptor; 0 = not known yet */
	bool is_cache;	 /* the list at hand is that of stacks for later threads */
};

static u64 scan_threads_word_of(const struct thread_finder *f, const u8 *bytes, size_t i)
{
	return region_word(f->snap, bytes + i * f->w);
}

static bool scan_threads_read_words(const struct thread_finder *f, taddr_t addr, u64 *words, size_t nr)
{
	u8 bytes[4 * 8];

	if (addr % f->w || snapshot_peek(f->snap, addr, bytes, nr * f->w) != 0)
		return false;
	for (size_t i = 0; i < nr; i++)
		words[i] = scan_threads_word_of(f, bytes, i);
	return true;
}

static bool is_descriptor(const struct thread_finder *f, taddr_t addr)
{
	u64 words[3];

	return scan_threads_read_words(f, addr, words, 3) && words[0] == addr && words[2] == addr;
}

/* Find the distance from the start of the descriptor to @node. */
static bool scan_threads_learn_offset(struct thread_finder *f, taddr_t node)
{
	u64 inside = node % f->page;
	u64 before = inside && inside < MAX_BEFORE ? inside : MAX_BEFORE;
	u8 bytes[MAX_BEFORE];

	/* The page before may not exist. */
	if (snapshot_peek(f->snap, node - MAX_BEFORE, bytes, MAX_BEFORE) == 0)
		before = MAX_BEFORE;
	else if (snapshot_peek(f->snap, node - before, bytes, before) != 0)
		return false;
	for (u64 off = 4U * f->w; off <= before; off += f->w) {
		const u8 *at = bytes + (before - off);

		if (scan_threads_word_of(f, at, 0) != node - off ||
		    scan_threads_word_of(f, at, 2) != node - off)
			continue;
		f->node_offset = (u32)off;
		return true;
	}
	return false;
}

/* The thread whose descriptor is @addr, or NULL. */
static const struct snapshot_thread *scan_threads_thread_of(const struct thread_finder *f, taddr_t addr)
{
	for (size_t i = 0; i < f->snap->nr_threads; i++)
		if (f->snap->threads[i].tp == addr)
			return &f->snap->threads[i];
	return NULL;
}

/* The stack of a descriptor: [start, end) without its guard, and the bytes of both. */
struct thread_stack {
	taddr_t start, end;
	u64 size;
};

/* Find the stack of the descriptor at @addr. */
static bool scan_threads_find_stack(const struct thread_finder *f, taddr_t addr, struct thread_stack *out)
{
	const struct snapshot_map *map = snapshot_map_find(f->snap, addr);
	u64 len = map && map->end - addr < MAX_DESCRIPTOR ? map->end - addr : MAX_DESCRIPTOR;
	u8 bytes[MAX_DESCRIPTOR];

	if (!map || !map->is_writable || snapshot_peek(f->snap, addr, bytes, len) != 0)
		return false;
	for (size_t i = 0; (i + 3) * f->w <= len; i++) {
		u64 block = scan_threads_word_of(f, bytes, i), size = scan_threads_word_of(f, bytes, i + 1),
		    guard = scan_threads_word_of(f, bytes, i + 2);

		if (!block || (block | size | guard) % f->page || block > addr || guard >= size)
			continue;
		*out = (struct thread_stack){ block + guard, block + size, size };
		if (out->start >= map->start && out->start < addr && out->end > addr &&
		    out->end <= map->end && out->end - addr <= MAX_ABOVE)
			return true;
	}
	return false;
}

/*
 * Add the TLS blocks of modules loaded later. The descriptor at @addr points to a table that lists them with the
 * addresses to free.
 */
static int add_tls_blocks(const struct thread_finder *f, taddr_t addr)
{
	u64 table, nr, entry[2];
	int err = 0;

	if (!scan_threads_read_words(f, addr + f->w, &table, 1) || !table ||
	    !scan_threads_read_words(f, table - 2U * f->w, &nr, 1))
		return 0;
	for (u64 i = 1; i <= nr && i < MAX_MODULES && !err; i++) {
		u32 block;

		if (!scan_threads_read_words(f, table + i * 2 * f->w, entry, 2))
			break;
		block = entry[1] ? scan_find_start(f->s, entry[1]) : BLOCK_NONE;
		if (block != BLOCK_NONE && entry[0] >= entry[1] && entry[0] < scan_block_end(f->s, block))
			err = region_add_dead(f->list, entry[1], scan_block_end(f->s, block));
	}
	return err;
}

/* Add the dead memory of the thread with the descriptor at @addr. */
static int scan_threads_add_thread(const struct thread_finder *f, taddr_t addr)
{
	const struct snapshot_thread *thread = scan_threads_thread_of(f, addr);
	struct thread_stack stack;
	taddr_t start, end;
	int err;

	if (!scan_threads_find_stack(f, addr, &stack))
		return 0;
	start = stack.start;
	end = stack.end;
	if (thread) {
		/* The thread runs on another stack: nothing is known about this one. */
		if (thread->sp < start + f->snap->red_zone || thread->sp >= addr)
			return 0;
		end = region_stack_end(f->snap, thread);
		return region_has_point(f->list, start, end) ? 0 : region_add_dead(f->list, start, end);
	}
	if (region_has_point(f->list, start, end))
		return 0;
	err = region_add_dead(f->list, start, addr);
	if (!err && f->is_cache)
		err = region_add_dead(f->list, addr + (u64)KEPT_WORDS * f->w, end);
	if (!err && f->is_cache)
		err = array_reserve(f->list->cached, f->list->max_cached, f->list->nr_cached + 1);
	if (!err && f->is_cache)
		f->list->cached[f->list->nr_cached++] = addr;
	return err ? err : add_tls_blocks(f, addr);
}

/* True if @head is the head of a list of threads. */
static bool is_list(struct thread_finder *f, taddr_t head)
{
	taddr_t last = head, node;
	u64 words[2];

	if (!scan_threads_read_words(f, head, words, 1))
		return false;
	node = words[0];
	for (size_t nr = 0; nr < MAX_NODES; nr++) {
		if (!scan_threads_read_words(f, node, words, 2) || words[1] != last)
			return false;
		if (node == head)
			return nr > 0;
		if (!f->node_offset && !scan_threads_learn_offset(f, node))
			return false;
		if (!is_descriptor(f, node - f->node_offset))
			return false;
		last = node;
		node = words[0];
	}
	return false;
}

/* Is it the list of stacks for later threads? */
static bool is_cache(const struct thread_finder *f, taddr_t head)
{
	u64 node = head, sum = 0, sizes;
	struct thread_stack stack;

	for (size_t nr = 0; nr < MAX_NODES; nr++) {
		if (!scan_threads_read_words(f, node, &node, 1) || node == head)
			break;
		if (scan_threads_thread_of(f, node - f->node_offset) ||
		    !scan_threads_find_stack(f, node - f->node_offset, &stack))
			return false;
		sum += stack.size;
	}
	return node == head && scan_threads_read_words(f, head + 2U * f->w, &sizes, 1) && sizes == sum;
}

static int add_list(struct thread_finder *f, taddr_t head)
{
	u64 node = head;
	int err = 0;

	f->is_cache = is_cache(f, head);
	for (size_t nr = 0; nr < MAX_NODES && !err; nr++) {
		if (!scan_threads_read_words(f, node, &node, 1) || node == head)
			break;
		err = scan_threads_add_thread(f, node - f->node_offset);
	}
	return err;
}

/* Could @addr be the address of a node? */
static bool may_be_node(const struct thread_finder *f, u64 addr)
{
	const struct snapshot_map *map;

	if (!addr || addr % f->w)
		return false;
	map = snapshot_map_find(f->snap, addr);
	return map && map->is_writable && !map->ino;
}

/* Search heads of lists in [start, end). */
static int look_for_heads(struct thread_finder *f, taddr_t start, taddr_t end)
{
	u8 bytes[PIECE];
	int err = 0;

	if (end - start > MAX_DATA)
		end = start + MAX_DATA;
	for (taddr_t at = start; at < end && !err; at += PIECE) {
		if (snapshot_peek(f->snap, at, bytes, PIECE) != 0)
			continue;
		for (size_t i = 0; (i + 2) * f->w <= PIECE && !err; i++)
			if (may_be_node(f, scan_threads_word_of(f, bytes, i)) &&
			    may_be_node(f, scan_threads_word_of(f, bytes, i + 1)) &&
			    is_list(f, at + i * f->w))
				err = add_list(f, at + i * f->w);
	}
	return err;
}

/* True for the dynamic linker, an old libpthread, and libc. Without a linker, for the static program. */
static bool may_have_heads(const struct thread_finder *f, const struct snapshot_map *map, bool has_linker)
{
	const char *name = strrchr(map->path, '/');

	if (!map->is_writable || map->is_shared || !map->ino || !name)
		return false;
	if (!has_linker)
		return strcmp(map->path, f->snap->maps[0].path) == 0;
	return strncmp(name, "/ld", 3) == 0 || strncmp(name, "/libpthread", 11) == 0 || region_is_libc(map);
}

static bool has_linker(const struct snapshot *snap)
{
	for (size_t i = 0; i < snap->nr_maps; i++) {
		const char *name = strrchr(snap->maps[i].path, '/');

		if (name && strncmp(name, "/ld", 3) == 0)
			return true;
	}
	return false;
}

int region_find_dead(struct region_list *list, const struct scan *s)
{
	struct thread_finder f = { .s = s, .snap = s->snap, .list = list, .w = s->word_size };
	bool is_dynamic = has_linker(s->snap);
	int err = 0;

	f.page = (u64)sysconf(_SC_PAGESIZE);
	/* A running thread may use any of the stacks. */
	if (s->snap->nr_unstopped)
		return 0;
	for (size_t i = 0; i < s->snap->nr_maps && !err; i++) {
		const struct snapshot_map *map = &s->snap->maps[i], *next = map + 1;

		if (!may_have_heads(&f, map, is_dynamic))
			continue;
		err = look_for_heads(&f, map->start, map->end);
		/* The .bss lies behind the data of the file. */
		if (!err && i + 1 < s->snap->nr_maps && next->start == map->end && !next->ino &&
		    next->is_writable)
			err = look_for_heads(&f, next->start, next->end);
	}
	return err;
}
