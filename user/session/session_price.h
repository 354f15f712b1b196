/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The price of breakpoints for a process, by the kernel's own count of its CPU time. Their traps, and all that runs
 * there, are time in the kernel: so it is all of that beyond the process's own, which is a share of its time in the
 * program, as it was when nobody traced it.
 */
#pragma once

#include "user/lib/types.h"

/* A process at one moment: its calls, and its CPU time in the program and in the kernel. */
struct process_moment {
	u64 calls, user_ns, system_ns, time_ns; /* time 0: there was none */
};

/* The kernel counts by ticks: what is said of a time is right within so much. */
#define SESSION_PRICE_TICKS_NS 20000000ULL

/*
 * The nanoseconds of its CPU time that breakpoints have cost a process from @then to @now, with @own_permille of its
 * time in the program as its own time in the kernel. Within limits of what a call may cost.
 */
u64 session_price(const struct process_moment *then, const struct process_moment *now,
		  u32 own_permille) __must_check;

/* @own_permille of a process that nobody traced until @m. False: it has worked too little, and it is a guess. */
bool session_price_own(const struct process_moment *m, u32 *own_permille);

/* Read the CPU time of @pid now, without its calls. False: it has ended. */
bool session_price_look(struct process_moment *out, int pid);
