/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * --max-cost of a process that is traced by breakpoints, or that pays too much for code in it: in no five seconds does
 * tracing take more of its CPU time. First its stacks are cut; then it is traced for a moment, and rests until what
 * that took is five seconds old; where the shortest moment is too dear, it is left.
 */
#pragma once

#include "user/lib/types.h"

struct session;

enum { COST_FEW_FRAMES = 16 };

/* One session. */
struct cost_limit {
	u32 max_cost;		 /* in thousandths of the CPU time of the process; 0 = no limit */
	bool is_default;	 /* nobody asked for it: code in a process, and stacks beside it, have none */
	bool is_quiet;		 /* tells nothing */
	bool has_cut;		 /* stacks have COST_FEW_FRAMES frames */
	bool is_near;		 /* somebody may soon have to rest: the next round is to come in some ms */
	bool has_told;		 /* of the first process that rests */
	u64 next_ns;		 /* of the next look */
	struct cost_book *books; /* owned */
	size_t nr, max;
};

/* In each round of a trace. Nothing where a rest would not end the cost: by ptrace, and by links of all processes. */
void cost_limit_round(struct cost_limit *c, struct session *s);

void cost_limit_fini(struct cost_limit *c);
