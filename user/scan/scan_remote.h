/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A scan of a process on another machine: its blocks go out, their verdicts come in. */
#pragma once

#include "user/scan/scan.h"

/*
 * Visit all blocks by address, with the times of @heap. Between scan_new() and scan_elsewhere(). 0 or the error of
 * @visit.
 */
int scan_send(const struct scan *s, const struct heap *heap,
	      int (*visit)(void *ctx, const struct heap_block *block), void *ctx) __must_check;

/* In place of scan_read(): all events up to the moment have come to scan_event(). 0 or -ENOMEM. */
int scan_elsewhere(struct scan *s) __must_check;

/* Take one verdict. Ignored if no block is there. */
void scan_take(struct scan *s, const struct scan_block_info *info);

/* In place of scan_judge(): blocks without a verdict become unsure. @result has all but the sums. */
void scan_take_end(struct scan *s, const struct scan_result *result);
