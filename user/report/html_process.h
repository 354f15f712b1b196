/* SPDX-License-Identifier: GPL-2.0-or-later */
/* One process in the data of the HTML report: the keys of the JSON report, with callers as columns of numbers. */
#pragma once

#include "user/report/html_tables.h"

/* Write an object for @p. Its stacks and texts go into @t, which is written later. 0 or -ENOMEM. */
int html_process(struct json *j, struct html_tables *t, const struct report *r,
		 const struct report_process *p) __must_check;
