/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * --max-cost of a process that is traced by breakpoints, or that pays too much for code in it: in no five seconds does
 * tracing take more of its CPU time. First its stacks are cut; then it is traced for a moment, and rests until what
 * that took is five seconds old; where the shortest moment is too dear, it is left.
 */
#pragma once

#include "user/lib/types.h"

struct cost_book;
struct session;

enum { COST_FEW_FRAMES = 16 };

/* One session. */
struct cost_limit {
	u32 max_cost;		 /* in thousandths of the CPU time of the process; 0 = no limit */
	bool is_quiet;		 /* tells nothing */
	bool has_cut;		 /* stacks have COST_FEW_FRAMES frames */
	bool has_told;		 /* of the first process that rests */
	u64 next_ns;		 /* of the next look */
	struct cost_book *books; /* owned */
	size_t nr, max;
};

/* Tell nothing if it @is_quiet. */
static inline void cost_limit_init(struct cost_limit *c, u32 max_cost, bool is_quiet)
{
	*c = (struct cost_limit){ .max_cost = max_cost, .is_quiet = is_quiet };
}

/* In each round of a trace. Nothing by ptrace, where it is not known what a call costs. */
void cost_limit_round(struct cost_limit *c, struct session *s);

void cost_limit_fini(struct cost_limit *c);
