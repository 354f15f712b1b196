/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The cost of tracing one process in the last five seconds, and what follows from a limit. */
#pragma once

#include "user/lib/types.h"

#define COST_SLOT_NS 100000000ULL
enum { COST_SLOTS = 50 };
#define COST_SPAN_NS (COST_SLOTS * COST_SLOT_NS) /* in which the limit holds */

/* All zero but the first two: it is new. */
struct cost_book {
	pid_t pid;
	bool is_of_cpu;		 /* the limit is of one CPU, and not of the CPU time of the process */
	u64 begin_ns, looked_ns; /* the first look, the last one */
	u64 calls, cpu_ns;	 /* at the last look */
	u64 past_cpu_ns, age_ns; /* at the first look: of all its life */
	u64 costs_ns[COST_SLOTS], cpus_ns[COST_SLOTS], slot; /* slot: the number of the present one */
	double rate;					     /* cost by time, while it was traced last */
	u64 opened_ns;					     /* since then it is traced; 0 = it rests */
	u64 rest_ns, rest_cpu_ns; /* when it began to rest, and its CPU time then */
	double own;		  /* its CPU time by time while it rested last; 0 = not known */
	u32 nr_too_dear;	  /* moments in a row that could not be short enough */
	bool is_left;		  /* it shall not be traced again */
};

/* At @now_ns the process has used @cpu_ns in all; calls of @cost_ns came since the last look. */
void cost_book_look(struct cost_book *b, u64 now_ns, u64 cpu_ns, u64 cost_ns);

/*
 * Probes have gone in or out since the last look, and the calls of that time were not counted: they have cost what is
 * more than its own CPU time.
 */
void cost_book_change(struct cost_book *b, u64 now_ns, u64 cpu_ns);

/* The cost of the last five seconds, and the most that it may be by @max_cost, in thousandths of its CPU time. */
u64 cost_book_sum(const struct cost_book *b);
u64 cost_book_may(const struct cost_book *b, u32 max_cost);

/* Must tracing end now? It takes @ahead_ns to end it. */
bool cost_book_must_rest(const struct cost_book *b, u32 max_cost, u64 ahead_ns);

/* Tracing has ended: how long the process rests. UINT64_MAX: for ever. And: it is traced again. */
u64 cost_book_rest(struct cost_book *b, u32 max_cost);
void cost_book_open(struct cost_book *b);
