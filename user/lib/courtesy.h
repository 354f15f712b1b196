/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Work beside a program that shall not notice it: with the lowest priority, for as long as that is enough. And work
 * that a program waits for: before others.
 */
#pragma once

#include "user/lib/types.h"

/*
 * The calling thread, and threads that it starts from now on, work when nobody else wants the CPU. Without the right to
 * take that back (CAP_SYS_NICE or RLIMIT_NICE) all stays as it was.
 */
void courtesy_begin(void);

/*
 * This thread, or all threads of this process, work as usual again: as its main thread, which never begins. Call it
 * before taking locks that the program waits for: whoever holds one must not wait for a CPU.
 */
void courtesy_end(void);
void courtesy_end_all(void);

enum {
	COURTESY_HURRY = -10, /* a nice value: some ten times the share of a usual thread */
	COURTESY_FIRST = -20, /* before threads that would spin until this one has worked */
};

struct courtesy_hurry {
	int usual;  /* nice value */
	int policy; /* of scheduling */
	bool is_on, is_at_once;
};

/*
 * The calling thread, and threads that it starts until the end, which must be over by then, get the CPU before others,
 * by the value @nice.
 * Without the right to do that all stays as it was. The end may be called twice.
 */
void courtesy_hurry(struct courtesy_hurry *h, int nice);
/*
 * Get the CPU at once, for less than a second in which a program is stopped: before all usual threads, also those of
 * other sessions and control groups, which nice values do not reach (SCHED_RR). Else as courtesy_hurry().
 */
void courtesy_at_once(struct courtesy_hurry *h);
void courtesy_hurry_end(struct courtesy_hurry *h);

/*
 * Thread @tid of this process gets the CPU at once, too, for as short a time, but not threads that it starts meanwhile.
 * False: it has no right to that, or no usual policy of scheduling, and stays as it was.
 */
bool courtesy_push(pid_t tid);
void courtesy_push_end(pid_t tid);
