/* SPDX-License-Identifier: GPL-2.0-or-later */
/* All processes of the watch, or all that grow, traced at once by one session: by shared probes, or by samples. */
#pragma once

#include "user/session/session_options.h"
#include "user/system/zoom.h"

struct outputs;

enum {
	EVERYTHING_MAX = 4000,	     /* processes at a time: as many as the programs have room for */
	EVERYTHING_MAX_ENDED = 1000, /* whose reports are kept */
};

/* The cost of samples for the machine, with heaptap's own work: looked at each ten seconds, with --max-cost. */
struct sample_bill {
	u64 time_ns, cpu_ns, events; /* at the last look; time_ns 0 = there was none */
	u32 sum;		     /* samples a second that all processes may have */
	bool is_told;		     /* the limit cannot be kept */
};

struct everything {
	const struct watch *watch; /* borrowed */
	struct zooms *zooms;	   /* borrowed: its options, answers and price of a call */
	struct session_options options;
	u32 max;		 /* processes at a time */
	struct session *session; /* owned; NULL = it is not wanted, or cannot be */
	bool only_growing;	 /* all that grow or were chosen: each with verdicts, as the zoom has them */
	struct price price;	 /* of all processes together */
	u64 price_ns;		 /* when the last look at prices was */
	enum price_saving saving;
	u64 saved_ns; /* when the last step to make it cheaper was taken; 0 = never */
	struct sample_bill bill;
	u32 nr_traced, nr_told; /* at present, at the last look */
	u32 nr_left_out;
	u64 nr_forgotten; /* processes that had ended */
	u32 nr_spared;	  /* processes that the user has chosen, and that are not traced */
	u64 nr_unknown; /* processes with chosen names that had ended before the rest of the choice was known */
	u64 next_answers_ns;
};

/*
 * Open the session for at most @max processes of @w, which is borrowed: all, or those that grow. Programs that @w
 * chooses by their names are traced from their exec on, if the source can. 0; -EOPNOTSUPP: one process at a time can be
 * traced here; or -errno.
 */
int everything_init(struct everything *e, struct zooms *z, const struct watch *w, u32 max,
		    bool only_growing) __must_check;

/* After a look at @w: trace the processes that are new in it, as many as half a second is enough for. */
void everything_look(struct everything *e, struct watch *w);

/* Enter the events that have arrived. */
void everything_poll(struct everything *e);

/* Find verdicts on all processes, and answers on those that grew; write the heap reports. 0 or -errno, logged. */
int everything_end(struct everything *e, const struct watch *w, struct outputs *outs) __must_check;
void everything_fini(struct everything *e);

/*
 * At @now_ns heaptap has used @cpu_ns of CPU time, and had @events samples. If they cost more than the limit, all
 * processes get half as many, down to a sixty-fourth: those with the most the longest distances. Says so in one line.
 */
void everything_price_samples(struct everything *e, u64 now_ns, u64 cpu_ns, u64 events);

/*
 * After a look: what each process pays, and end the pauses that are over. Then, at most once in three seconds, the next
 * step for a price above the limit, of the dearest process or of all: short stacks; a pause of the dearest process; and
 * if its traps alone cost too much, no more probes in its allocator's file. Says each step in one line.
 */
void everything_price(struct everything *e, u64 now_ns);
