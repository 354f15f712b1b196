/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The calls of one thread that have begun and not ended. Plain data; call/life.h works on it. */
#pragma once

#ifndef __bpf__ /* the BPF programs define these types in bpf/compat.bpf.h */
#include "user/lib/types.h"
#endif

enum {
	INFLIGHT_LEVELS = 4 /* a power of two */,
	INFLIGHT_INNER = 8,
	INFLIGHT_HELD = 4,	   /* a power of two */
	SAME_STACK_BYTES = 1 << 20 /* stack pointers farther apart belong to different stacks */
};

enum level_state {
	LEVEL_BUSY = 1, /* inside the call */
	LEVEL_RELEASED, /* inside a release whose event is sent already */
	LEVEL_INTERNAL, /* the C library is about to call free for itself */
	LEVEL_FAILED,	/* operator new: the malloc inside failed; a new_handler may let it try again */
	LEVEL_RETRIED,	/* operator new: it tries again after a failure */
};

/* An allocator call inside a request. */
struct inflight_inner {
	u64 ip, ret;
	u32 depth; /* bytes of stack from the request's stack pointer down to its own */
	u32 probe; /* index */
};

/* One request by the program that has not ended. */
struct inflight_level {
	u64 sp;	       /* at entry: together with the thread this identifies the call */
	u64 ip;	       /* of the probe */
	u64 ret;       /* return address; 0 = not read */
	u64 size;      /* bytes asked for */
	u64 old;       /* block or range handed in */
	u64 out;       /* where the result will be stored (posix_memalign) */
	u64 alignment; /* as in an event (bpf/event.h) */
	u64 stack;     /* id */
	u32 probe;     /* index */
	u32 nr_inner;
	struct inflight_inner inner[INFLIGHT_INNER]; /* calls that the request is in now, outermost first */
	u8 state;				     /* enum level_state; 0 = unused */
	u8 flags;				     /* of the probe, enum probe_flag */
	u8 keeper;   /* 1 + number of the level that made this call, 0 = the program */
	u8 choice;   /* enum call_choice */
	u8 distance; /* as in an event, where blocks are sampled */
	u8 reserved;
	u16 nr_within; /* calls taken to be made by the request: life_adds() */
};

/* A block that a wrapper has allocated, which may be the one that it returns. */
struct inflight_held {
	u64 addr; /* 0 = unused */
	u64 size; /* bytes asked for */
	u64 stack;
	u16 fn;
	u8 level; /* of the wrapper */
	u8 reserved[5];
};

/* The part of a call that counts, where blocks are sampled. */
enum call_choice {
	CALL_COUNTS, /* all of it */
	CALL_OLD,    /* of a realloc: the release of its old block */
	CALL_NEW,    /* likewise: its new block */
	CALL_NONE,   /* nothing of it */
};

/* One thread of a traced process. All zero before its first call. */
struct inflight {
	u32 pid;	/* for the user of call/life.h: the process that the events belong to */
	u32 nr;		/* levels in use */
	u64 last_alloc; /* block of its latest allocation, 0 after a free of it */
	u32 nr_held;
	u32 next_held;	/* grows; the slot for the next block */
	u32 choice;	/* inline: enum call_choice of the call that is about to be entered */
	u32 distance;	/* of the latest sample, as in an event: where blocks are sampled */
	u64 left;	/* likewise, for call/sample.h: bytes up to the next sample */
	u64 mean;	/* of the distances that it was drawn from; 0 = not drawn yet */
	u64 entered_ns; /* for BPF: when the program at the entry of the latest call was over; 0 = not known */
	struct inflight_held held[INFLIGHT_HELD];
	struct inflight_level levels[INFLIGHT_LEVELS];
};
