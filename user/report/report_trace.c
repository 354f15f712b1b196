/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The report for trace viewers (Perfetto, chrome://tracing): live bytes and blocks of each process over time. */
#include <errno.h>

#include "user/heap/timeline.h"
#include "user/lib/flush.h"
#include "user/lib/json.h"
#include "user/report/format.h"
#include "user/report/report.h"
#include "user/report/report_marks.h"
#include "user/target/target.h"

/* One event a line. */
enum { FOLD_EVENTS = 2, NS_PER_US = 1000 };

static void report_trace_put_name(struct json *j, const struct target *t)
{
	json_object_begin(j, NULL);
	json_string(j, "ph", "M");
	json_string(j, "name", "process_name");
	json_u64(j, "pid", (u64)t->pid);
	json_object_begin(j, "args");
	json_string(j, "name", t->comm);
	json_object_end(j);
	json_object_end(j);
}

/* The counter @name has @value from @time_ns on. */
static void put_counter(struct json *j, const struct target *t, const char *name, u64 time_ns, u64 value)
{
	json_object_begin(j, NULL);
	json_string(j, "ph", "C");
	json_string(j, "name", name);
	json_u64(j, "pid", (u64)t->pid);
	json_u64(j, "ts", time_ns / NS_PER_US);
	json_object_begin(j, "args");
	json_u64(j, "value", value);
	json_object_end(j);
	json_object_end(j);
}

static void report_trace_put_process(struct json *j, const struct report_process *p)
{
	struct heap_totals totals = heap_totals(p->heap);
	struct timeline_point point;
	bool has_peak = false;

	report_trace_put_name(j, p->target);
	for (size_t i = 0; heap_timeline(p->heap, i, &point); i++) {
		/* The peak is between two points. */
		if (!has_peak && totals.peak_bytes && totals.peak_time_ns <= point.time_ns) {
			has_peak = true;
			put_counter(j, p->target, "live bytes", totals.peak_time_ns, totals.peak_bytes);
		}
		put_counter(j, p->target, "live bytes", point.time_ns, point.live_bytes);
		put_counter(j, p->target, "live blocks", point.time_ns, point.live_blocks);
	}
}

/* A named moment, across all processes. */
static void report_trace_put_mark(struct json *j, const struct report_mark *m, pid_t pid)
{
	json_object_begin(j, NULL);
	json_string(j, "ph", "i");
	json_string(j, "name", m->name);
	json_string(j, "s", "g");
	json_u64(j, "pid", (u64)pid);
	json_u64(j, "ts", m->time_ns / NS_PER_US);
	json_object_end(j);
}

int report_trace(FILE *out, const struct report *r)
{
	struct json j;

	json_init(&j, out, FOLD_EVENTS);
	json_object_begin(&j, NULL);
	json_string(&j, "displayTimeUnit", "ns");
	json_array_begin(&j, "traceEvents");
	for (size_t i = 0; i < r->nr_processes; i++)
		report_trace_put_process(&j, &r->processes[i]);
	for (size_t i = 0; r->marks && r->nr_processes && i < r->marks->nr; i++)
		report_trace_put_mark(&j, &r->marks->list[i], r->processes[0].target->pid);
	json_array_end(&j);
	json_object_end(&j);
	return flush_stream(out);
}
