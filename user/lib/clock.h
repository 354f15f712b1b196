/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The time as one number. */
#pragma once

#include <time.h>

#include "user/lib/types.h"

#define SECOND_NS ((u64)1000000000)

static inline u64 clock_ns(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (u64)ts.tv_sec * SECOND_NS + (u64)ts.tv_nsec;
}

/* CLOCK_MONOTONIC, the clock of all times in heaptap. */
static inline u64 clock_now_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

/* For loops that poll: sleep for @ns, less than a second. False, at once, if @end_ns has come. */
static inline bool clock_pause(u64 ns, u64 end_ns)
{
	const struct timespec pause = { .tv_nsec = (long)ns };

	if (clock_now_ns() >= end_ns)
		return false;
	nanosleep(&pause, NULL);
	return true;
}

static inline u64 clock_now_ms(void)
{
	return clock_now_ns() / 1000000;
}
