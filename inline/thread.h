/* SPDX-License-Identifier: GPL-2.0-or-later */
/* State of the threads of a target, as far as heaptap does not share it: part of the memory of inline/layout.h. */
#pragma once

#include "call/inflight.h"
#include "inline/thread_walk.h"

enum {
	PIECE_MAX_THREADS = 8192, /* a power of two; keys and places are never given back */
	PIECE_MAX_PENDING = 32,
	PIECE_KNOWN_RULES = 32768, /* a power of two */
	PIECE_OWN_FREES = 512,
};

/* A call whose return address was replaced. */
struct piece_pending {
	u64 sp; /* at entry: the address of the return address; 0 = the call has returned */
	u64 ret;
	u64 probe; /* index; as wide as a copy reads it: the CPU hands a value on only if it was written as a whole */
};

struct piece_thread {
	u64 key;  /* as in the table of keys; written once */
	u64 hook; /* the address of the registers of the hook that has it; 0 = none (inline/hold.h) */
	u32 nr_pending;
	u32 nr_lost, nr_renewals; /* calls without a place, and what came of them: thread_renew() */
	struct piece_pending pending[PIECE_MAX_PENDING];
	u64 drawn; /* piece_key.left right after the latest sampled call */
	u64 mean;  /* of the distances that piece_key.left was drawn from */
	struct inflight calls;
};

/* A thread in a hook. */
struct piece_hook {
	u64 sp, ip, ret;
	const struct piece_regs *regs;
	struct piece_ring *ring;
	struct piece_walk *walk;
	u64 stack;	 /* of the call; STACK_NONE: it is taken when the call wants it */
	bool has_room;	 /* in the ring for a record: no wait */
	bool has_stacks; /* allocations have one */
};

/* The state of one thread. */
struct piece_place {
	struct piece_thread thread;
	struct piece_hook
		hook; /* that it is in, unless that knows all of it at once: the stack of a program is small */
	struct piece_walk walk;
};

/* Key 0: free. PIECE_CLAIMED: a thread is about to write its own. */
struct piece_key {
	u64 key; /* thread pointer, plus twice the number of interrupted hooks, plus 1; or that of place_retire() */
	u32 nr; /* of the place, and of the ring */
	u32 outer_probe;
	u64 place, ring; /* where they are, if no hook is interrupted */
	/* For samples (inline/sample.h). Stubs count here. */
	u64 left;   /* bytes up to the next sample; above INT64_MAX: it is due */
	u64 random; /* state of the generator */
	/* With outer_probe, of the latest call that may call another function: stack pointer, return address. */
	u64 outer_sp, outer_ret;
};
static const u64 PIECE_CLAIMED = 2;
_Static_assert(sizeof(struct piece_key) == 64, "a cache line of its thread");

/* A hash that a stub computes, too: the product of an address with this, from bit 32 on. */
enum { PIECE_HASH = 0x1e3779b9, PIECE_HASH_SHIFT = 32 };

/* Private to each process; a forked child has a copy, and of the places, so that its calls under way return. */
struct piece_private {
	struct piece_key keys[PIECE_MAX_THREADS];
	/* Of threads without a place: the stack pointers of calls of free that the C library makes for itself. */
	u64 own_frees[PIECE_OWN_FREES];
	_Alignas(4096) u64 rules[PIECE_KNOWN_RULES][2]; /* of all threads: struct piece_rule */
};
