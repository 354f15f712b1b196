/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The one sentence about a process that every output begins with. */
#pragma once

#include <string.h>

#include "user/heap/heap_sample.h"
#include "user/lib/human.h"
#include "user/report/own_code.h"
#include "user/report/report.h"
#include "user/report/report_rows.h"

enum { VERDICT_MAX = 1024 };

struct report_verdict {
	char text[VERDICT_MAX]; /* one line without its end, escaped */
	size_t bad_at, nr_bad;	/* where bad news begin, and their bytes */
};

/*
 * Say what the sort key asks for; wrong releases; what @p leaks, or that it does not, or why that is not known; the
 * place that most of it is from; whether @p grows, and what is live. @rows as report_rows() gives them. 0, -ENOMEM or
 * -ECANCELED.
 */
int report_verdict(struct report_verdict *v, const struct report *r, const struct report_process *p,
		   const struct report_row *rows, size_t nr) __must_check;

/* As report_verdict(), for a caller that has no rows. */
int report_verdict_of(struct report_verdict *v, const struct report *r,
		      const struct report_process *p) __must_check;

/* The place that holds most of what is live. */
struct report_holder {
	char place[OWN_PLACE_MAX]; /* "remember (svc.cpp:19)", escaped; "" = not known */
	const char *share;	   /* "most of it ", "the largest part ", "" = all of it */
	u64 bytes, all;		   /* of it, and of all callers */
};

int report_holder(struct report_holder *out, const struct report *r, const struct report_process *p,
		  const struct report_row *rows, size_t nr) __must_check;

/*
 * Did the low-water mark of @p rise by more than the noise of samples, and so that its numbers read differently? And
 * the words for it.
 */
#define REPORT_ROSE "the low-water mark rose from %s to %s"
static inline bool report_rose(const struct report_process *p, struct trend_growth *g)
{
	return p->trend && heap_growth(p->heap, p->trend, g) && trend_permille(g) > 0 &&
	       (IS_AGENT || strcmp(human_bytes(g->before).text, human_bytes(g->after).text) != 0);
}
