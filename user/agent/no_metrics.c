/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Stand-in for metrics in the agent. Its option for them is refused, so that none are wanted. */
#include "user/metrics/trace_metrics.h"

int trace_metrics_init(struct trace_metrics *tm, const char *address, const char *url, u32 top,
		       bool wants_scan)
{
	(void)address;
	(void)url;
	*tm = (struct trace_metrics){ .top = top, .wants_scan = wants_scan };
	return 0;
}

void trace_metrics_round(struct trace_metrics *tm, struct session *s)
{
	(void)tm;
	(void)s;
}

void trace_metrics_end(struct trace_metrics *tm, struct session *s)
{
	(void)tm;
	(void)s;
}

void trace_metrics_fini(struct trace_metrics *tm)
{
	(void)tm;
}
