/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The buffers of glibc's streams are no roots. For user/scan/scan_regions.c. */
#include <string.h>

#include "user/scan/scan_regions.h"
#include "user/scan/scan_state.h"

/*
 * A stream allocates its buffer at its first use and does not clear it. So the buffer holds what the block before it
 * held, and old pointers there would make lost blocks reachable as long as the stream is open.
 *
 * The streams 0, 1 and 2 lie in the data of libc. The others are in a list whose head lies there, too. A stream begins
 * with a number by which glibc knows it, and ends with the address of a table in libc, which is another one for
 * streams in memory: their buffers are the program's. The program's are also those that setvbuf() was given.
 *
 * exit() takes the buffers away and notes them elsewhere in the streams. Only the streams 0, 1 and 2 surely have
 * nothing there before.
 */

enum {
	PIECE = 4096,
	MAX_DATA = 256 << 10, /* bytes of libc's data in which streams are searched */
	MAX_STREAMS = 4096,
	MAX_BUFFER = 1 << 20, /* bytes */
	MAX_TABLES = 3,
	WORD = 8,
	MAGIC = 0xfbad,	     /* the upper half of the first 32 bits */
	IS_USERS_BUFFER = 1, /* a bit of the lower half */
	BUFFER_AT = 7,	     /* in words; its end is in the next word */
	NEXT_AT = 13,	     /* in words: the next stream */
	OLD_BUFFER_AT = 22,  /* in words: the buffer that exit() took away */
	SHORT_AT = 131,	     /* in bytes: a buffer in the stream itself, of one byte */
	DESCRIPTOR_AT = 14,  /* in words: the file descriptor, 32 bits */
	TABLE_AT = 27,	     /* in words */
	NR_STREAM_WORDS = 28,
};

struct stream_finder {
	const struct scan *s;
	struct region_list *list;
	const char *libc;	    /* path of the file that has the streams */
	taddr_t tables[MAX_TABLES]; /* of the streams 0, 1 and 2 */
	size_t nr_tables;
	size_t nr_streams; /* that were read so far */
};

/* Read the stream at @addr; false if there is none. */
static bool read_stream(const struct stream_finder *f, taddr_t addr, u64 *words)
{
	u8 bytes[NR_STREAM_WORDS * WORD];
	u32 first;

	if (addr % WORD || snapshot_peek(f->s->snap, addr, &first, sizeof(first)) != 0 ||
	    first >> 16 != MAGIC || snapshot_peek(f->s->snap, addr, bytes, sizeof(bytes)) != 0)
		return false;
	for (size_t i = 0; i < NR_STREAM_WORDS; i++)
		words[i] = region_word(f->s->snap, bytes + i * WORD);
	return true;
}

static bool is_in_libc(const struct stream_finder *f, taddr_t addr)
{
	const struct snapshot_map *map = snapshot_map_find(f->s->snap, addr);

	return map && strcmp(map->path, f->libc) == 0;
}

static bool has_known_table(const struct stream_finder *f, const u64 *stream)
{
	for (size_t i = 0; i < f->nr_tables; i++)
		if (f->tables[i] == stream[TABLE_AT])
			return true;
	return false;
}

/* The buffer of @stream is dead, if it is a block of its own, or a part of memory where no block is known. */
static int add_buffer(const struct stream_finder *f, const u64 *stream)
{
	taddr_t start = stream[BUFFER_AT], end = stream[BUFFER_AT + 1];
	const struct snapshot_map *map = start ? snapshot_map_find(f->s->snap, start) : NULL;
	u32 block;

	if (!map || map->ino || !map->is_writable || stream[0] & IS_USERS_BUFFER || end <= start ||
	    end - start > MAX_BUFFER || end > map->end || region_has_point(f->list, start, end))
		return 0;
	block = f->s->nr ? scan_lookup(f->s, start) : BLOCK_NONE;
	if (block != BLOCK_NONE && (f->s->blocks[block].addr != start || scan_block_end(f->s, block) < end))
		return 0;
	return region_add_dead(f->list, start, end);
}

