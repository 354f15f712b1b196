/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The memory of the piece of code inside a target, as the piece (inline/piece.c) and heaptap see it. One region:
 * code, a page that is empty in a forked child, state of threads, and what heaptap shares: settings and rings.
 */
#pragma once

#include "bpf/maps.h"
#include "call/inflight.h"
#include "call/probe.h"
#include "inline/record.h"
#include "inline/sequence.h"
#include "inline/thread_walk.h"

enum {
	PIECE_MAX_THREADS = 8192, /* a power of two; keys are never given back */
	PIECE_MAX_PENDING = 32,
	PIECE_MAX_PROBES = 2048,
	PIECE_MAX_NESTED = 3,	   /* hooks that signals interrupt, one in the other */
	PIECE_MAX_SHARDS = 128,	   /* of unwind tables: 32 million rows */
	PIECE_MAX_STACKS = 16384,  /* regions of memory that stacks may lie in */
	PIECE_SEEN_SETS = 8192,	   /* a power of two: sets of stacks that were sent */
	PIECE_SEEN_WAYS = 8,	   /* stacks in a set, a cache line */
	PIECE_KNOWN_RULES = 32768, /* a power of two */
	PIECE_PAGE = 4096,
	PIECE_CODE_BYTES = 24 * PIECE_PAGE,
	PIECE_PARK_BYTES = 1024 * PIECE_PAGE,	  /* for pages of files: user/inject/pages.h */
	PIECE_LEFT_OFFSET = PIECE_CODE_BYTES / 2, /* of the record of user/inject/left.h, not the piece's */
	PIECE_CONTROL_OFFSET = PIECE_CODE_BYTES,
	PIECE_PRIVATE_OFFSET = PIECE_CONTROL_OFFSET + PIECE_PAGE,
};

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

/* A call whose return address was replaced. */
struct piece_pending {
	u64 sp; /* at entry: the address of the return address */
	u64 ret;
	u64 probe; /* index; as wide as a copy reads it: the CPU hands a value on only if it was written as a whole */
};

struct piece_thread {
	u32 nr_active; /* hooks that the thread is in: more than one if a signal has interrupted one */
	u32 nr_pending;
	struct piece_pending pending[PIECE_MAX_PENDING];
	struct inflight calls;
};

/* Private to each process; a forked child has a copy, so that its calls under way return. */
struct piece_private {
	u64 keys[PIECE_MAX_THREADS]; /* thread pointers, plus the number of interrupted hooks; 0 = free */
	struct piece_thread threads[PIECE_MAX_THREADS];
	struct piece_walk walks[PIECE_MAX_THREADS];
	_Alignas(4096) u64 rules[PIECE_KNOWN_RULES][2]; /* of all threads: struct piece_rule */
};

enum piece_kind { PIECE_ALLOC, PIECE_FREE, PIECE_INTERNAL_CALL, PIECE_RET /* a ret instruction */ };
/* A stub tells the piece the index of the function and, above these bits, why it was called: enum piece_kind. */
enum { PIECE_KIND_SHIFT = 16 };

struct piece_probe {
	struct call_probe call;
	u64 ip;	   /* of the entry */
	u64 shape; /* enum piece_shape of the call */
};

/* Shared. heaptap believes nothing of what it reads here. */
struct piece_shared {
	/* Written by heaptap. */
	u32 is_paused, has_free_stacks;
	u32 is_sequence; /* stamps are numbers of a sequence, not of the counter */
	u64 max_wait;	 /* for room in a ring, while heaptap reads nothing; ticks of the counter */
	u32 pid, epoch;	 /* as in the ids of stacks */
	u32 depth;	 /* frames per stack, 0 = none */
	u64 generation; /* grows with each change of the tables, of the depth, and of the stacks that heaptap has */
	/* Not beside what each call reads: each change takes the line from the target's cache. */
	_Alignas(64) u64 progress; /* grows while heaptap reads */
	/* Written by the target. */
	_Alignas(64) struct piece_sequence sequence;
	u32 nr_used;		     /* of used; may count more than fit */
	u32 lost_threads;	     /* calls of threads for which there was no room */
	u32 is_dropping;	     /* nobody reads the rings */
	u32 nr_unknown_stacks;	     /* times that a stack lay in none of piece_tables.stacks */
	u32 used[PIECE_MAX_THREADS]; /* number of a ring + 1; 0 = not written yet */
	struct piece_probe probes[PIECE_MAX_PROBES];
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
	u32 seq;		 /* of what follows up to regions: odd during a change */
	u32 nr_regions, maps_at; /* maps_at: the latest of maps */
	/* The stack of the first thread, and the end of the mapping below it: no other memory lies between them. */
	u64 stack_low, stack_top;
	struct piece_region regions[PIECE_MAX_STACKS]; /* by address */
	_Alignas(4096) struct unwind_maps maps[2];
	_Alignas(4096) struct shard shards[PIECE_MAX_SHARDS];
};

#define PIECE_PRIVATE_BYTES ((sizeof(struct piece_private) + PIECE_PAGE - 1) & ~(u64)(PIECE_PAGE - 1))
#define PIECE_SHARED_OFFSET (PIECE_PRIVATE_OFFSET + PIECE_PRIVATE_BYTES + PIECE_PARK_BYTES)
#define PIECE_SHARED_BYTES  ((sizeof(struct piece_shared) + PIECE_PAGE - 1) & ~(u64)(PIECE_PAGE - 1))
#define PIECE_TABLES_OFFSET (PIECE_SHARED_OFFSET + PIECE_SHARED_BYTES)
#define PIECE_TABLES_BYTES  ((sizeof(struct piece_tables) + PIECE_PAGE - 1) & ~(u64)(PIECE_PAGE - 1))
#define PIECE_REGION_BYTES  (PIECE_TABLES_OFFSET + PIECE_TABLES_BYTES)
/* Of the file behind all but the code, which begins with the private part. */
#define PIECE_FILE_BYTES (PIECE_PRIVATE_BYTES + PIECE_SHARED_BYTES + PIECE_TABLES_BYTES)
