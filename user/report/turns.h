/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Recursion on a stack: functions that call each other in turn stand once, with how often. */
#pragma once

#include "user/lib/types.h"

/* @nr frames that come @times times in a row; 1 and 1 = the frame stands for itself. */
struct turns {
	u32 nr, times;
};

/*
 * The turns that begin at the first of @nr frames: the shortest that come at least three times. @is_same: are frames
 * @a and @b, from 0 on, alike? Gets @ctx.
 */
struct turns turns_find(size_t nr, bool (*is_same)(const void *ctx, size_t a, size_t b), const void *ctx);
