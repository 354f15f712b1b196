/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The counter of the CPU, and whether it can order what happens on different CPUs. */
#pragma once

#include "user/lib/clock.h"

#define COUNTER_CLOCKSOURCE "/sys/devices/system/clocksource/clocksource0/current_clocksource"
#define COUNTER_CPUINFO	    "/proc/cpuinfo"

/*
 * Does the kernel itself tell the time by the counter (@clocksource, a file, says tsc), and does the CPU promise
 * (@cpuinfo) that it runs at one speed and never stops? False also if a file cannot be read.
 */
bool counter_is_reliable(const char *clocksource, const char *cpuinfo);

static inline u64 counter_now(void)
{
#if defined(__x86_64__)
	return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
	u64 ticks;

	asm volatile("mrs %0, cntvct_el0" : "=r"(ticks));
	return ticks;
#else
	return clock_now_ns();
#endif
}

/*
 * How many rounds a thread that waits in the piece makes in @ns, measured at each call: where the thread loses its CPU,
 * other tries count. Blocks for a millisecond.
 */
u64 counter_rounds(u64 ns);
