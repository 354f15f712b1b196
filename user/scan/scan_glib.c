/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The pointers of GLib, found in the memory of the moment. For user/scan/scan_look.c. */
#include "user/scan/scan_glib.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "user/lib/array.h"
#include "user/lib/cleanup.h"
#include "user/scan/scan_regions.h"

/*
 * An object of GLib's type system begins with a pointer to its class. Its private data lie before it in the same block,
 * so all pointers to the object lead into the middle of the block. heaptap knows such an object by its class:
 *
 *   - A type is a block that contains its own address, as the first of its supertypes. Fundamental types begin behind
 *     one word, and the data of libgobject hold their addresses.
 *   - A type points to an array of its children, and to a block that points to its class. A class begins with the
 *     address of its type.
 *
 * All types follow from the fundamental ones. No offset of a field is needed, so versions of GLib do not matter.
 *
 * A hash table keeps its keys and values as 32 bits while all of them fit, if pointers have 64 bits. Programs at fixed
 * addresses have their heap below 4 GiB (python3 of Debian). The arrays have a power of 2 of elements, 8 at least.
 */

enum {
	TYPE_BYTES = 1024,   /* read of a type at most */
	ARRAY_BYTES = 32768, /* read of an array of children at most */
	MAX_READS = 50000,
	MAX_DATA = 1 << 20, /* bytes of libgobject's data */
	MIN_PACKED = 32,    /* bytes of an array of 8 elements */
};

/* A type whose children and class are to be found. */
struct type {
	u32 block;
	taddr_t addr; /* 0 = fundamental: its classes have no address of a block */
};

struct glib_search {
	const struct scan *s;
	struct glib_facts *g;
	u64 *seen;	    /* owned; a bit for each block: it is a type */
	struct type *types; /* owned; a queue */
	size_t nr, max, next;
	u32 nr_reads;
	u8 array[ARRAY_BYTES];
};

static bool scan_glib_get(const u64 *bits, u32 i)
{
	return bits[i / 64] >> (i % 64) & 1;
}

static void scan_glib_set(u64 *bits, u32 i)
{
	bits[i / 64] |= 1ULL << (i % 64);
}

/* Read up to @max bytes of @block. Returns the number of bytes, 0 if they cannot be read. */
static size_t read_block(struct glib_search *gs, u32 block, u8 *buf, size_t max)
{
	u64 size = scan_block_size(gs->s, block);
	size_t len = size < max ? (size_t)size : max;

	len &= ~(gs->s->word_size - 1ULL);
	if (!len || gs->nr_reads++ >= MAX_READS ||
	    snapshot_peek(gs->s->snap, gs->s->blocks[block].addr, buf, len) != 0)
		return 0;
	return len;
}

static u64 scan_glib_word_at(const struct glib_search *gs, const u8 *buf, size_t at)
{
	return region_word(gs->s->snap, buf + at);
}

static int add_type(struct glib_search *gs, u32 block, taddr_t addr)
{
	int err = array_reserve(gs->types, gs->max, gs->nr + 1);

	if (err || scan_glib_get(gs->seen, block))
		return err;
	scan_glib_set(gs->seen, block);
	gs->types[gs->nr++] = (struct type){ block, addr };
	return 0;
}

static void add_to_filter(struct glib_search *gs, u32 block)
{
	u32 bit = glib_filter_bit(gs->s->blocks[block].addr);

	gs->g->filter[bit / 64] |= 1ULL << (bit % 64);
}

static void add_class(struct glib_search *gs, u32 block)
{
	if (scan_glib_get(gs->g->classes, block))
		return;
	scan_glib_set(gs->g->classes, block);
	add_to_filter(gs, block);
	gs->g->nr_classes++;
}

static int add_fundamental(struct glib_search *gs, u32 block)
{
	if (gs->g->nr_fundamental == GLIB_MAX_FUNDAMENTAL)
		return 0;
	gs->g->fundamental[gs->g->nr_fundamental++] = block;
	add_to_filter(gs, block);
	return add_type(gs, block, 0);
}

/* @block is in an array that @type points to: is it the class of the type, or one of its children? */
static int look_at_member(struct glib_search *gs, const struct type *type, u32 block)
{
	u8 buf[TYPE_BYTES], w = gs->s->word_size;
	taddr_t addr = gs->s->blocks[block].addr;
	size_t len = scan_glib_get(gs->seen, block) ? 0 : read_block(gs, block, buf, sizeof(buf));

	if (len && type->addr && scan_glib_word_at(gs, buf, 0) == type->addr) {
		add_class(gs, block);
		return 0;
	}
	for (size_t at = w; at < len; at += w)
		if (scan_glib_word_at(gs, buf, at) == addr)
			return add_type(gs, block, addr);
	return 0;
}

/* The block that begins at the word, and is no type that is known already. Else BLOCK_NONE. */
static u32 block_at(const struct glib_search *gs, u64 word)
{
	u32 block = word - gs->s->lo < gs->s->hi - gs->s->lo ? scan_find_start(gs->s, word) : BLOCK_NONE;

	return block != BLOCK_NONE && scan_glib_get(gs->seen, block) ? BLOCK_NONE : block;
}

