/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The memory that walks of stacks leave for the next walk of the thread (bpf/walk.h). */
#pragma once

#ifndef __bpf__ /* the BPF programs define these types in bpf/compat.bpf.h */
#include "user/lib/types.h"
#endif

enum {
	WALK_FRAMES = 128 /* a power of two */,
	COPY_WORDS = 256,
	WALK_STEPS = 3 * WALK_FRAMES,
	KNOWN_RULES = 256,
	REMEMBERED = 8,	       /* stacks of a thread */
	REMEMBERED_WORDS = 32, /* of a stack */
	SEEN_ONCE = 16
};

/* One frame: the registers in a function that made a call, and where its caller's were read. */
struct walk_frame {
	u64 sp; /* after the call has returned */
	u64 pc; /* return address; in a function that a signal interrupted, address of the instruction + 1 */
	u64 fp;
	u64 id;	      /* hash over this frame and those outside it */
	u16 fp_slot;  /* caller's fp was read at caller's sp - fp_slot words; 0 = not read */
	u16 cfa_slot; /* the CFA was read at caller's sp - cfa_slot words; 0 = computed */
#if HAS_LINK
	u16 ra_slot; /* return address was read at caller's sp - ra_slot words; 0 = not read */
#endif
	u8 cfa_extra;	 /* words added to the CFA that was read */
	u8 is_guessed;	 /* this frame or one outside it was left by frame pointer alone */
	u8 uses_fp : 4;	 /* its rule begins with fp */
	u8 needs_fp : 4; /* this frame or one outside it depends on fp as it is here */
	u8 is_fixed;	 /* no words of the stack can show that the frame is unchanged: walk it again */
};

/* A rule found before: return addresses repeat. */
struct known_rule {
	u64 pc;
	u32 rule;
	u32 seq; /* of the mappings for which the rule holds */
};

/* The stack of an earlier call, for bpf/remember.bpf.h. */
struct remembered {
	u64 sp, fp, ret; /* of the call, at entry */
	u64 id;
	u64 generation;		     /* of all mappings, when it was walked */
	u32 needs_fp, nr, nr_copied; /* nr_copied: words of the copy up to the last one of value */
	u64 value[REMEMBERED_WORDS]; /* the words that the walk was led by */
	u8 index[REMEMBERED_WORDS];  /* where they lie above sp, in words */
};

/* The walks of one thread: the last stack, outermost frame first, and the present one, innermost first. */
struct walk {
	u64 pc, sp, fp; /* of the frame that the walk has reached */
	u64 lr;		/* of this frame; valid if has_lr */
	u64 copy_start;
	u64 generation; /* of all mappings, when the last stack was walked */
	u64 last_id;	/* of the whole last stack; 0 = user space does not have it */
	u32 copy_bytes;
	u32 nr; /* frames of last */
	u32 nr_fresh;
	u32 candidate; /* 1 + index of the frame in last that may be the present one; 0 = none */
	u32 word;      /* bytes */
	u32 epoch;     /* of the process's mappings */
	u32 removals;  /* of the process's mappings */
	u32 seq;       /* of the mappings by which the last stack was walked */
	s32 state;     /* of the present walk: STEP_ON, or the enum stack_end that it has reached */
	u8 end;	       /* enum stack_end of last */
	u8 is_guessed; /* the frame was found by frame pointer alone */
	u8 is_matched;
	u8 is_stale;	   /* the mappings by which the last stack was walked may have been outdated */
	u8 has_fp;	   /* fp is known */
	u8 has_lr;	   /* lr is known, because a signal interrupted the frame */
	u8 is_interrupted; /* pc is no return address, but behind the first byte of the next instruction */
	struct walk_frame last[WALK_FRAMES];
	struct walk_frame fresh[WALK_FRAMES];
	u64 copy[COPY_WORDS];
	struct known_rule known[KNOWN_RULES];
#ifdef __bpf__				/* the code inside a target has its own: inline/remember.h */
	u64 call_sp, call_fp, call_ret; /* of the call that the present walk is of */
	u64 key;			/* of that call: never 0 */
	u64 next_remembered;		/* grows; the next one to replace */
	u64 keys[REMEMBERED];		/* of remembered; 0 = free */
	u32 seen_once[SEEN_ONCE];	/* halves of keys of calls whose stack was walked */
	struct remembered remembered[REMEMBERED];
#endif
};

/* The data of a loop over frames. */
struct walk_loop {
	struct walk *w;
	const struct unwind_maps *maps;
	u32 depth;
};
