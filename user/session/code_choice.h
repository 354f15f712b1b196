/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * --backend auto for running processes: breakpoints while they cost little, else code in the process. What breakpoints
 * cost is seen by the kernel's own count of CPU time.
 */
#pragma once

#include "user/lib/types.h"

struct session;

/* One session. All zero but put and ctx: it begins. */
struct code_choice {
	u64 begin_ns, next_ns; /* the first look; the next one */
	bool has_told;	       /* what was chosen first */
	bool has_told_dear;    /* that breakpoints stay in a process for which they are dear */
	bool has_told_code;    /* that a process has code */
	/* With --follow: as session_put_code(), and be the ptracer of the process then. NULL: that itself. */
	int (*put)(void *ctx, struct session *s, pid_t pid);
	void *ctx;
};

/*
 * In each round of a trace: put code into the processes of @s to which breakpoints have cost more than @max_cost tenths
 * of a percent of their CPU time lately (0 = no limit). Logs the first choice, unless it @is_quiet, and each change.
 * Does nothing if session_put_code() cannot.
 */
void code_choice_round(struct code_choice *c, struct session *s, u32 max_cost, bool is_quiet);
