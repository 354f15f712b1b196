/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Counts of callers in slices of time, for the HTML report: a part of its timeline has a graph of its own. */
#pragma once

#include "user/lib/json.h"
#include "user/report/report_rows.h"

/*
 * Write the key "slices" of @p, whose callers are @rows: for each slice its beginning, and numbers of callers by their
 * places in @rows. Callers that would make the page too large are added up as caller @nr. 0 or -ENOMEM.
 */
int html_slices(struct json *j, const struct report_process *p, const struct report_row *rows,
		size_t nr) __must_check;
