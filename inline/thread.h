/* SPDX-License-Identifier: GPL-2.0-or-later */
/* State of the threads of a target, as far as heaptap does not share it: part of the memory of inline/layout.h. */
#pragma once

/* The memory has places for a return address in a register on CPUs that have such. */
#if defined(__aarch64__)
#include "vmlinux/aarch64/walk_cpu.h"
#else
#include "vmlinux/x86_64/walk_cpu.h"
#endif

#include "bpf/walk_state.h"
#include "call/inflight.h"

enum {
	PIECE_MAX_THREADS = 16384, /* a power of two; keys and places are never given back */
	PIECE_MAX_PENDING = 32,
	PIECE_KNOWN_RULES = 32768, /* a power of two */
	PIECE_OWN_FREES = 512,
	PIECE_REMEMBERED = 8, /* a power of two: stacks that a thread remembers */
	PIECE_REMEMBERED_WORDS = 128,
	PIECE_FRAME_WORDS = 3, /* at most, by which a walk comes to a caller */
	PIECE_SEEN_ONCE = 64   /* a power of two */
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

/* A word of the stack, as a walk found it. */
struct piece_word {
	u64 at, value;
};

/* The words that led the last walk of a thread, those of the outermost frame first. */
struct piece_words {
	u64 high;      /* all of them lie below */
	u32 nr_frames; /* outermost frames of the last stack whose words show that they are as they were */
	u16 end[WALK_FRAMES]; /* words of these frames, up to each of them */
	struct piece_word list[PIECE_FRAME_WORDS * WALK_FRAMES];
};

/* The stack of an earlier call. */
struct piece_remembered {
	u64 sp, ret; /* of the call, at entry */
	u64 id;
	u64 generation; /* of piece_shared when it was walked */
	u64 high;	/* end of the words */
	u64 fp;
	u32 needs_fp, nr;
	struct piece_word words[PIECE_REMEMBERED_WORDS]; /* that the walk was led by */
};

/* The walks of one thread. */
struct piece_walk {
	u64 low, high;	   /* the stack that the thread used last; 0 = none */
	u32 seq;	   /* of the list of stacks at that time */
	u32 has_waited;	   /* in vain, for a list with its stack */
	u32 was_elsewhere; /* it has run on a stack that does not end at its own data */
	u32 depth;	   /* frames that are asked for, of the stack that is walked */
	u64 sp, ret;	   /* of the call whose stack is walked, at entry */
	struct walk_loop loop;
	struct walk walk;
	struct piece_words words;
	_Alignas(64) u64 keys[PIECE_REMEMBERED]; /* of remembered; 0 = free */
	u32 seen_once[PIECE_SEEN_ONCE];		 /* halves of keys of calls whose stack was walked */
	u32 next_remembered;			 /* grows; the next one to replace */
	struct piece_remembered remembered[PIECE_REMEMBERED];
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

enum {
	PIECE_GRAIN_BITS = 8,	      /* 2^8 bytes of addresses share a counter of sampled blocks */
	PIECE_FILTER_BYTES = 1 << 16, /* these counters */
	PIECE_BUCKET_BLOCKS = 8,      /* sampled blocks in a bucket, a cache line */
	PIECE_FIRST_BUCKETS = 32,     /* which are used first: few blocks touch one page */
	PIECE_MAX_BUCKETS = 1 << 20
};

struct piece_bucket {
	u64 blocks[PIECE_BUCKET_BLOCKS];
};

/* Blocks are in the bucket that a hash of their addresses names, or in one of the next; by ~address, which is none. */
struct piece_samples {
	struct piece_bucket first[PIECE_FIRST_BUCKETS];
	u64 has_more; /* other buckets were used */
	_Alignas(4096) struct piece_bucket buckets[PIECE_MAX_BUCKETS];
};

/* Private to each process; a forked child has a copy, and of the places, so that its calls under way return. */
struct piece_private {
	u8 counters[PIECE_FILTER_BYTES]; /* sampled blocks with each hash; those that are full stay so */
	struct piece_key keys[PIECE_MAX_THREADS];
	/* Of threads without a place: the stack pointers of calls of free that the C library makes for itself. */
	u64 own_frees[PIECE_OWN_FREES];
	_Alignas(4096) u64 rules[PIECE_KNOWN_RULES][2]; /* of all threads: struct piece_rule */
};
