/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A process that exists only in a test, whose memory has the books of glibc's malloc, for walks of them. */
#pragma once

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "user/census/census_walk.h"
#include "user/scan/snapshot_make.h"

/* The layout of 2.28 with words of 8 bytes. */
enum {
	TOP = 96,
	BINS = 112,
	NEXT = BINS + 127 * 16 + 16,
	SYSTEM = NEXT + 24,
	ARENA_SIZE = NEXT + 40,
	HEADER = 0x30, /* of a heap */
	SIZE = 0x20000,
	LIBC_SIZE = 0x10000,
	CHUNK = 0x40,
	NR_CHUNKS = 10,
	GAP = 4 << 20,
};

#define LIBC	 0x7f0000000000
#define MAIN	 (LIBC + 0x800)
#define FIRST	 0x10000000ULL
#define ARENA	 (FIRST + HEADER)
#define SECOND	 0x14000000ULL
#define THIRD	 0x18000000ULL
#define HUGE_MAP 0x100000000000
#define BRK	 0x20000000ULL

struct region {
	struct snapshot_map map;
	u8 *bytes; /* owned; NULL = there is nothing */
	u64 nr_reads;
};

struct process {
	struct snapshot snap;
	struct snapshot_map maps[8];
	struct region regions[8];
	struct census_blocks blocks;
};

static inline int fake_peek(struct snapshot *s, taddr_t addr, void *buf, size_t len)
{
	struct process *p = (struct process *)s;
	const struct snapshot_map *map = snapshot_map_find(s, addr);
	struct region *r = map ? &p->regions[map - p->maps] : NULL;

	if (!r)
		return -ENODATA;
	r->nr_reads++;
	if (!r->bytes || len > map->end - addr)
		return -ENODATA;
	memcpy(buf, r->bytes + (addr - map->start), len);
	return 0;
}

static const struct snapshot_ops fake_ops = { .name = "fake", .peek = fake_peek };

/* Add a mapping; addresses ascend. */
static inline struct region *add(struct process *p, taddr_t start, u64 len, bool has_bytes)
{
	size_t i = p->snap.nr_maps++;

	assert_true(i < ARRAY_SIZE(p->maps));
	p->maps[i] = (struct snapshot_map){ .start = start,
					    .end = start + len,
					    .path = (char *)(uintptr_t) "",
					    .is_readable = true,
					    .is_writable = true };
	if (has_bytes) {
		p->regions[i].bytes = calloc(1, len);
		assert_non_null(p->regions[i].bytes);
	}
	return &p->regions[i];
}

static inline void put(struct process *p, taddr_t at, u64 word)
{
	const struct snapshot_map *map = snapshot_map_find(&p->snap, at);

	assert_non_null(map);
	memcpy(p->regions[map - p->maps].bytes + (at - map->start), &word, sizeof(word));
}

static inline struct process *process_new(void)
{
	struct process *p = calloc(1, sizeof(*p));

	assert_non_null(p);
	p->snap = (struct snapshot){ .ops = &fake_ops, .word_size = 8, .maps = p->maps };
	return p;
}

static inline void process_free(struct process *p)
{
	for (size_t i = 0; i < p->snap.nr_maps; i++)
		free(p->regions[i].bytes);
	census_blocks_fini(&p->blocks);
	free(p);
}

/* Add the data of libc: no mapping follows it. */
static inline void add_libc(struct process *p)
{
	add(p, LIBC, LIBC_SIZE, true);
	p->maps[p->snap.nr_maps - 1].ino = 1;
}