/* exit() took the buffer of the stream at @addr away, if the stream has its one byte as buffer now. */
static int add_old_buffer(const struct stream_finder *f, taddr_t addr, const u64 *stream)
{
	u32 block = f->s->nr ? scan_find_start(f->s, stream[OLD_BUFFER_AT]) : BLOCK_NONE;

	if (!is_in_libc(f, addr) || block == BLOCK_NONE || !(stream[0] & IS_USERS_BUFFER) ||
	    stream[BUFFER_AT] != addr + SHORT_AT || scan_block_size(f->s, block) > MAX_BUFFER ||
	    region_has_point(f->list, stream[OLD_BUFFER_AT], scan_block_end(f->s, block)))
		return 0;
	return region_add_dead(f->list, stream[OLD_BUFFER_AT], scan_block_end(f->s, block));
}

/* One of the streams 0, 1 and 2 may lie at @addr in the data of libc. */
static void take_standard(struct stream_finder *f, taddr_t addr)
{
	u64 words[NR_STREAM_WORDS];

	if (f->nr_tables < MAX_TABLES && read_stream(f, addr, words) && (u32)words[DESCRIPTOR_AT] <= 2 &&
	    is_in_libc(f, words[TABLE_AT]))
		f->tables[f->nr_tables++] = words[TABLE_AT];
}

/* Add the buffers of the stream at @addr, if there is one, and of those that follow it in the list. */
static int add_streams(struct stream_finder *f, taddr_t addr)
{
	u64 words[NR_STREAM_WORDS];
	int err = 0;

	while (addr && !err && f->nr_streams < MAX_STREAMS && read_stream(f, addr, words)) {
		f->nr_streams++;
		if (has_known_table(f, words))
			err = add_buffer(f, words);
		if (!err && has_known_table(f, words))
			err = add_old_buffer(f, addr, words);
		addr = words[NEXT_AT];
	}
	return err;
}

/* Could a stream that the program has opened lie at @addr? */
static bool may_be_opened(const struct stream_finder *f, taddr_t addr)
{
	const struct snapshot_map *map =
		addr && addr % WORD == 0 ? snapshot_map_find(f->s->snap, addr) : NULL;

	return map && map->is_writable && !map->ino;
}

/* Search libc's data [start, end): first the tables of the streams 0, 1 and 2, then all streams. */
static int search_data(struct stream_finder *f, taddr_t start, taddr_t end, bool is_first)
{
	u8 bytes[PIECE];
	int err = 0;

	if (end - start > MAX_DATA)
		end = start + MAX_DATA;
	for (taddr_t at = start; at < end && !err; at += PIECE) {
		if (snapshot_peek(f->s->snap, at, bytes, PIECE) != 0)
			continue;
		for (size_t i = 0; i < PIECE && !err; i += WORD) {
			u64 word = region_word(f->s->snap, bytes + i);
			bool is_stream = (u32)word >> 16 == MAGIC;

			if (is_first && is_stream)
				take_standard(f, at + i);
			else if (!is_first && (is_stream || may_be_opened(f, word)))
				err = add_streams(f, is_stream ? at + i : word);
		}
	}
	return err;
}

/* The path of glibc; that of the program if it is linked statically. */
static const char *libc_path(const struct snapshot *snap)
{
	for (size_t i = 0; i < snap->nr_maps; i++)
		if (region_is_libc(&snap->maps[i]))
			return snap->maps[i].path;
	return snap->nr_maps ? snap->maps[0].path : "";
}

/* The data of libc. */
static int search_libc(struct stream_finder *f, bool is_first)
{
	const struct snapshot *snap = f->s->snap;
	int err = 0;

	for (size_t i = 0; i < snap->nr_maps && !err; i++) {
		const struct snapshot_map *map = &snap->maps[i];

		if (map->is_writable && !map->is_shared && map->ino && strcmp(map->path, f->libc) == 0)
			err = search_data(f, map->start, map->end, is_first);
	}
	return err;
}

int region_find_stdio(struct region_list *list, const struct scan *s)
{
	struct stream_finder f = { .s = s, .list = list, .libc = libc_path(s->snap) };
	int err;

	/* A running thread may close a stream, and the block is used for something else. */
	if (s->word_size != WORD || s->snap->is_big_endian || s->snap->nr_unstopped)
		return 0;
	err = search_libc(&f, true);
	return err || !f.nr_tables ? err : search_libc(&f, false);
}
