/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Verdicts in sums by caller, as reports keep them. */
#pragma once

#include "user/scan/scan_result.h"

/* Sums of one caller (struct heap_row). */
struct leak_row {
	struct scan_sums sums;	    /* without suppressed blocks */
	struct scan_sum through;    /* indirect: lost through this caller's definite blocks */
	struct scan_sum suppressed; /* lost, but a rule leaves it out */
};

/* Indirect blocks of one caller, lost through definite blocks of another caller or of the same. */
struct leak_link {
	u32 row, leader; /* rows of the two callers: heap_row_get() */
	struct scan_sum sum;
};
