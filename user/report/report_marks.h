/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Moments that were named while tracing: by `heaptap mark`, and by the programs themselves. */
#pragma once

#include "user/lib/types.h"

enum { REPORT_MAX_MARKS = 256, REPORT_MARK_LEN = 64 };

struct report_mark {
	u64 time_ns;		    /* as report.time_ns */
	char name[REPORT_MARK_LEN]; /* a longer name is cut */
};

/* All zero: none. */
struct report_marks {
	struct report_mark *list; /* owned; in order of time; the first REPORT_MAX_MARKS */
	size_t nr, max;
	u64 nr_left_out; /* further ones */
};
