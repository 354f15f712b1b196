/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reads the memory of the moment for walkers, and tells types apart by the first word of blocks. */
#include "user/census/census_walk.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "user/lib/array.h"
#include "user/lib/clock.h"
#include "user/scan/snapshot_memory.h"

enum {
	FIRST_WINDOW = 4096,
	MIN_TEXT = 4, /* letters that make a string */
};

const struct census_walker census_walkers[] = {
	{ "jemalloc", true, jemalloc_is_there, jemalloc_walk },
	{ "mimalloc", true, mimalloc_is_there, mimalloc_walk },
	{ "tcmalloc", false, tcmalloc_is_there, tcmalloc_walk },
	{ "musl", false, musl_is_there, musl_walk },
	{ "glibc", false, glibc_is_there, glibc_walk },
	{ NULL, false, NULL, NULL },
};

int census_walk_init(struct census_walk *w, struct snapshot *snap, struct census_blocks *out, u64 deadline_ns)
{
	int err;

	*w = (struct census_walk){ .snap = snap,
				   .out = out,
				   .deadline_ns = deadline_ns,
				   .page = (u64)sysconf(_SC_PAGESIZE),
				   .w = snap->word_size,
				   .window_size = FIRST_WINDOW };
	if (snap->nr_maps) {
		w->maps_start = snap->maps[0].start;
		w->maps_end = snap->maps[snap->nr_maps - 1].end;
	}
	w->window = malloc(CENSUS_WINDOW);
	if (!w->window)
		return -ENOMEM;
	err = array_reserve(out->types, out->max_types, NR_CENSUS_FIRST);
	if (err)
		return err;
	for (u32 i = 0; i < NR_CENSUS_FIRST; i++)
		out->types[i] = (struct census_type){ .first = i };
	out->nr_types = NR_CENSUS_FIRST;
	return 0;
}

void census_walk_fini(struct census_walk *w)
{
	free(w->window);
	hash_index_fini(&w->types);
	w->window = NULL;
}

u64 census_word_of(const struct census_walk *w, const u8 *p)
{
	u64 value = 0;

	/* The usual case, which is that of this machine. */
	if (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ && w->w == 8 && !w->snap->is_big_endian) {
		memcpy(&value, p, sizeof(value));
		return value;
	}
	for (u8 i = 0; i < w->w; i++)
		value = value << 8 | p[w->snap->is_big_endian ? i : w->w - 1 - i];
	return value;
}

/*
 * Read [@addr, @addr + @len) of @map. Shared memory and devices are left alone: reading them may hang or have effects.
 * A page of a file that is not in memory may come from a disk that hangs.
 */
static bool read_map(const struct census_walk *w, const struct snapshot_map *map, taddr_t addr, u8 *buf,
		     size_t len)
{
	if (map->is_shared || memory_is_device(map) || len > map->end - addr)
		return false;
	return !(map->ino ? snapshot_peek : snapshot_fetch)(w->snap, addr, buf, len);
}

static bool census_walk_read_words(const struct census_walk *w, taddr_t addr, u8 *buf, size_t len)
{
	while (len) {
		const struct snapshot_map *map = snapshot_map_find(w->snap, addr);
		size_t part;

		if (!map)
			return false;
		part = map->end - addr < len ? (size_t)(map->end - addr) : len;
		if (!read_map(w, map, addr, buf, part))
			return false;
		addr += part;
		buf += part;
		len -= part;
	}
	return true;
}

bool census_words(const struct census_walk *w, taddr_t addr, u64 *words, u32 nr)
{
	u8 bytes[8 * 8] = { 0 };

	if (addr % w->w || nr > 8 || !census_walk_read_words(w, addr, bytes, (size_t)nr * w->w))
		return false;
	for (u32 i = 0; i < nr; i++)
		words[i] = census_word_of(w, bytes + (size_t)i * w->w);
	return true;
}

const u8 *census_window(struct census_walk *w, taddr_t addr, size_t len)
{
	bool goes_on = addr >= w->window_start && addr - w->window_start <= w->window_len + FIRST_WINDOW;
	const struct snapshot_map *map;
	size_t room = 0;

	if (addr >= w->window_start && addr - w->window_start <= w->window_len &&
	    len <= w->window_len - (addr - w->window_start))
		return w->window + (addr - w->window_start);
	if (goes_on && w->window_size < CENSUS_WINDOW)
		w->window_size *= 2;
	else if (!goes_on)
		w->window_size = FIRST_WINDOW;
	map = snapshot_map_find(w->snap, addr);
	if (map && map->is_readable)
		room = map->end - addr < w->window_size ? (size_t)(map->end - addr) : w->window_size;
	w->window_start = addr;
	w->window_len = 0;
	/* A page that cannot be read spoils a large window only. */
	if (room && read_map(w, map, addr, w->window, room))
		w->window_len = room;
	else if (room && room >= len && read_map(w, map, addr, w->window, len))
		w->window_len = len;
	return w->window_len >= len ? w->window : NULL;
}

