/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Memory that the walks of a thread leave for the next ones: part of that of inline/layout.h. */
#pragma once

/* The memory has places for a return address in a register on CPUs that have such. */
#if defined(__aarch64__)
#include "vmlinux/aarch64/walk_cpu.h"
#else
#include "vmlinux/x86_64/walk_cpu.h"
#endif

#include "bpf/walk_state.h"

enum {
	PIECE_REMEMBERED = 8, /* a power of two: stacks that a thread remembers */
	PIECE_REMEMBERED_WORDS = 128,
	PIECE_FRAME_WORDS = 3, /* at most, by which a walk comes to a caller */
	PIECE_SEEN_ONCE = 64   /* a power of two */
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
