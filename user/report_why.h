/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Who holds a block, in words: for the text report and for the JSON one. */
#pragma once

#include "user/lib/json.h"
#include "user/leaks_why.h"
#include "user/report.h"

/* Lines of the text report, below a caller's stack. 0 or -ENOMEM. */
int report_why_text(FILE *out, const struct report *r, const struct report_process *p,
		    const struct leak_why *why) __must_check;

/* The section on the block that --why asked for. 0 or -ENOMEM. */
int report_asked_text(FILE *out, const struct report *r, const struct report_process *p,
		      const struct leak_why *why) __must_check;

/* An object named @key; null for NULL. 0 or -ENOMEM. */
int report_why_json(struct json *j, const char *key, const struct report *r, const struct report_process *p,
		    const struct leak_why *why) __must_check;
