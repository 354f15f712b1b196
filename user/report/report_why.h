/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Names the holder of a block, for the text report and the JSON report. */
#pragma once

#include "user/lib/json.h"
#include "user/scan/leaks_why.h"
#include "user/report/report.h"

struct caller_ids;

/* Write lines of the text report, below the stack of a caller. 0 or -ENOMEM. */
int report_why_text(FILE *out, const struct report *r, const struct report_process *p,
		    const struct leak_why *why) __must_check;

/* Write the section on the block that --why asked for. 0 or -ENOMEM. */
int report_asked_text(FILE *out, const struct report *r, const struct report_process *p,
		      const struct leak_why *why) __must_check;

/* Write an object with the key @key, or null if @why is NULL. @ids has the ids of callers. 0 or -ENOMEM. */
int report_why_json(struct json *j, const char *key, const struct report *r, const struct report_process *p,
		    const struct caller_ids *ids, const struct leak_why *why) __must_check;
