/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The memory of the piece of code inside a target, as the piece (inline/piece.c) and heaptap see it. One region of
 * addresses: code, a page that is empty in a forked child, state of threads, and what heaptap shares: settings, rings,
 * tables. Of the places of threads, the rings and the tables only as many are mapped as are needed: nothing is mapped
 * behind them, so that they can grow.
 */
#pragma once

#include "bpf/maps.h"
#include "call/probe.h"
#include "inline/record.h"
#include "inline/sequence.h"
#include "inline/thread.h"

enum {
	PIECE_FIRST_PLACES = 16, /* that are mapped from the start */
	PIECE_FIRST_SHARDS = 2,
	PIECE_MAX_PROBES = 2048,
	PIECE_MAX_NESTED = 3,	  /* hooks that signals interrupt, one in the other */
	PIECE_MAX_SHARDS = 128,	  /* of unwind tables: 32 million rows */
	PIECE_MAX_STACKS = 16384, /* regions of memory that stacks may lie in */
	PIECE_SEEN_SETS = 8192,	  /* a power of two: sets of stacks that were sent */
	PIECE_SEEN_SAMPLED = 256, /* where blocks are sampled: few stacks touch few pages */
	PIECE_SEEN_WAYS = 8,	  /* stacks in a set, a cache line */
	PIECE_PAGE = 4096,
	PIECE_CODE_BYTES = 24 * PIECE_PAGE,
	PIECE_PARK_BYTES = 1024 * PIECE_PAGE,	  /* for pages of files: user/inject/pages.h */
	PIECE_LEFT_OFFSET = PIECE_CODE_BYTES / 2, /* of the record of user/inject/left.h, not the piece's */
	PIECE_CONTROL_OFFSET = PIECE_CODE_BYTES,
	PIECE_PRIVATE_OFFSET = PIECE_CONTROL_OFFSET + PIECE_PAGE,
	/* Stubs look at the counters and keys, which share a page of page tables: none is in the cache at a wake. */
	PIECE_KEYS_OFFSET = PIECE_PRIVATE_OFFSET + __builtin_offsetof(struct piece_private, keys),
	PIECE_ALIGNMENT = PIECE_PAGE * PIECE_PAGE / sizeof(u64), /* bytes that such a page maps */
};

/* Bytes of whole pages. */
#define PIECE_PAGES(bytes) (((bytes) + PIECE_PAGE - 1) & ~(u64)(PIECE_PAGE - 1))

static const u64 piece_is_on = 0x6865617074617021;

/* The first bytes of the code: offsets of its entry points from there. */
struct piece_head {
	u32 enter;	/* where stubs go */
	u32 enter_call; /* where the stub of a function goes whose return address may be replaced */
	u32 returned;	/* the address that replaces return addresses */
};
/* Bytes below the stack pointer that hold where the piece goes to (entry_x86_64.S). */
enum { PIECE_BELOW_STACK = 16 };

struct piece_control { /* private to each process; all zero in a forked child, where nothing is recorded */
	u64 is_on;     /* piece_is_on */
};

/* PIECE_RET: a ret instruction; PIECE_END: _exit(). */
enum piece_kind { PIECE_ALLOC, PIECE_FREE, PIECE_INTERNAL_CALL, PIECE_RET, PIECE_END };
/* A stub tells the piece the index of the function and, above these bits, why it was called: enum piece_kind. */
enum { PIECE_KIND_SHIFT = 16 };

/* The end of the process, which waits for heaptap there. PIECE_ENDS is the target's word, all others are heaptap's. */
enum piece_end { PIECE_END_UNSEEN, PIECE_END_WATCHED, PIECE_ENDS, PIECE_MAY_END };

struct piece_probe {
	struct call_probe call;
	u64 ip;	   /* of the entry */
	u64 shape; /* enum piece_shape of the call */
};

/* Shared. heaptap believes nothing of what it reads here. */
struct piece_shared {
	/* Written by heaptap. */
	u32 is_paused, has_free_stacks;
	u32 is_sequence;  /* stamps are numbers of a sequence, not of the counter */
	u32 pid, epoch;	  /* as in the ids of stacks */
	u32 depth;	  /* frames per stack, 0 = none */
	u32 nr_places;	  /* of threads that are mapped, with their rings */
	u32 is_full;	  /* no more of them can be mapped */
	u64 sample_bytes; /* between samples, in the mean; 0 = all calls are recorded */
	u64 sample_seed;
	u64 nr_buckets; /* of sampled blocks; a power of two */
	u64 generation; /* grows with each change of the tables, of the depth, and of the stacks that heaptap has */
	/* Not beside what each call reads: each change takes the line from the target's cache. */
	_Alignas(64) u64 progress; /* grows while heaptap reads */
	/* Written by the target. */
	_Alignas(64) struct piece_sequence sequence;
	/* One line, at which heaptap looks often, in many targets. */
	_Alignas(64) u64 waited;  /* rounds of all threads that have waited */
	u32 nr_waiting, nr_parts; /* threads that do; parts of rings that were written: PIECE_RING_PART */
	u32 nr_used;		  /* places that threads have taken, one after the other */
	u32 is_dropping;	  /* nobody reads the rings */
	u32 nr_unknown_stacks;	  /* times that a stack lay in none of piece_tables.stacks */
	u32 end;		  /* enum piece_end */
	u64 lost_allocs, lost_frees, lost_stacks, abandoned;
	_Alignas(64) struct piece_wish wish;
	_Alignas(64) struct piece_probe probes[PIECE_MAX_PROBES];
	/* Ids of stacks that heaptap has. */
	_Alignas(64) u64 seen[PIECE_SEEN_SETS][PIECE_SEEN_WAYS];
	_Alignas(4096) struct piece_ring rings[PIECE_MAX_THREADS];
};

