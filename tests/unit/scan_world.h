/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A process that exists only in a test: mappings, words, blocks, and a scan of them. */
#pragma once

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "user/heap/heap.h"
#include "user/scan/scan.h"
#include "user/scan/snapshot_make.h"

enum { PAGE = 4096, MAX_BLOCKS = 4096, MAX_MAPS = 8, MAX_WORDS = 16, MAX_THREADS = 4 };

#define GLOBALS 0x10000000ULL /* a file's data */
#define TEXT	0x11000000ULL
#define HEAP	0x20000000ULL
#define ANON	0x30000000ULL
#define STACK	0x40000000ULL

struct world {
	struct snapshot snap;
	struct snapshot_map maps[MAX_MAPS];
	u8 *bytes[MAX_MAPS];
	size_t next;  /* map to deliver */
	size_t piece; /* bytes of it delivered */
	struct snapshot_word words[MAX_WORDS];
	struct snapshot_thread threads[MAX_THREADS];
	struct heap_block blocks[MAX_BLOCKS];
	size_t nr_blocks;
	size_t fail_after; /* chunks, then -ETIME; 0 = never */
	struct scan_options options;
	struct scan *scan;
};

static struct world w;

static int world_next(struct snapshot_chunk *chunk)
{
	while (w.next < w.snap.nr_maps && !w.maps[w.next].is_writable)
		w.next++;
	if (w.next == w.snap.nr_maps)
		return 0;
	if (w.fail_after && --w.fail_after == 0)
		return -ETIME;
	*chunk = (struct snapshot_chunk){ .map = (u32)w.next, .addr = w.maps[w.next].start + w.piece };
	chunk->data = w.bytes[w.next] + w.piece;
	chunk->len = w.maps[w.next].end - chunk->addr < PAGE ? w.maps[w.next].end - chunk->addr : PAGE;
	w.piece += PAGE;
	if (chunk->addr + chunk->len == w.maps[w.next].end)
		w.next++, w.piece = 0;
	return 1;
}

/* Each chunk is a piece; as threads may do, the next ones are shown before one is handed over. */
static int world_read(struct snapshot *s, const struct snapshot_visitor *v)
{
	u32 nr_shown = 0, nr_done = 0;
	struct snapshot_chunk chunk;
	int nr = 1, err = 0;

	(void)s;
	while (!err && (nr == 1 || nr_done < nr_shown)) {
		if (nr == 1 && nr_shown - nr_done < SNAPSHOT_PARTS && (nr = world_next(&chunk)) == 1)
			err = v->look(v->ctx, nr_shown++ % SNAPSHOT_PARTS, &chunk);
		else if (nr_done < nr_shown)
			err = v->done(v->ctx, nr_done++ % SNAPSHOT_PARTS);
	}
	return err ? err : nr;
}

static u8 *at(taddr_t addr)
{
	for (size_t i = 0; i < w.snap.nr_maps; i++)
		if (addr >= w.maps[i].start && addr < w.maps[i].end)
			return w.bytes[i] + (addr - w.maps[i].start);
	return NULL;
}

static int world_peek(struct snapshot *s, taddr_t addr, void *buf, size_t len)
{
	(void)s;
	if (!at(addr) || !at(addr + len - 1))
		return -EIO;
	memcpy(buf, at(addr), len);
	return 0;
}

static void world_resume(struct snapshot *s)
{
	(void)s;
}

static const struct snapshot_ops world_ops = {
	.name = "world", .read = world_read, .peek = world_peek, .resume = world_resume, .free = world_resume
};

static void add_map(taddr_t start, u64 size, const char *perms, u64 ino, const char *path)
{
	struct snapshot_map *map = &w.maps[w.snap.nr_maps];

	*map = (struct snapshot_map){ .start = start, .end = start + size, .ino = ino };
	map->path = (char *)(uintptr_t)path;
	map->is_readable = perms[0] == 'r';
	map->is_writable = perms[1] == 'w';
	map->is_executable = perms[2] == 'x';
	map->is_shared = perms[3] == 's';
	w.bytes[w.snap.nr_maps++] = calloc(1, size);
}

static void put(taddr_t where, u64 value)
{
	u8 *p = at(where);

	assert_non_null(p);
	for (u8 i = 0; i < w.snap.word_size; i++)
		p[w.snap.is_big_endian ? w.snap.word_size - 1 - i : i] = (u8)(value >> (8 * i));
}

static inline void add_word(u64 value, u32 owner, u32 where)
{
	w.words[w.snap.nr_words++] = (struct snapshot_word){ .value = value, .owner = owner, .where = where };
}

static int setup(void **state)
{
	(void)state;
	memset(&w, 0, sizeof(w));
	w.snap = (struct snapshot){ .ops = &world_ops, .pid = 1, .word_size = 8, .red_zone = 128 };
	w.snap.maps = w.maps;
	w.snap.words = w.words;
	w.snap.threads = w.threads;
	add_map(GLOBALS, 2 * PAGE, "rw-p", 7, "/bin/x");
	add_map(TEXT, PAGE, "r-xp", 7, "/bin/x");
	add_map(HEAP, 256 * PAGE, "rw-p", 0, "[heap]");
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	scan_free(w.scan);
	for (size_t i = 0; i < w.snap.nr_maps; i++)
		free(w.bytes[i]);
	return 0;
}
