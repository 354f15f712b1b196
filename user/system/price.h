/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The price that a traced process pays. */
#pragma once

#include "user/lib/types.h"

struct session;

/* The steps that make tracing a process cheaper, each for those that the one before was not enough for. */
enum price_saving {
	SAVING_NOTHING,
	SAVING_FRAMES,	/* short stacks */
	SAVING_WINDOWS, /* it is traced for a while, then left for a while */
};

/* The calls of one process. All zero: it is new. */
struct price {
	u64 calls, time_ns; /* at the last look */
	double calls_per_s; /* of the last seconds */
	u32 permyriad;	    /* of one CPU, that tracing costs the process */
};

/* Look at the calls of @s once a second. */
void price_look(struct price *p, struct session *s, u64 now_ns);
/* One call in the processes of @s, in nanoseconds. */
u64 price_call_ns(struct session *s);
