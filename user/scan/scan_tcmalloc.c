/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The table of live blocks that tcmalloc's debug libraries keep is no root. For user/scan/scan_regions.c. */
#include <string.h>

#include "user/scan/scan_regions.h"
#include "user/scan/scan_state.h"

/*
 * The debug libraries (libtcmalloc_debug, libtcmalloc_minimal_debug) note the address of each live block in entries, 64
 * in a piece of memory that they take from tcmalloc itself: no function sees it, so after an attach it would be a root
 * that holds every block. All pieces are in a list, each with the next one in its first word. The head of the list is
 * the last of five words: table, free entries, function for memory, function to free it, list. A variable of the
 * library points to them. Larger pieces hold no addresses of blocks; they begin with bytes that are dead, too.
 */

enum {
	WORD = 8,
	PIECE = 4096,
	NR_MAP_WORDS = 5,
	TAKE_AT = 2, /* in words: the two functions */
	GIVE_AT = 3,
	LIST_AT = 4,
	MAX_DATA = 8 << 20,	   /* bytes of the library's data */
	MAX_PIECES = 1 << 18,	   /* with 16 million blocks */
	PIECE_BYTES = 8 + 64 * 24, /* with 64 entries of three words */
};

static bool is_debug_library(const struct snapshot_map *map)
{
	const char *name = strrchr(map->path, '/');

	return map->ino && name && strncmp(name, "/libtcmalloc", 12) == 0 && strstr(name, "_debug.so");
}

static bool is_code_of(const struct snapshot *snap, taddr_t addr, const char *path)
{
	const struct snapshot_map *map = snapshot_map_find(snap, addr);

	return map && map->is_executable && strcmp(map->path, path) == 0;
}

/* Memory that the allocator may have taken, of @len bytes at least. */
static bool may_be_taken(const struct snapshot *snap, taddr_t addr, u64 len)
{
	const struct snapshot_map *map = addr && addr % WORD == 0 ? snapshot_map_find(snap, addr) : NULL;

	return map && map->is_writable && !map->is_shared && !map->ino && map->end - addr >= len;
}

/* The first piece in the list, if the five words are at @addr; 0 if not. */
static taddr_t list_at(const struct scan *s, taddr_t addr, const char *path)
{
	u64 words[NR_MAP_WORDS];

	if (!may_be_taken(s->snap, addr, sizeof(words)) ||
	    snapshot_peek(s->snap, addr, words, sizeof(words)) != 0 ||
	    !is_code_of(s->snap, words[TAKE_AT], path) || !is_code_of(s->snap, words[GIVE_AT], path))
		return 0;
	return words[LIST_AT];
}

static int add_list(struct region_list *list, const struct scan *s, taddr_t at)
{
	int err = 0;

	for (u32 i = 0; i < MAX_PIECES && may_be_taken(s->snap, at, PIECE_BYTES) && !err; i++) {
		err = region_add_dead(list, at, at + PIECE_BYTES);
		if (snapshot_peek(s->snap, at, &at, sizeof(at)) != 0)
			break;
	}
	return err;
}

/* Search the data [start, end) of the library at @path for a variable that points to the five words. */
static taddr_t find_list(const struct scan *s, taddr_t start, taddr_t end, const char *path)
{
	u64 words[PIECE / WORD];
	taddr_t found = 0;

	for (taddr_t at = start; at < end && at - start < MAX_DATA && !found; at += PIECE) {
		if (snapshot_peek(s->snap, at, words, PIECE) != 0)
			continue;
		for (size_t i = 0; i < PIECE / WORD && !found; i++)
			found = list_at(s, words[i], path);
	}
	return found;
}

int region_find_tcmalloc(struct region_list *list, const struct scan *s)
{
	const struct snapshot *snap = s->snap;
	taddr_t found = 0;

	if (s->word_size != WORD || snap->is_big_endian)
		return 0;
	for (size_t i = 0; i < snap->nr_maps && !found; i++) {
		const struct snapshot_map *map = &snap->maps[i], *next = map + 1;

		if (!map->is_writable || !is_debug_library(map))
			continue;
		found = find_list(s, map->start, map->end, map->path);
		/* The .bss of the library is partly in the mapping behind. */
		if (!found && i + 1 < snap->nr_maps && next->start == map->end && !next->ino)
			found = find_list(s, next->start, next->end, map->path);
	}
	return found ? add_list(list, s, found) : 0;
}
