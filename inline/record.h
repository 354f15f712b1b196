/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The records of a thread that has the piece of code inside, and the ring that they are in. */
#pragma once

#include "bpf/call_wish.h"
#include "user/lib/types.h"

enum {
	PIECE_RING_RECORDS = 8192, /* a power of two */
	PIECE_RING_PART = 1024,	   /* heaptap is told when so many were written; a power of two */
	PIECE_STACK_FRAMES = 6,	   /* of a stack in one record */
};

/* One event. */
struct piece_record {
	u64 stamp;    /* time stamp counter */
	u8 kind;      /* enum event_kind: one of those of struct heap_event */
	u8 flags;     /* enum event_flag */
	u16 fn;	      /* row of the allocator table */
	u32 distance; /* as in struct event_header */
	u64 addr, old_addr, size, stack;
};

/*
 * The first record of a stack that the following records of the thread name. Its frames, innermost first, are in the
 * next records, PIECE_STACK_FRAMES in each.
 */
struct piece_stack {
	u64 stamp;
	u8 kind; /* EVENT_STACK */
	u8 end;	 /* enum stack_end */
	u16 nr_frames;
	u32 epoch;
	u64 id;
	u64 reserved[3];
};

/* One thread's events. Positions count records and only grow. */
struct piece_ring {
	u64 written;	/* by the target */
	u64 is_telling; /* a hook is about to write a record; it was left by a jump if another one sees this */
	u64 read_seen;	/* of read, when the target looked last: that one is in another CPU's cache */
	_Alignas(64) u64 read; /* by heaptap */
	_Alignas(64) struct piece_record records[PIECE_RING_RECORDS];
};

/* A call that heaptap waits for. */
struct piece_wish {
	struct call_wish call;
	u32 ring;   /* of the thread that has made it */
	u32 is_met; /* that thread waits */
};

_Static_assert(sizeof(struct piece_record) == 48, "six words");
_Static_assert(sizeof(struct piece_stack) == 48 && PIECE_STACK_FRAMES * sizeof(u64) == 48, "as a record");
