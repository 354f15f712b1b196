/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Marks estimated numbers in texts. */
#include "user/report/estimate.h"

#include <stdio.h>

#include "user/report/report.h"

struct human estimate_mark(const struct human *text)
{
	struct human marked;

	snprintf(marked.text, sizeof(marked.text), "~%.*s", (int)sizeof(marked.text) - 2, text->text);
	return marked;
}

u64 report_sample_bytes(const struct report *r)
{
	return r->nr_processes ? heap_sample_bytes(r->processes[0].heap) : 0;
}