void census_copy_data(const struct census_walk *w, taddr_t start, u8 *buf, size_t len)
{
	for (size_t at = 0; at < len;) {
		size_t part = w->page - (start + at) % w->page;

		part = part < len - at ? part : len - at;
		if (snapshot_peek(w->snap, start + at, buf + at, part) != 0)
			memset(buf + at, 0, part);
		at += part;
	}
}

/* The mapping at @word, mostly that of the word before. */
static const struct snapshot_map *first_map(struct census_walk *w, u64 word)
{
	const struct snapshot_map *map = w->type_map;

	if (map && word >= map->start && word < map->end)
		return map;
	map = w->pointer_map;
	if (map && word >= map->start && word < map->end)
		return map;
	map = word < w->maps_start || word >= w->maps_end ? NULL : snapshot_map_find(w->snap, word);
	if (map)
		*(map->ino ? &w->type_map : &w->pointer_map) = map;
	return map;
}

u32 census_first_text(const struct snapshot *snap, u64 word, char *text)
{
	u8 w = snap->word_size;
	u32 len = 0;

	for (; len < w; len++) {
		u8 byte = (u8)(word >> 8 * (snap->is_big_endian ? w - 1U - len : len));

		if (byte < ' ' || byte > '~') {
			text[len] = 0;
			return !byte && len >= MIN_TEXT ? len : 0;
		}
		text[len] = (char)byte;
	}
	text[len] = 0;
	return len;
}

static enum census_first first_of(struct census_walk *w, u64 word)
{
	char text[CENSUS_WORD_TEXT];
	const struct snapshot_map *map = word ? first_map(w, word) : NULL;

	if (!word)
		return FIRST_ZERO;
	if (map && map->ino && map->is_readable && !map->is_shared && word % w->w == 0)
		return FIRST_FILE;
	if (map)
		return FIRST_POINTER;
	if (census_first_text(w->snap, word, text))
		return FIRST_TEXT;
	return word >> (w->w * 4) ? FIRST_OTHER : FIRST_NUMBER;
}

/* The type of @first and @word, which is new if there is none. */
static int type_with_word(struct census_walk *w, enum census_first first, u64 word, u32 *type)
{
	struct census_blocks *out = w->out;
	u64 hash = hash_u64(word);
	u32 item, at = 0;
	int err;

	while ((item = hash_index_next(&w->types, hash, &at)) != HASH_NO_ITEM)
		if (out->types[item].word == word) {
			*type = item;
			return 0;
		}
	*type = first == FIRST_TEXT ? FIRST_OTHER : FIRST_UNREAD;
	if (out->nr_types >= CENSUS_MAX_TYPES || (first == FIRST_TEXT && w->nr_texts == CENSUS_MAX_TEXTS))
		return 0;
	err = array_reserve(out->types, out->max_types, out->nr_types + 1);
	if (!err)
		err = hash_index_add(&w->types, hash, (u32)out->nr_types);
	if (err)
		return err;
	w->nr_texts += first == FIRST_TEXT;
	*type = (u32)out->nr_types;
	out->types[out->nr_types++] = (struct census_type){ .word = word, .first = first };
	return 0;
}

int census_type_of(struct census_walk *w, u64 word, u32 *type)
{
	enum census_first first = first_of(w, word);

	*type = first;
	return first == FIRST_FILE || first == FIRST_TEXT ? type_with_word(w, first, word, type) : 0;
}

int census_check_time(const struct census_walk *w)
{
	return w->deadline_ns && clock_now_ns() > w->deadline_ns ? -ETIME : 0;
}

bool census_is_anonymous(const struct snapshot_map *map)
{
	return !map->ino && map->is_writable && map->is_readable && !map->is_shared &&
	       (!map->path[0] || strncmp(map->path, "[anon:", 6) == 0 || strcmp(map->path, "[heap]") == 0);
}

static bool is_among(const char *name, const char *const *names, size_t nr)
{
	for (size_t i = 0; i < nr; i++)
		if (!strcmp(name, names[i]))
			return true;
	return false;
}

const char *census_stranger(const struct snapshot *snap, const char *const *known, size_t nr)
{
	static const struct {
		const char *file, *name;
	} rows[] = {
		{ "/libjemalloc", "jemalloc" },	    { "/libtcmalloc", "tcmalloc" },
		{ "/libmimalloc", "mimalloc" },	    { "/libhoard", "Hoard" },
		{ "/libsnmalloc", "snmalloc" },	    { "/librpmalloc", "rpmalloc" },
		{ "/libscudo", "scudo" },	    { "/libtbbmalloc", "the malloc of TBB" },
		{ "/libasan", "AddressSanitizer" }, { "/libhardened_malloc", "hardened_malloc" },
	};

	for (size_t i = 0; i < snap->nr_maps; i++) {
		const char *file = strrchr(snap->maps[i].path, '/');

		for (size_t r = 0; file && r < ARRAY_SIZE(rows); r++)
			if (!strncmp(file, rows[r].file, strlen(rows[r].file)) &&
			    !is_among(rows[r].name, known, nr))
				return rows[r].name;
	}
	return NULL;
}