static int look_at_type(struct glib_search *gs, const struct type *type)
{
	u8 buf[TYPE_BYTES], w = gs->s->word_size;
	size_t len = read_block(gs, type->block, buf, sizeof(buf));
	int err = 0;

	for (size_t at = 0; at < len && !err; at += w) {
		u32 array = block_at(gs, scan_glib_word_at(gs, buf, at));
		size_t array_len = array == BLOCK_NONE ? 0 : read_block(gs, array, gs->array, ARRAY_BYTES);

		for (size_t i = 0; i < array_len && !err; i += w) {
			u32 member = block_at(gs, scan_glib_word_at(gs, gs->array, i));

			if (member != BLOCK_NONE)
				err = look_at_member(gs, type, member);
		}
	}
	return err;
}

/* Take words of libgobject's data that lead behind the first word of a block: fundamental types. */
static int look_at_data(struct glib_search *gs, taddr_t start, taddr_t end)
{
	u8 w = gs->s->word_size;
	int err = 0;

	end = end - start > MAX_DATA ? start + MAX_DATA : end;
	for (taddr_t at = start; at < end && !err; at += ARRAY_BYTES) {
		size_t len = end - at < ARRAY_BYTES ? (size_t)(end - at) : ARRAY_BYTES;

		if (snapshot_peek(gs->s->snap, at, gs->array, len) != 0)
			continue;
		for (size_t i = 0; i < len && !err; i += w) {
			u32 block = block_at(gs, scan_glib_word_at(gs, gs->array, i) - w);

			if (block != BLOCK_NONE && scan_block_size(gs->s, block) > w)
				err = add_fundamental(gs, block);
		}
	}
	return err;
}

static bool is_library(const struct snapshot_map *map, const char *name)
{
	const char *slash = strrchr(map->path, '/');

	return slash && strncmp(slash + 1, name, strlen(name)) == 0;
}

/* Begin at the data of libgobject, and at the memory directly behind, which is the rest of its data. */
static int find_fundamental(struct glib_search *gs)
{
	const struct snapshot *snap = gs->s->snap;
	int err = 0;

	for (size_t i = 0; i < snap->nr_maps && !err; i++) {
		const struct snapshot_map *map = &snap->maps[i];
		const struct snapshot_map *before = i ? map - 1 : NULL;
		bool is_rest = i && !map->ino && before->end == map->start &&
			       is_library(before, "libgobject-2.0.so");

		if (map->is_writable && (is_rest || is_library(map, "libgobject-2.0.so")))
			err = look_at_data(gs, map->start, map->end);
	}
	return err;
}

static int find_classes(struct glib_search *gs)
{
	size_t nr_words = gs->s->nr / 64 + 1;
	int err;

	gs->seen = calloc(nr_words, sizeof(*gs->seen));
	gs->g->classes = calloc(nr_words, sizeof(*gs->g->classes));
	if (!gs->seen || !gs->g->classes)
		return -ENOMEM;
	err = find_fundamental(gs);
	while (!err && gs->next < gs->nr) {
		struct type type = gs->types[gs->next++];

		err = look_at_type(gs, &type);
	}
	return err;
}

static bool has_library(const struct snapshot *snap, const char *name)
{
	for (size_t i = 0; i < snap->nr_maps; i++)
		if (is_library(&snap->maps[i], name))
			return true;
	return false;
}

int glib_find(struct glib_facts *g, const struct scan *s)
{
	auto_free struct glib_search *gs = NULL;
	int err;

	if (!s->nr || !has_library(s->snap, "libglib-2.0.so"))
		return 0;
	g->has_packed = s->word_size == 8 && !s->snap->is_big_endian && s->lo < UINT32_MAX;
	if (!has_library(s->snap, "libgobject-2.0.so"))
		return 0;
	gs = calloc(1, sizeof(*gs));
	if (!gs)
		return -ENOMEM;
	gs->s = s;
	gs->g = g;
	err = find_classes(gs);
	free(gs->seen);
	free(gs->types);
	return err;
}

void glib_fini(struct glib_facts *g)
{
	free(g->classes);
}

bool glib_is_class(const struct glib_facts *g, const struct scan *s, taddr_t addr)
{
	u32 block = glib_may_be_class(g, addr) ? scan_find_start(s, addr) : BLOCK_NONE;

	return block != BLOCK_NONE && scan_glib_get(g->classes, block);
}

bool glib_is_fundamental(const struct glib_facts *g, const struct scan *s, u32 block)
{
	if (!glib_may_be_class(g, s->blocks[block].addr))
		return false;
	for (size_t i = 0; i < g->nr_fundamental; i++)
		if (g->fundamental[i] == block)
			return true;
	return false;
}

bool glib_is_packed(const struct scan *s, u32 block, u32 slack)
{
	u64 size = scan_block_size(s, block);
	u64 asked = size < MIN_PACKED ? 0 : 1ULL << (63 - __builtin_clzll(size));

	return asked && size - asked <= slack;
}