/* Memory that a stack may lie in: it can be read up to @end. */
struct piece_region {
	u64 start, end;
};

/* Written by heaptap; the target can only read it. */
struct piece_tables {
	u64 max_wait; /* for room in a ring, while heaptap reads nothing; rounds of one CPU (inline/wait.h) */
	u32 nr_cpus;
	u32 seq;		 /* of what follows up to regions: odd during a change */
	u32 nr_regions, maps_at; /* maps_at: the latest of maps */
	/* The stack of the first thread, and the end of the mapping below it: no other memory lies between them. */
	u64 stack_low, stack_top;
	struct piece_region regions[PIECE_MAX_STACKS]; /* by address */
	_Alignas(4096) struct unwind_maps maps[2];
	_Alignas(4096) struct shard shards[PIECE_MAX_SHARDS];
};

#define PIECE_SAMPLES_MAPPED(nr)                                                                             \
	PIECE_PAGES(__builtin_offsetof(struct piece_samples, buckets) + (nr) * sizeof(struct piece_bucket))

_Static_assert(PIECE_KEYS_OFFSET + PIECE_MAX_THREADS * sizeof(struct piece_key) <= PIECE_ALIGNMENT,
	       "one page of page tables");
#define PIECE_PRIVATE_BYTES PIECE_PAGES(sizeof(struct piece_private))
/* Parked pages are right behind private memory, by which readers of maps know them (user/lib/maps.h). */
#define PIECE_PARK_OFFSET   (PIECE_PRIVATE_OFFSET + PIECE_PRIVATE_BYTES)
#define PIECE_PLACES_OFFSET (PIECE_PARK_OFFSET + PIECE_PARK_BYTES)
#define PIECE_PLACES_BYTES  PIECE_PAGES(PIECE_MAX_THREADS * sizeof(struct piece_place))
#define PIECE_SHARED_OFFSET (PIECE_PLACES_OFFSET + PIECE_PLACES_BYTES)
#define PIECE_SHARED_BYTES  PIECE_PAGES(sizeof(struct piece_shared))
#define PIECE_TABLES_OFFSET (PIECE_SHARED_OFFSET + PIECE_SHARED_BYTES)
#define PIECE_TABLES_BYTES  PIECE_PAGES(sizeof(struct piece_tables))
/* Sampled blocks. A forked child has a copy, which is right: it has the blocks. */
#define PIECE_SAMPLES_OFFSET (PIECE_TABLES_OFFSET + PIECE_TABLES_BYTES)
#define PIECE_SAMPLES_BYTES  PIECE_PAGES(sizeof(struct piece_samples))
#define PIECE_REGION_BYTES   (PIECE_SAMPLES_OFFSET + PIECE_SAMPLES_BYTES)

/* Of the file behind all but the code and the parked pages: its parts follow each other as in the region. */
#define PIECE_FILE_PLACES  PIECE_PRIVATE_BYTES
#define PIECE_FILE_SHARED  (PIECE_FILE_PLACES + PIECE_PLACES_BYTES)
#define PIECE_FILE_TABLES  (PIECE_FILE_SHARED + PIECE_SHARED_BYTES)
#define PIECE_FILE_SAMPLES (PIECE_FILE_TABLES + PIECE_TABLES_BYTES)
#define PIECE_FILE_BYTES   (PIECE_FILE_SAMPLES + PIECE_SAMPLES_BYTES)

/* The parts that grow, with @nr places or shards. */
#define PIECE_PLACES_MAPPED(nr) PIECE_PAGES((nr) * sizeof(struct piece_place))
#define PIECE_SHARED_MAPPED(nr)                                                                              \
	PIECE_PAGES(__builtin_offsetof(struct piece_shared, rings) + (nr) * sizeof(struct piece_ring))
#define PIECE_TABLES_MAPPED(nr)                                                                              \
	PIECE_PAGES(__builtin_offsetof(struct piece_tables, shards) + (nr) * sizeof(struct shard))
