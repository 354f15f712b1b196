/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The memory of the piece of code inside a target, as the piece (inline/piece.c) and heaptap see it. One region:
 * code, a page that is empty in a forked child, state of threads, and what heaptap shares: settings and rings.
 */
#pragma once

#include "call/inflight.h"
#include "call/probe.h"

enum {
	PIECE_MAX_THREADS = 8192, /* a power of two; keys are never given back */
	PIECE_MAX_PENDING = 32,
	PIECE_MAX_PROBES = 2048,
	PIECE_RING_RECORDS = 8192, /* a power of two */
	PIECE_MAX_NESTED = 3,	   /* hooks that signals interrupt, one in the other */
	PIECE_PAGE = 4096,
	PIECE_CODE_BYTES = 16 * PIECE_PAGE,
	PIECE_CONTROL_OFFSET = PIECE_CODE_BYTES,
	PIECE_PRIVATE_OFFSET = PIECE_CONTROL_OFFSET + PIECE_PAGE,
};

static const u64 piece_is_on = 0x6865617074617021;

/* The first bytes of the code: offsets of its entry points from there. */
struct piece_head {
	u32 enter;    /* where each stub goes */
	u32 returned; /* the address that replaces return addresses */
};

/* Private to each process; all zero in a forked child, where nothing is recorded. */
struct piece_control {
	u64 is_on; /* piece_is_on */
};

/* A call whose return address was replaced. */
struct piece_pending {
	u64 sp; /* at entry: the address of the return address */
	u64 ret;
	u32 probe; /* index */
	u32 reserved;
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
};

enum piece_kind { PIECE_ALLOC, PIECE_FREE, PIECE_INTERNAL_CALL, PIECE_RET /* a ret instruction */ };

/* A stub tells the piece the index of the function and, above these bits, why it was called: enum piece_kind. */
enum { PIECE_KIND_SHIFT = 16 };

struct piece_probe {
	struct call_probe call;
	u64 ip; /* of the entry */
};

/* One event. */
struct piece_record {
	u64 stamp; /* time stamp counter */
	u8 kind;   /* enum event_kind: one of those of struct heap_event */
	u8 flags;  /* enum event_flag */
	u16 fn;	   /* row of the allocator table */
	u32 reserved;
	u64 addr, old_addr, size, stack;
};

/* One thread's events. Positions count records and only grow. */
struct piece_ring {
	u64 written; /* by the target */
	u64 lost_allocs, lost_frees, abandoned;
	_Alignas(64) u64 read; /* by heaptap */
	_Alignas(64) struct piece_record records[PIECE_RING_RECORDS];
};

/* Shared. heaptap believes nothing of what it reads here. */
struct piece_shared {
	/* Written by heaptap. */
	u32 is_paused, has_free_stacks;
	u32 is_sequence; /* stamps are numbers of a sequence, because the counter is not reliable */
	u64 max_wait;	 /* for room in a ring, while heaptap reads nothing; ticks of the counter */
	u64 progress;	 /* grows while heaptap reads */
	/* Written by the target. */
	_Alignas(64) u64 sequence;
	u32 nr_used;		     /* of used; may count more than fit */
	u32 lost_threads;	     /* calls of threads for which there was no room */
	u32 is_dropping;	     /* nobody reads the rings */
	u32 used[PIECE_MAX_THREADS]; /* number of a ring + 1; 0 = not written yet */
	struct piece_probe probes[PIECE_MAX_PROBES];
	_Alignas(4096) struct piece_ring rings[PIECE_MAX_THREADS];
};

#define PIECE_PRIVATE_BYTES ((sizeof(struct piece_private) + PIECE_PAGE - 1) & ~(u64)(PIECE_PAGE - 1))
#define PIECE_SHARED_OFFSET (PIECE_PRIVATE_OFFSET + PIECE_PRIVATE_BYTES)
#define PIECE_SHARED_BYTES  ((sizeof(struct piece_shared) + PIECE_PAGE - 1) & ~(u64)(PIECE_PAGE - 1))
#define PIECE_REGION_BYTES  (PIECE_SHARED_OFFSET + PIECE_SHARED_BYTES)

_Static_assert(sizeof(struct piece_record) == 48, "six words");
