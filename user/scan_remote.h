/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A scan whose memory is read elsewhere: its blocks go out, their verdicts come in. */
#pragma once

#include "user/scan.h"

/* Between scan_new() and scan_elsewhere(): all blocks by address, to @visit as the books have them. 0 or its error. */
int scan_send(const struct scan *s, const struct heap *heap,
	      int (*visit)(void *ctx, const struct heap_block *block), void *ctx) __must_check;

/* In place of scan_read(): the events up to the moment have been told by scan_event(). 0 or -ENOMEM. */
int scan_elsewhere(struct scan *s) __must_check;

/* A verdict; of a block that there is not it is ignored. */
void scan_take(struct scan *s, const struct scan_block_info *info);

/* In place of scan_judge(): what got no verdict is unsure. @result: all but the sums. */
void scan_take_end(struct scan *s, const struct scan_result *result);
