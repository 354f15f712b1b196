/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The verdicts of a scan, their sums, and what else it found out. Plain data, which reports keep. */
#pragma once

#include "user/lib/types.h"

/* Valgrind's four kinds of blocks, and unsure. */
enum scan_verdict {
	SCAN_NONE,	/* not judged yet */
	SCAN_REACHABLE, /* a root leads to it along pointers to starts of blocks */
	SCAN_POSSIBLE,	/* reached too, but each chain has a pointer into the middle of a block */
	SCAN_DEFINITE,	/* lost, and no other lost block leads to it. In a cycle: the oldest block */
	SCAN_INDIRECT,	/* lost, because its leader is: the definite block that leads to it */
	SCAN_UNSURE,	/* not known */
	NR_SCAN_VERDICTS
};

struct scan_sum {
	u64 blocks, bytes;
};

/* Sums by verdict. SCAN_DEFINITE does not include SCAN_INDIRECT. */
struct scan_sums {
	struct scan_sum of[NR_SCAN_VERDICTS];
};

enum { SCAN_NR_HEADERS = 4 };

struct scan_result {
	struct scan_sums sums;
	struct scan_sum behind;	      /* reachable, by pointers behind a header of the program's own */
	u32 headers[SCAN_NR_HEADERS]; /* bytes of such headers, the most frequent ones first; 0 = no more */
	/* A good part of the lost blocks, to which only pointers with marks in their upper bits lead; 0 = no. */
	struct scan_sum tagged;
	u64 tag_mask; /* with tagged: a scan_options.pointer_mask that follows these pointers */
	u64 nr_links; /* first words of blocks that count as what a list of free blocks left: no pointers */
	u64 scanned_bytes; /* of roots and blocks */
	u64 skipped_bytes; /* memory that could not be read */
	u64 nr_unstopped;  /* threads that could not be stopped */
	u64 nr_overlaps;   /* blocks that overlap others; they are unsure */
	bool is_complete; /* nothing was skipped, all threads were stopped; else no block is definite or indirect */
};
