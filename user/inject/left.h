/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Left in a target by a heaptap that was killed together with its guard. The target's functions still lead to the
 * piece, whose rings drop calls. A record in the target itself says how to take it out.
 */
#pragma once

#include "user/lib/types.h"

struct injection; /* user/inject/process.h */

enum inject_left {
	INJECT_LEFT_NOTHING, /* no code of a heaptap is there */
	INJECT_LEFT_IN_USE,  /* its heaptap lives */
	INJECT_LEFT_BEHIND,  /* its heaptap has ended */
	INJECT_LEFT_UNKNOWN, /* the record cannot be read, or another version of heaptap has written it */
};

/* Write the record of @in to the target's memory @mem. 0 or -errno. */
int inject_save(const struct injection *in, int mem) __must_check;

/* Is code of a heaptap in @pid? *@owner: the PID of that heaptap, 0 = not known. Does not stop the target. */
enum inject_left inject_find_left(pid_t pid, pid_t *owner);

/*
 * Do functions of @pid, where code of a heaptap is, lead to it in pages that are mapped from their file? The kernel
 * writes its breakpoints over such a jump. Also true if the record cannot be read.
 */
bool inject_is_exposed(pid_t pid);

/*
 * Take out what was left in the process of @in, if anything. The target is stopped for that. 0, or -errno with the
 * reason in in->why.
 */
int inject_take_left(struct injection *in) __must_check;
